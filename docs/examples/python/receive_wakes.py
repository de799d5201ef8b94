"""Receives wakes, believes only those of Stationmaster, and acts on each once.

    DATABASE_URL=postgres://... WAKE_SECRETS=whsec_... python receive_wakes.py PORT

WAKE_SECRETS may hold several, separated by spaces: while a secret is exchanged, the new one and the old one.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

from webhook import Untrusted, decode_secret, verify

LARGEST = 1024 * 1024
SECRETS = [decode_secret(secret) for secret in os.environ["WAKE_SECRETS"].split()]
DATABASE_URL = os.environ["DATABASE_URL"]


def act(wake_id: str, wake: dict) -> None:
    """The work and the memory of it in one transaction: a repeat of the wake changes nothing."""
    with psycopg.connect(DATABASE_URL) as connection:
        connection.execute(
            "insert into reminders (wake_id, message, scheduled_for) values (%s, %s, %s) on conflict (wake_id) do nothing",
            (wake_id, wake["message"], wake["scheduled_for"]),
        )


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        if self.path != "/internal/wake" or length > LARGEST:
            self.close_connection = True
            return self.answer(404 if length <= LARGEST else 413)
        body = self.rfile.read(length)
        try:
            wake_id = verify(SECRETS, self.headers, body)
        except Untrusted as why:
            print(f"refused: {why}", file=sys.stderr)
            return self.answer(401)  # a refusal for good: it is not tried again
        try:
            act(wake_id, json.loads(body))
        except psycopg.OperationalError:
            return self.answer(503)  # tried again, later and later
        # Only now: what is confirmed is never sent again.
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver) as server:
        print(f"receiving wakes at http://127.0.0.1:{server.server_port}/internal/wake", flush=True)
        server.serve_forever()

"""Places an order and asks for its workflow to run, in one transaction: both happen, or neither.

    python enqueue.py postgres://user:password@host/database WORKSPACE WORKFLOW ORDER

Needs psycopg 3. Prints the id of the queue item.
"""

import json
import sys

import psycopg


def place_order(connection: psycopg.Connection, workspace: str, workflow: str, order: int) -> str:
    with connection.transaction():
        connection.execute("create table if not exists orders (id integer primary key)")
        # A repeat of the whole is harmless: the order is there, and the key gives the first item again.
        connection.execute("insert into orders (id) values (%s) on conflict do nothing", (order,))
        row = connection.execute(
            """select stationmaster.enqueue_execution(
                   workspace_id => %s::uuid, workflow_definition_id => %s::uuid,
                   input => %s::jsonb, idempotency_key => %s)""",
            (workspace, workflow, json.dumps({"order": order}), f"order-{order}"),
        ).fetchone()
        if order < 0:
            raise ValueError("there is no such order, so nothing is enqueued either")
        return str(row[0])


if __name__ == "__main__":
    url, workspace, workflow, order = sys.argv[1:]
    with psycopg.connect(url) as connection:
        print(place_order(connection, workspace, workflow, int(order)))

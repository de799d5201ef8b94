"""Is a wake from Stationmaster, and is it fresh? By Standard Webhooks, with nothing but the standard library."""

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping

TOLERANCE = 5 * 60  # seconds; an older one may be a repeat by somebody who listened


class Untrusted(Exception):
    pass


def decode_secret(secret: str) -> bytes:
    """`whsec_` and base64, as `stationmaster alarms secrets show` prints it."""
    if not secret.startswith("whsec_"):
        raise ValueError("a secret looks like whsec_ and base64")
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def verify(secrets: list[bytes], headers: Mapping[str, str], body: bytes) -> str:
    """Answers the id of the wake, which is the same in every try, or raises Untrusted.

    The body is the bytes that came: parsed and written anew, they would be others.
    """
    wake_id, sent, signatures = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (wake_id and sent.isascii() and sent.isdigit()):
        raise Untrusted("a header is missing or cannot be read")
    if abs(time.time() - int(sent)) > TOLERANCE:
        raise Untrusted("the timestamp is too far from now")
    signed = b".".join([wake_id.encode(), sent.encode(), body])
    # While a secret is exchanged there are several signatures, and here perhaps several secrets: one that fits will do.
    for secret in secrets:
        expected = "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()
        for signature in signatures.split(" "):
            if hmac.compare_digest(expected.encode(), signature.encode()):  # in constant time
                return wake_id
    raise Untrusted("no signature is by a secret that is known here")

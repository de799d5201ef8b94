"""Places an order and asks for its workflow to run, in one transaction: both happen, or neither.

    DATABASE_URL=postgres://... python place_order.py ORDER AMOUNT

Prints the id of the queue item; a repeat prints the same one.
"""

import os
import sys

import psycopg
from psycopg.types.json import Jsonb


def place_order(connection: psycopg.Connection, order: int, amount: int) -> str:
    with connection.transaction():
        # Nobody sees the item before the commit. The key makes a repeat harmless: it gives the first item again.
        row = connection.execute(
            "select stationmaster.enqueue('shop', 'order', input => %s, idempotency_key => %s)",
            (Jsonb({"order": order, "amount": amount}), f"order-{order}"),
        ).fetchone()
        # An amount that the table refuses ends the transaction here, and the item is gone with it.
        connection.execute(
            "insert into orders (id, amount) values (%s, %s) on conflict (id) do nothing", (order, amount)
        )
    return str(row[0])


if __name__ == "__main__":
    order, amount = (int(argument) for argument in sys.argv[1:])
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        print(place_order(connection, order, amount))

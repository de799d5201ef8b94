// Places an order and asks for its workflow to run, in one transaction: both happen, or neither.
//
//   DATABASE_URL=postgres://... npx tsx place-order.ts ORDER AMOUNT
//
// Prints the id of the queue item; a repeat prints the same one.

import pg from "pg";

async function placeOrder(client: pg.Client, order: number, amount: number): Promise<string> {
  await client.query("begin");
  try {
    // Nobody sees the item before the commit. The key makes a repeat harmless: it gives the first item again.
    const { rows } = await client.query<{ item: string }>(
      "select stationmaster.enqueue('shop', 'order', input => $1::jsonb, idempotency_key => $2) as item",
      [JSON.stringify({ order, amount }), `order-${order}`],
    );
    // An amount that the table refuses ends the transaction here, and the item is gone with it.
    await client.query("insert into orders (id, amount) values ($1, $2) on conflict (id) do nothing", [order, amount]);
    await client.query("commit");
    return rows[0]!.item;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

const [order, amount] = process.argv.slice(2).map(Number);
// One client for the whole transaction: a pool's own query() may use another connection for each statement.
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
try {
  console.log(await placeOrder(client, order!, amount!));
} finally {
  await client.end();
}

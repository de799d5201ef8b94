// Receives wakes, believes only those of Stationmaster, and acts on each once.
//
//   DATABASE_URL=postgres://... WAKE_SECRETS=whsec_... npx tsx receive-wakes.ts PORT
//
// WAKE_SECRETS may hold several, separated by spaces: while a secret is exchanged, the new one and the old one.

import { createServer, type IncomingMessage } from "node:http";
import pg from "pg";
import { decodeSecret, Untrusted, verify } from "./webhook.ts";

interface Wake {
  message: string | null;
  scheduled_for: string;
}

const LARGEST = 1024 * 1024;
const secrets = (process.env.WAKE_SECRETS ?? "").split(" ").map(decodeSecret);
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
pool.on("error", (error) => console.error(`an idle connection is lost: ${error.message}`));

/** The work and the memory of it in one statement: a repeat of the wake changes nothing. */
async function act(id: string, wake: Wake): Promise<void> {
  await pool.query(
    "insert into reminders (wake_id, message, scheduled_for) values ($1, $2, $3) on conflict (wake_id) do nothing",
    [id, wake.message, wake.scheduled_for],
  );
}

async function receive(request: IncomingMessage): Promise<number> {
  if (request.method !== "POST" || request.url !== "/internal/wake") {
    return 404;
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LARGEST) {
      return 413;
    }
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  let id: string;
  try {
    id = verify(secrets, (name) => request.headers[name]?.toString(), body);
  } catch (error) {
    if (!(error instanceof Untrusted)) {
      throw error;
    }
    console.error(`refused: ${error.message}`);
    return 401; // a refusal for good: it is not tried again
  }
  await act(id, JSON.parse(body.toString("utf8")));
  return 204; // only now: what is confirmed is never sent again
}

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      console.error(error);
      response.writeHead(503).end(); // tried again, later and later
    },
  );
});
const port = Number(process.argv[2]);
server.listen(port, "127.0.0.1", () => console.log(`receiving wakes at http://127.0.0.1:${port}/internal/wake`));

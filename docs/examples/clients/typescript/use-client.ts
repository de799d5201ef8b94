// Stationmaster's API through types that were made from its document.
//
//   STATIONMASTER_URL=http://... STATIONMASTER_TOKEN=smt_... npx tsx use-client.ts

import createClient from "openapi-fetch";
import type { components, paths } from "./stationmaster.ts";

type Problem = components["schemas"]["Problem"];
type QueueItem = components["schemas"]["QueueItem"];

/** A problem, for those who would rather catch it than look at every answer. */
class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }

  /** Never changes its meaning; the words may. */
  get kind(): string {
    return this.problem.type.split(":").at(-1)!;
  }
}

function expect<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.error !== undefined) {
    throw new Refused(answer.error);
  }
  return answer.data!;
}

const client = createClient<paths>({
  baseUrl: process.env.STATIONMASTER_URL!,
  headers: { authorization: `Bearer ${process.env.STATIONMASTER_TOKEN}` },
});

async function enqueue(workflow: string, order: number): Promise<string> {
  const body = {
    workspace_id: "shop", // names are taken wherever ids are
    workflow_definition_id: workflow,
    input: { order },
    idempotency_key: `client-${order}`,
  };
  return expect(await client.POST("/v1/executions", { body })).id;
}

/** Page after page; after the last one there is no cursor. */
async function* allItems(limit: number): AsyncGenerator<QueueItem> {
  let cursor: string | undefined;
  do {
    const query = { workspace_id: "shop", limit, cursor };
    const page = expect(await client.GET("/v1/queue", { params: { query } }));
    yield* page.items;
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** The stream as it comes: it does not end by itself, so it is not waited for. */
async function firstEvent(): Promise<string> {
  const stream = expect(
    await client.GET("/v1/events", { params: { query: { family: "queue" } }, parseAs: "stream" }),
  ) as ReadableStream<Uint8Array>;
  const decoder = new TextDecoder();
  let heard = "";
  for await (const chunk of stream) {
    heard += decoder.decode(chunk, { stream: true });
    const event = /^event: ?(.+)\n/m.exec(heard);
    if (event) {
      return event[1]!; // leaving the loop ends the stream
    }
  }
  throw new Error("the stream ended");
}

for (const order of [1, 2, 3]) {
  console.log("enqueued", await enqueue("order", order));
}
console.log("repeated", await enqueue("order", 3));
const ids: string[] = [];
for await (const item of allItems(2)) {
  ids.push(item.id);
}
console.log("listed", ...ids);
try {
  await enqueue("nonsense", 4);
} catch (error) {
  if (!(error instanceof Refused)) {
    throw error;
  }
  console.log("refused", error.kind);
}
console.log("heard", await firstEvent());

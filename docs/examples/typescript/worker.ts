// A Temporal worker that runs the orders that Stationmaster dispatches.
//
//   npx tsx worker.ts
//
// TEMPORAL_ADDRESS (localhost:7233), TEMPORAL_NAMESPACE (default), TEMPORAL_API_KEY and TEMPORAL_TLS say where Temporal is.
// SIGTERM and Ctrl-C let what runs come to its end; the SDK sees to that.

import { fileURLToPath } from "node:url";
import { loadClientConnectConfig } from "@temporalio/envconfig";
import { NativeConnection, Worker } from "@temporalio/worker";
import * as activities from "./activities.ts";

const { connectionOptions, namespace } = loadClientConnectConfig();
const connection = await NativeConnection.connect(connectionOptions);
try {
  const worker = await Worker.create({
    connection,
    namespace: namespace ?? "default",
    taskQueue: "orders", // the --task-queue of the definition
    workflowsPath: fileURLToPath(new URL("./workflows.ts", import.meta.url)),
    activities,
  });
  console.log("serving the task queue orders");
  await worker.run();
} finally {
  await connection.close();
}

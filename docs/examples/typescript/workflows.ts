// The workflow that Stationmaster starts. Temporal runs this file in a sandbox of its own: of the activities it may know the
// types, and nothing else.

import { proxyActivities } from "@temporalio/workflow";
import type * as activities from "./activities.ts";

const { runStep } = proxyActivities<typeof activities>({ startToCloseTimeout: "1 minute" });

/** The one argument of every workflow that Stationmaster starts. */
export interface Dispatch<Input> {
  /** The run is called execution-<this>. */
  executionId: string;
  workspaceId: string;
  workflowDefinitionId: string;
  workflowVersionId: string;
  /** The nodes of the version's graph, each after those that it waits for. */
  nodeIds: string[];
  /** What was enqueued. */
  input: Input;
}

/** The name of the function is the --workflow-type of the definition. */
export async function Order({ nodeIds, input }: Dispatch<{ order: number; amount: number }>) {
  const done: string[] = [];
  for (const node of nodeIds) {
    done.push(await runStep({ node, ...input }));
  }
  // What is returned becomes the output of the execution.
  return { order: input.order, done };
}

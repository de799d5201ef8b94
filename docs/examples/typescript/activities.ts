import { ApplicationFailure } from "@temporalio/activity";

export interface Step {
  node: string;
  order: number;
  amount: number;
}

/** Does the work of one node. Temporal repeats it until it succeeds, so it must bear being repeated. */
export async function runStep({ node, order, amount }: Step): Promise<string> {
  switch (node) {
    case "charge":
      return `charged ${amount}`;
    case "ship":
      return `shipped order ${order}`;
    default:
      // A repeat would not help. Any other error is tried again for ever, and the execution keeps its slot meanwhile.
      throw ApplicationFailure.nonRetryable(`there is no step ${node}`);
  }
}

"""The workflow that Stationmaster starts, and its activity."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError


@dataclass
class Dispatch:
    """The one argument of every workflow that Stationmaster starts. The fields are called as they are on the wire."""

    executionId: str  # the run is called execution-<this>
    workspaceId: str
    workflowDefinitionId: str
    workflowVersionId: str
    nodeIds: list[str]  # of the version's graph, each after those that it waits for
    input: dict[str, Any]  # what was enqueued


@dataclass
class Step:
    node: str
    order: int
    amount: int


@activity.defn
async def run_step(step: Step) -> str:
    """Does the work of one node. Temporal repeats it until it succeeds, so it must bear being repeated."""
    match step.node:
        case "charge":
            return f"charged {step.amount}"
        case "ship":
            return f"shipped order {step.order}"
    # A repeat would not help. Any other exception is tried again for ever, and the execution keeps its slot meanwhile.
    raise ApplicationError(f"there is no step {step.node}", non_retryable=True)


@workflow.defn(name="Order")  # the --workflow-type of the definition
class Order:
    @workflow.run
    async def run(self, dispatch: Dispatch) -> dict[str, Any]:
        order, amount = dispatch.input["order"], dispatch.input["amount"]
        done = []
        for node in dispatch.nodeIds:
            step = Step(node, order, amount)
            done.append(
                await workflow.execute_activity(run_step, step, start_to_close_timeout=timedelta(minutes=1))
            )
        # What is returned becomes the output of the execution.
        return {"order": order, "done": done}

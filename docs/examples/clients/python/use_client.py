"""Stationmaster's API through a client that was made from its document.

    STATIONMASTER_URL=http://... STATIONMASTER_TOKEN=smt_... python use_client.py
"""

import os
from collections.abc import Iterator

from stationmaster_client import AuthenticatedClient
from stationmaster_client.api.executions import enqueue_execution
from stationmaster_client.api.queue import list_queue
from stationmaster_client.models import Enqueue, Enqueued, Problem, QueueItem


class Refused(Exception):
    """A problem, for those who would rather catch it than look at every answer."""

    def __init__(self, problem: Problem):
        super().__init__(problem.detail or problem.title)
        self.name = problem.type_.rsplit(":", 1)[-1]  # never changes its meaning; the words may


def expect(answer):
    if isinstance(answer, Problem):
        raise Refused(answer)
    return answer


def enqueue(client: AuthenticatedClient, workflow: str, order: int) -> Enqueued:
    body = Enqueue(
        workspace_id="shop",  # names are taken wherever ids are
        workflow_definition_id=workflow,
        input_={"order": order},
        idempotency_key=f"client-{order}",
    )
    return expect(enqueue_execution.sync(client=client, body=body))


def all_items(client: AuthenticatedClient, limit: int) -> Iterator[QueueItem]:
    """Page after page; what is left out of a request is UNSET, and so is the cursor after the last page."""
    page = expect(list_queue.sync(client=client, workspace_id="shop", limit=limit))
    yield from page.items
    while page.next_cursor:
        page = expect(list_queue.sync(client=client, workspace_id="shop", limit=limit, cursor=page.next_cursor))
        yield from page.items


def first_event(client: AuthenticatedClient) -> str:
    """Of a stream the client knows only the address: its function would wait for an end that never comes."""
    with client.get_httpx_client().stream("GET", "/v1/events", params={"family": "queue"}) as stream:
        for line in stream.iter_lines():
            if line.startswith("event:"):
                return line.removeprefix("event:").strip()
    raise RuntimeError("the stream ended")


if __name__ == "__main__":
    with AuthenticatedClient(os.environ["STATIONMASTER_URL"], os.environ["STATIONMASTER_TOKEN"]) as client:
        for order in (1, 2, 3):
            print("enqueued", enqueue(client, "order", order).id)
        print("repeated", enqueue(client, "order", 3).id)
        print("listed", *(item.id for item in all_items(client, limit=2)))
        try:
            enqueue(client, "nonsense", 4)
        except Refused as refused:
            print("refused", refused.name)
        print("heard", first_event(client))

"""A Temporal worker that runs the orders that Stationmaster dispatches.

    python worker.py

TEMPORAL_ADDRESS (localhost:7233), TEMPORAL_NAMESPACE (default), TEMPORAL_API_KEY and TEMPORAL_TLS say where Temporal is.
SIGTERM and Ctrl-C let what runs come to its end.
"""

import asyncio
import signal

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker

from workflows import Order, run_step


async def main() -> None:
    options = ClientConfig.load_client_connect_config()
    options.setdefault("target_host", "localhost:7233")
    client = await Client.connect(**options)
    # The task queue is the --task-queue of the definition.
    worker = Worker(client, task_queue="orders", workflows=[Order], activities=[run_step])
    stop = asyncio.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(ending, stop.set)
    async with worker:
        print("serving the task queue orders", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())

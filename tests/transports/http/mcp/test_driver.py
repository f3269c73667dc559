"""Jobs of MCP in their threads, when the server does not wait for them any longer."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from tests.transports.http.events.test_listeners import desk_of
from tests.transports.http.support.mcp_requests import modern
from tests.transports.mcp.lines import CATALOG
from vestige.core.caller import LOCAL_USER
from vestige.transports.http.limits.fair_queue import Reservation, SharedBudget
from vestige.transports.http.mcp.driver import Conversation, Exchange, McpWork
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.messages import Done, Outcome
from vestige.transports.mcp.service import ServerApplication


class Waiting:
    """A job that goes on until it is told that nobody wants it any more."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()
        self.told = False

    def do(self, app: ServerApplication, work: McpWork) -> Outcome:
        self.begun.set()
        self.told = work.cancelled.wait(PATIENCE_SECONDS)
        self.over.set()
        return Done({})


def test_a_job_is_told_when_the_server_ends_without_waiting_for_it(tmp_path: Path) -> None:
    job = Waiting()
    settings: dict[str, Any] = {"storage.backend": "memory"}

    async def run(world: World) -> None:
        _, body = modern("tools/call", {"name": "search", "arguments": {}})
        conversation = Conversation(desk_of(world), ClientConversation(CATALOG, "1", stateless=True), job.do)
        others = asyncio.all_tasks()
        serving = asyncio.create_task(served(conversation, body))
        assert await run_sync(job.begun.wait, PATIENCE_SECONDS)
        for task in asyncio.all_tasks() - others:  # as the end of the event loop does it
            task.cancel()
        await asyncio.wait([serving])
        assert await run_sync(job.over.wait, PATIENCE_SECONDS)

    with open_world(tmp_path, **settings) as world:
        anyio.run(run, world)
    assert job.told


async def served(conversation: Conversation, body: dict[str, Any]) -> None:
    async with anyio.create_task_group() as tasks:
        exchange = Exchange(
            caller=LOCAL_USER,
            key="",
            unsent=Reservation(SharedBudget(1), ""),
            request_id="test",
            arrived=0.0,
            tasks=tasks,
            release_slot=lambda: None,
            recheck=lambda: True,
        )
        conversation.take(body, 1, exchange)
        await exchange.settled.wait()

"""A small world for tests: an app on a real store, a clock that moves only when told to."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from testbed.sqlite_template import put_template
from vestige.app.app import App, Clock, open_app
from vestige.core.caller import Invocation
from vestige.core.errors import VestigeError
from vestige.core.events import Event
from vestige.core.origin import Origin
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class HandClock:
    """Time that stands still until it is moved."""

    def __init__(self, start: datetime = START, *, first: int = 1) -> None:
        self.now = start
        self._numbers = count(first)

    def copy(self) -> "HandClock":
        """A clock that goes on as this one does: with the same time and the same ids."""
        first = next(self._numbers)
        self._numbers = count(first)
        return HandClock(self.now, first=first)

    def advance(self, *, days: float = 0, hours: float = 0) -> None:
        self.now += timedelta(days=days, hours=hours)

    def new_id(self) -> str:
        return f"01890000-0000-7000-8000-{next(self._numbers):012x}"

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def parts(self) -> Clock:
        return Clock(
            now=lambda: self.now,
            monotonic=lambda: self.now.timestamp(),
            sleep=self.sleep,
            new_id=self.new_id,
            rng=random.Random(7),
        )


class World:
    """An app with its clock, and everything the bus said."""

    def __init__(self, app: App, clock: HandClock) -> None:
        self.app = app
        self.clock = clock
        self.heard: list[Event] = []

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Run a tool as an MCP client would."""
        return self.app.call_tool(Invocation(name=tool, arguments=arguments, request_id="test"))

    def remember(self, content: str, **arguments: Any) -> str:
        """Ingest one text; the id of the memory that holds it."""
        return str(self.call("smart_ingest", content=content, **arguments)["nodeId"])

    def user_remembers(self, content: str, **arguments: Any) -> str:
        """Ingest one text as the user at the command line does, whose words are never held for a review."""
        call = Call(engine=self.app.engine, origin=Origin.USER)
        answer = registry.operations["smart_ingest"].call(call, {"content": content, **arguments})
        return str(answer["nodeId"])

    def find(self, query: str, **arguments: Any) -> list[str]:
        """Search; the contents found, best first."""
        return [hit["content"] for hit in self.call("search", query=query, **arguments)["results"]]

    def get(self, memory_id: str) -> dict[str, Any]:
        """One memory in full."""
        node: dict[str, Any] = self.call("memory", action="get", id=memory_id)["node"]
        return node

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Run a tool that must fail; its error value."""
        try:
            answer = self.call(tool, **arguments)
        except VestigeError as error:
            return error.value()
        raise AssertionError(f"{tool} was not refused: {answer}")


def on_postgres(url: str) -> dict[str, Any]:
    """Settings that name a store in a database of the tests' server; `FreshDatabases` empties this schema."""
    return {"storage.backend": "postgres", "storage.postgres.url": url, "storage.postgres.schema": "public"}


@contextmanager
def open_world(
    folder: Path,
    *,
    clock: HandClock | None = None,
    provider: str = "hashing",
    place: Path | None = None,
    template: bool = True,
    **settings: Any,
) -> Iterator[World]:
    """An app on `folder`, at home in `place`; opening the same folder again is a restart.

    Without `template` the app itself makes a new folder and migrates a new file.
    """
    clock = clock or HandClock()
    options = {"data_dir": str(folder), "embeddings.provider": provider, **settings}
    if template and options.get("storage.backend", "sqlite") == "sqlite" and "data_dir" not in settings:
        put_template(folder / "vestige.db")
    with open_app(options, environ={"HOME": str(folder)}, clock=clock.parts(), folder=place) as app:
        world = World(app, clock)
        with app.engine.events.listening(world.heard.append):
            yield world

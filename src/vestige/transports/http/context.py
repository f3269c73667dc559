"""What every part of the server is handed: the application, its settings, and threads to call it in."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypeVar

import anyio
from anyio.to_thread import run_sync
from starlette.requests import HTTPConnection

from vestige.core.caller import Caller
from vestige.core.invocation import Invocation
from vestige.engine.context import Engine
from vestige.operations.registry.arguments import is_too_much, too_much
from vestige.operations.registry.registry import Registry
from vestige.settings.settings import Settings
from vestige.transports.http.limits.fair_queue import BODIES, QueueSlot, Shares
from vestige.transports.http.limits.responses import LEAST_BYTES, TIMES_BODY
from vestige.transports.http.limits.worker_pool import Lanes

# -- What the server needs of the application. Nothing of the extra is imported here.


class ServerApplication(Protocol):
    """A running Vestige, as `vestige.app.App` is one. Called from several threads.

    A `deadline` is a time of its engine's monotonic clock: what is not done by then is given up.
    """

    @property
    def engine(self) -> Engine:
        """Its parts."""

    def call_operation(self, invocation: Invocation) -> dict[str, Any]:
        """Run an operation; the answer as JSON-able data."""

    def call_tool(self, invocation: Invocation) -> dict[str, Any]:
        """Run an MCP tool by name."""

    def read_resource(self, invocation: Invocation) -> dict[str, Any]:
        """Read an MCP resource by URI."""


# -- desk

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 65_536
"""A body that takes long to read, so that it is read in a thread."""
READERS = 4
"""Bodies of that kind that are read at once."""

Owned = Callable[[], AbstractAsyncContextManager[None]]
"""Something that lives as long as the server: entered when it starts, left when it stops."""


class Reads(Protocol):
    """Whoever reads bodies."""

    @property
    def reading(self) -> anyio.CapacityLimiter:
        """How many large ones are read at once."""
        ...


def readers() -> anyio.CapacityLimiter:
    """As many as there may be."""
    return anyio.CapacityLimiter(READERS)


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number that goes up and down, with what it is."""

    told: str
    read: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a part of the server works with.

    `stopping` is set when the server no longer accepts connections: streams end themselves then. A part puts
    what must run as long as the server into `owned`, what /metrics shall show into `gauges`, and paths that
    need no key into `public`, while its routes are made. Calls of operations run in `lanes`; what they answer
    is counted in `unsent` until it is taken.
    """

    app: ServerApplication
    settings: Settings
    registry: Registry
    monotonic: Callable[[], float]
    entropy: Callable[[int], bytes]
    limiter: anyio.CapacityLimiter
    affordable: int | None = None
    stopping: anyio.Event = field(default_factory=anyio.Event)
    owned: list[Owned] = field(default_factory=list)
    gauges: dict[str, Gauge] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)
    lanes: Lanes = field(init=False)
    unsent: Shares = field(init=False)
    reading: anyio.CapacityLimiter = field(default_factory=readers)

    def __post_init__(self) -> None:
        server = self.settings.server
        object.__setattr__(self, "lanes", Lanes(self.limiter, server.max_concurrent))
        object.__setattr__(self, "unsent", Shares(BODIES * max(server.max_body_bytes, LEAST_BYTES)))

    @property
    def most_connections(self) -> int:
        """As many as may be open, and as the process can afford, where that was looked at."""
        most = self.settings.server.max_connections
        return most if self.affordable is None else min(most, self.affordable)

    @property
    def most_answer(self) -> int:
        """How many bytes an answer may have, as JSON."""
        return TIMES_BODY * max(self.settings.server.max_body_bytes, LEAST_BYTES)

    def deadline(self, arrived: float, *, long: bool) -> float:
        """When a call must be over whose request was there at that time."""
        server = self.settings.server
        return arrived + (server.long_request_seconds if long else server.request_seconds)


async def run(desk: Desk, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run plain code in one of the server's threads."""
    return await run_sync(lambda: function(*args, **kwargs), limiter=desk.limiter)


async def read(desk: Reads, body: bytes, reading: Callable[[bytes], T], *, count_all: bool = False) -> T:
    """Read a body: if it is large in a thread, or everybody else would wait, and few at once: what is in it
    may take twenty times its room.

    TooLarge if it holds too many values. In a small body they are counted with `count_all` only: operations
    do it themselves.
    """
    large = len(body) > LARGE_BYTES
    if not large and not count_all:
        return reading(body)

    def checked() -> T | None:
        found = reading(body)
        return None if is_too_much(found) else found

    found = await run_sync(checked, limiter=desk.reading) if large else checked()
    if found is None:
        raise too_much()
    return found


def caller_of(connection: HTTPConnection) -> Caller:
    """Who sent a request: the auth middleware has found out."""
    caller: Caller = connection.state.caller
    return caller


def request_id_of(connection: HTTPConnection) -> str:
    """The id of a request, in its log line and its answer."""
    request_id: str = connection.state.request_id
    return request_id


def key_of(connection: HTTPConnection) -> str:
    """What tells the credential of a request from others: the id of its key; not a secret. Empty without."""
    key_id: str = connection.state.key_id
    return key_id


def place_of(connection: HTTPConnection) -> Callable[[], None]:
    """What gives back the place of a request among those that are worked on, for good: to be called when it
    begins to wait for others."""
    place: QueueSlot | None = getattr(connection.state, "place", None)
    return place.give_back if place else _nothing


def _nothing() -> None:
    """Without places there is none to give back."""


def recheck_of(connection: HTTPConnection) -> Callable[[], bool]:
    """What tells whether the credential of a request still opens anything, for streams that stay open. Plain
    code that reads the store: to be called with `run`."""
    recheck: Callable[[], bool] = connection.state.recheck
    return recheck

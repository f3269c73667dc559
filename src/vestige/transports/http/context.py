"""What every part of the server works with: the application, its settings, and threads to call it in."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import ParamSpec, TypeVar

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from vestige.core.caller import Caller
from vestige.core.lazy_dataclass import dataclass
from vestige.operations.registry.arguments import is_too_much, too_much
from vestige.operations.registry.registry import Registry
from vestige.settings.settings import Settings
from vestige.transports.http.limits.fair_queue import BUFFERED_BODIES, LARGE_BYTES, QueueSlot, SharedBudget
from vestige.transports.http.limits.responses import MIN_BODY_BYTES, TIMES_BODY
from vestige.transports.http.limits.worker_pool import WorkerPools
from vestige.transports.http.workers.group import WorkerGroup
from vestige.transports.mcp.service import ServerApplication

P = ParamSpec("P")
T = TypeVar("T")

MAX_PARSERS = 4
"""Large bodies that are parsed at once."""

Owned = Callable[[], AbstractAsyncContextManager[None]]
"""A context manager that is entered when the server starts and left when it stops."""


def parser_limiter() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(MAX_PARSERS)


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number for /metrics, with its help text."""

    help: str
    read: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The shared state of all parts of the server.

    `stopping` is set when the server no longer accepts connections; streams end then. While its routes are
    made, a part adds to `owned` what runs as long as the server, to `gauges` what /metrics shows, and to
    `public` paths that need no key. Operations run in `pools`; their responses count in `unsent` until they
    are read. `group` are the workers of the server, if it has several; the settings are then the share of
    this one.
    """

    app: ServerApplication
    settings: Settings
    registry: Registry
    monotonic: Callable[[], float]
    entropy: Callable[[int], bytes]
    limiter: anyio.CapacityLimiter
    affordable: int | None = None
    group: WorkerGroup | None = None
    stopping: anyio.Event = field(default_factory=anyio.Event)
    owned: list[Owned] = field(default_factory=list)
    gauges: dict[str, Gauge] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)
    pools: WorkerPools = field(init=False)
    unsent: SharedBudget = field(init=False)
    reading: anyio.CapacityLimiter = field(default_factory=parser_limiter)

    def __post_init__(self) -> None:
        server = self.settings.server
        object.__setattr__(self, "pools", WorkerPools(self.limiter, server.max_concurrent))
        object.__setattr__(
            self, "unsent", SharedBudget(self.buffered_bodies * max(server.max_body_bytes, MIN_BODY_BYTES))
        )

    @property
    def most_connections(self) -> int:
        """The limit of connections: the setting, or fewer if the process has fewer file descriptors."""
        most = self.settings.server.max_connections
        return most if self.affordable is None else min(most, self.affordable)

    @property
    def buffered_bodies(self) -> int:
        """How many bodies of the largest size this process keeps in memory."""
        return max(2, BUFFERED_BODIES // (self.group.workers if self.group else 1))

    @property
    def most_answer(self) -> int:
        """The largest response, in bytes of JSON."""
        return TIMES_BODY * max(self.settings.server.max_body_bytes, MIN_BODY_BYTES)

    def deadline(self, arrived: float, *, long: bool) -> float:
        """The deadline of a call whose request was complete at this time."""
        server = self.settings.server
        return arrived + (server.long_request_seconds if long else server.request_seconds)


async def run_in_thread(
    context: ServerContext, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking code in one of the server's threads."""
    return await run_sync(lambda: function(*args, **kwargs), limiter=context.limiter)


async def parse_body(
    limiter: anyio.CapacityLimiter, body: bytes, reading: Callable[[bytes], T], *, count_all: bool = False
) -> T:
    """Parse a body. Large ones are parsed in threads, and few at once: the result may take twenty times the
    memory. TooLarge if it has too many values. In a small body they are counted only with `count_all`:
    operations do it themselves."""
    large = len(body) > LARGE_BYTES
    if not large and not count_all:
        return reading(body)

    def checked() -> T | None:
        found = reading(body)
        return None if is_too_much(found) else found

    found = await run_sync(checked, limiter=limiter) if large else checked()
    if found is None:
        raise too_much()
    return found


def caller_of(connection: HTTPConnection) -> Caller:
    """The caller of a request, which the authentication middleware has set."""
    caller: Caller = connection.state.caller
    return caller


def request_id_of(connection: HTTPConnection) -> str:
    """The id of a request, in its log line and its response."""
    request_id: str = connection.state.request_id
    return request_id


def key_of(connection: HTTPConnection) -> str:
    """The id of the key of a request, which is not secret. Empty without a key."""
    key_id: str = connection.state.key_id
    return key_id


def media_type_of(headers: Headers) -> str:
    """The media type of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def slot_release_of(connection: HTTPConnection) -> Callable[[], None]:
    """A function that releases the slot of a request in the fair queue. To be called when the request begins
    to wait."""
    slot: QueueSlot | None = getattr(connection.state, "slot", None)
    return slot.release if slot else lambda: None


def recheck_of(connection: HTTPConnection) -> Callable[[], bool]:
    """A function that returns whether the credential of a request is still valid, for streams. It reads the
    store: call it with `run_in_thread`."""
    recheck: Callable[[], bool] = connection.state.recheck
    return recheck

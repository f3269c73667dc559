"""Metrics of the server for Prometheus: `/metrics`."""

import asyncio
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from vestige import __version__
from vestige.core.errors import Forbidden, VestigeError
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.engine.context import WorkerStatus
from vestige.transports.http.context import ServerContext, caller_of, run_in_thread
from vestige.transports.http.workers.group import WorkerGroup
from vestige.transports.http.workers.peer_relay import FROM_PEER, WorkerGone, ask
from vestige.transports.http.workers.table import Seat

PATH = "/metrics"
PEER_SECONDS = 2.0
"""How long another worker may take to answer."""
MEDIA_TYPE = "text/plain; version=0.0.4"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})


class Metrics:
    """Counts requests. Used on the event loop only, so it needs no lock."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request. `route` is the template of its path, and unknown methods are joined: clients must
        not be able to add series. Streams have no `seconds`."""
        self._requests[method if method in METHODS else "other", route, status] += 1
        if seconds is None:
            return
        counts = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """The counts in Prometheus' format."""
        yield from _head("vestige_http_requests_total", "counter", "Requests answered.")
        for (method, route, status), number in sorted(self._requests.items()):
            labels = _labels(method=method, route=route, status=str(status))
            yield f"vestige_http_requests_total{labels} {number}"
        name = "vestige_http_request_seconds"
        yield from _head(name, "histogram", "Duration of requests without streams.")
        for route, counts in sorted(self._buckets.items()):
            below = 0
            for bound, number in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += number
                yield f"{name}_bucket{_labels(route=route, le=bound)} {below}"
            yield f"{name}_sum{_labels(route=route)} {self._seconds[route]:.6f}"
            yield f"{name}_count{_labels(route=route)} {below}"


def routes(context: ServerContext, metrics: Metrics) -> list[BaseRoute]:
    """The route `/metrics`, for callers who may read everything."""

    async def show(request: Request) -> Response:
        caller = caller_of(request)
        if "read" not in caller.permissions or caller.access != EVERYTHING:
            raise Forbidden("The metrics describe the whole store, and your key has access to a part of it.")
        own = [
            *metrics.lines(),
            *_gauge("http_in_flight", "Requests under way.", metrics.in_flight),
            *_gauge("tasks", "Tasks of the event loop.", len(asyncio.all_tasks())),
            *_gauge("threads", "Threads of the process.", threading.active_count()),
            *_gauge("threads_busy", "Threads that work on requests.", context.limiter.borrowed_tokens),
            *(line for name, one in context.gauges.items() for line in _gauge(name, one.help, one.read())),
            *_background(context.app.engine.background()),
        ]
        if FROM_PEER in request.scope:  # which has the rest itself
            return PlainTextResponse("\n".join(own) + "\n")
        lines = [
            *_head("vestige_info", "gauge", "The version of the server."),
            f"vestige_info{_labels(version=__version__)} 1",
            *(own if context.group is None else await _all_workers(context.group, own, request)),
            *await run_in_thread(context, _store, context),
        ]
        return PlainTextResponse("\n".join(lines) + "\n", headers={"Content-Type": MEDIA_TYPE})

    return [Route(PATH, show, methods=["GET"])]


async def _all_workers(group: WorkerGroup, own: list[str], request: Request) -> list[str]:
    """The metrics of all workers, each with the label `worker`; a worker that does not answer has none."""
    found: dict[int, list[str]] = {group.index: own}

    async def fetch(seat: Seat) -> None:
        with anyio.move_on_after(PEER_SECONDS):
            try:
                status, text = await ask(
                    group, seat.number, "GET", PATH, request.scope["headers"], client=request.scope["client"]
                )
            except (OSError, WorkerGone):
                return
            if status == 200:
                found[seat.index] = text.decode().splitlines()

    async with anyio.create_task_group() as tasks:
        for seat in group.others():
            tasks.start_soon(fetch, seat)
    seats = sorted({group.index, *(seat.index for seat in group.others())})
    up = [f"vestige_worker_up{_labels(worker=str(index))} {int(index in found)}" for index in seats]
    return [
        *_head("vestige_worker_up", "gauge", "Whether the worker answers."),
        *up,
        *labelled({str(index): found[index] for index in sorted(found)}),
    ]


def labelled(parts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The metrics of several workers in one text. Each sample has the label `worker`, and all samples of a
    metric stand together, as the format wants it."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, lines in parts.items():
        metric, is_new = "", False
        for line in lines:
            if line.startswith("# HELP "):
                metric = line.split(" ", 3)[2]
                is_new = metric not in heads
                heads.setdefault(metric, [])
            if line.startswith("#"):
                heads[metric] += [line] if is_new else []
                continue
            name, brace, rest = line.partition("{")
            if not brace:
                name, _, rest = line.partition(" ")
                rest = f"}} {rest}"
            comma = "" if rest.startswith("}") else ","
            samples.setdefault(metric, []).append(f'{name}{{worker="{worker}"{comma}{rest}')
    for metric, head in heads.items():
        yield from head
        yield from samples.get(metric, [])


def _background(work: WorkerStatus) -> Iterator[str]:
    yield from _gauge(
        "background_leader", "Whether this process is the leader for background work.", work.leader
    )
    yield from _gauge("background_waiting", "Reactions to events that wait.", work.waiting)
    yield from _count("background_handled", "Reactions and chores that were run.", work.handled)
    yield from _count("background_failed", "Reactions and chores that failed.", work.failed)
    yield from _count("background_dropped", "Reactions dropped because too many waited.", work.dropped)


def _store(context: ServerContext) -> list[str]:
    try:
        memories = context.app.engine.store.count(ANYTHING, access=EVERYTHING)
    except VestigeError:
        memories = None
    up = _gauge("store_up", "Whether the store answers.", memories is not None)
    return [*up, *(() if memories is None else _gauge("memories", "Memories in the store.", memories))]


def _gauge(name: str, help_text: str, value: float) -> Iterator[str]:
    yield from _head(f"vestige_{name}", "gauge", help_text)
    yield f"vestige_{name} {float(value)!r}"


def _count(name: str, help_text: str, value: int) -> Iterator[str]:
    yield from _head(f"vestige_{name}_total", "counter", help_text)
    yield f"vestige_{name}_total {value}"


def _head(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _labels(**labels: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"

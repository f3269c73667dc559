"""What the server counts, as Prometheus reads it: `/metrics`."""

import asyncio
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from vestige import __version__
from vestige.core.errors import Forbidden, VestigeError
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.engine.context import WorkerStatus
from vestige.transports.http.context import Desk, caller_of, run

MEDIA_TYPE = "text/plain; version=0.0.4"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})


class Metrics:
    """Counts requests. Used by the event loop alone, so there is nothing to lock."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request that was answered. `route` is the template of its path, or the number of series
        would be up to those who send requests; so would be any method. Streams have no `seconds`."""
        self._requests[method if method in METHODS else "other", route, status] += 1
        if seconds is None:
            return
        counts = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """The counts in Prometheus' format."""
        yield from _head("vestige_http_requests_total", "counter", "Requests that were answered.")
        for (method, route, status), number in sorted(self._requests.items()):
            labels = _labels(method=method, route=route, status=str(status))
            yield f"vestige_http_requests_total{labels} {number}"
        name = "vestige_http_request_seconds"
        yield from _head(name, "histogram", "How long answers took, streams left out.")
        for route, counts in sorted(self._buckets.items()):
            below = 0
            for bound, number in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += number
                yield f"{name}_bucket{_labels(route=route, le=bound)} {below}"
            yield f"{name}_sum{_labels(route=route)} {self._seconds[route]:.6f}"
            yield f"{name}_count{_labels(route=route)} {below}"


def routes(desk: Desk, metrics: Metrics) -> list[BaseRoute]:
    """The route `/metrics`, for callers who may read everything."""

    async def show(request: Request) -> Response:
        caller = caller_of(request)
        if "read" not in caller.permissions or caller.access != EVERYTHING:
            raise Forbidden("The numbers are about the whole store, and you may reach only a part of it.")
        lines = [
            *_head("vestige_info", "gauge", "The version of the server."),
            f"vestige_info{_labels(version=__version__)} 1",
            *metrics.lines(),
            *_gauge("http_in_flight", "Requests that are being answered.", metrics.in_flight),
            *_gauge("tasks", "Tasks of the event loop.", len(asyncio.all_tasks())),
            *_gauge("threads", "Threads of the process.", threading.active_count()),
            *_gauge("threads_busy", "Threads that work on requests.", desk.limiter.borrowed_tokens),
            *(line for name, one in desk.gauges.items() for line in _gauge(name, one.told, one.read())),
            *_background(desk.app.engine.background()),
            *await run(desk, _store, desk),
        ]
        return PlainTextResponse("\n".join(lines) + "\n", headers={"Content-Type": MEDIA_TYPE})

    return [Route("/metrics", show, methods=["GET"])]


def _background(work: WorkerStatus) -> Iterator[str]:
    yield from _gauge(
        "background_leader", "Whether this process does the work that one does for all.", work.leader
    )
    yield from _gauge("background_waiting", "Reactions to events that wait to be worked off.", work.waiting)
    yield from _count("background_handled", "Reactions and chores that were worked off.", work.handled)
    yield from _count("background_failed", "Of these, those that failed.", work.failed)
    yield from _count("background_dropped", "Reactions that were dropped, as too many waited.", work.dropped)


def _store(desk: Desk) -> list[str]:
    try:
        memories = desk.app.engine.store.count(ANYTHING, access=EVERYTHING)
    except VestigeError:
        memories = None
    up = _gauge("store_up", "Whether the store answers.", memories is not None)
    return [*up, *(() if memories is None else _gauge("memories", "Memories in the store.", memories))]


def _gauge(name: str, told: str, value: float) -> Iterator[str]:
    yield from _head(f"vestige_{name}", "gauge", told)
    yield f"vestige_{name} {float(value)!r}"


def _count(name: str, told: str, value: int) -> Iterator[str]:
    yield from _head(f"vestige_{name}_total", "counter", told)
    yield f"vestige_{name}_total {value}"


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"


def _labels(**labels: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"

"""What the server counts, as Prometheus reads it: `/metrics`."""

import asyncio
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from vestige import __version__
from vestige.errors import Forbidden, VestigeError
from vestige.models import ANYTHING, EVERYTHING
from vestige.transports.http.desk import Desk, caller_of, run

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
        gauges = {
            "vestige_http_in_flight": float(metrics.in_flight),
            "vestige_tasks": float(len(asyncio.all_tasks())),
            "vestige_threads": float(threading.active_count()),
            "vestige_threads_busy": float(desk.limiter.borrowed_tokens),
            **{f"vestige_{name}": gauge() for name, gauge in desk.gauges.items()},
            **await run(desk, _of_the_store, desk),
        }
        lines = [
            *_head("vestige_info", "gauge", "The version of the server."),
            f"vestige_info{_labels(version=__version__)} 1",
            *metrics.lines(),
            *_gauges(gauges.items()),
        ]
        return PlainTextResponse("\n".join(lines) + "\n", headers={"Content-Type": MEDIA_TYPE})

    return [Route("/metrics", show, methods=["GET"])]


def _of_the_store(desk: Desk) -> dict[str, float]:
    try:
        memories = desk.app.engine.store.count(ANYTHING, access=EVERYTHING)
    except VestigeError:
        return {"vestige_store_up": 0.0}
    return {"vestige_store_up": 1.0, "vestige_memories": float(memories)}


def _gauges(gauges: Iterable[tuple[str, float]]) -> Iterator[str]:
    for name, value in sorted(gauges):
        yield f"# TYPE {name} gauge"
        yield f"{name} {value:g}"


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"


def _labels(**labels: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"

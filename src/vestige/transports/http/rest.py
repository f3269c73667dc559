"""REST: every operation of the registry at its address below /api/v1, with the answers it gives everywhere.

Arguments come from the path and the body, or the query where there is none (`Route.has_body`). What is wrong
with them is told by the registry, in the words of every other transport.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import orjson
from anyio.to_thread import run_sync
from pydantic.alias_generators import to_snake
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Address
from starlette.types import Receive, Scope, Send

from vestige.core.errors import Cancelled, InvalidInput, VestigeError
from vestige.core.invocation import Invocation
from vestige.operations.registry.registry import Operation
from vestige.operations.registry.route import Route
from vestige.transports.arguments import arguments_of
from vestige.transports.http.context import Desk, caller_of, key_of, place_of, read, request_id_of
from vestige.transports.http.limits.bodies_and_rates import retry_after
from vestige.transports.http.limits.fair_queue import OVERLOADED, QUEUE_SECONDS
from vestige.transports.http.limits.responses import check_size, check_texts, left
from vestige.transports.http.limits.worker_pool import Crowded
from vestige.transports.http.openapi import page
from vestige.transports.http.openapi.document import IDEMPOTENCY_HEADER, IDEMPOTENT, PREFIX
from vestige.transports.http.problems import METHOD_NOT_ALLOWED, UNSUPPORTED_MEDIA_TYPE, problem

JSON = "application/json"
_SWITCHES: dict[str, object] = {"true": True, "false": False}


def routes(desk: Desk) -> list[BaseRoute]:
    """The addresses of all operations, and of what describes them."""
    offered: dict[str, list[Route]] = defaultdict(list)
    for route in sorted(desk.registry.routes(), key=Route.order):
        offered[route.path].append(route)
    return [
        *page.routes(desk),
        *(Address(PREFIX + path, _Resource(desk, several)) for path, several in offered.items()),
    ]


class _Resource:
    """What can be done at one path, by method."""

    def __init__(self, desk: Desk, offered: list[Route]) -> None:
        self._desk = desk
        self._offered = {
            str(route.method): _Offer(desk.registry.operations[route.operation], route) for route in offered
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        request_id = request_id_of(request)
        offer = self._offered.get("GET" if request.method == "HEAD" else request.method)
        if offer is None:
            return problem(METHOD_NOT_ALLOWED, request_id, {"Allow": ", ".join(self._offered)})
        try:
            body = await request.body()
            arrived = self._desk.monotonic()
            if body and _media_type(request) != JSON:
                return problem(UNSUPPORTED_MEDIA_TYPE, request_id)
            arguments = await read(self._desk, body, partial(offer.arguments, request))
            body, created = await self._answer(request, offer, arguments, arrived)
        except ClientDisconnect:
            return problem(Cancelled(), request_id)
        except Crowded:
            return problem(OVERLOADED, request_id, retry_after(QUEUE_SECONDS))
        except VestigeError as error:
            return problem(error, request_id)
        return Response(body, status_code=201 if created else 200, media_type=JSON)

    async def _answer(
        self, request: Request, offer: "_Offer", arguments: Mapping[str, Any], arrived: float
    ) -> tuple[bytes, bool]:
        """Run an operation in a thread, which is told when the client goes away: what it answers, as JSON,
        and whether that is something new."""
        desk, gone, long = self._desk, threading.Event(), offer.operation.lane == "long"

        async def watch() -> None:
            await left(request.receive)
            gone.set()

        def work() -> tuple[bytes, bool] | VestigeError:
            # Raised from here it would leave the task group wrapped in a group of one.
            try:
                answer = desk.app.call_operation(
                    Invocation(
                        name=offer.operation.name,
                        arguments=arguments,
                        caller=caller_of(request),
                        request_id=request_id_of(request),
                        cancelled=gone,
                        deadline=desk.deadline(arrived, long=long),
                    )
                )
                check_texts(answer, desk.most_answer)
                body = orjson.dumps(answer)
                check_size(len(body), desk.most_answer)
            except VestigeError as error:
                return error
            return body, offer.route.created(answer)

        if long:  # it has threads of its own; while it waits for one it keeps nobody from being served
            place_of(request)()
        async with (
            desk.lanes.turn(key_of(request), long=long, seconds=QUEUE_SECONDS) as threads,
            anyio.create_task_group() as group,
        ):
            group.start_soon(watch)
            answer = await run_sync(work, limiter=threads)
            group.cancel_scope.cancel()
        if isinstance(answer, VestigeError):
            raise answer
        return answer


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Offer:
    """An operation at an address: how its arguments are read from a request."""

    def __init__(self, operation: Operation, route: Route) -> None:
        self.operation = operation
        self.route = route
        self._kinds = {argument.name: argument.kind for argument in arguments_of(operation)}

    def arguments(self, request: Request, body: bytes) -> dict[str, Any]:
        """All that the request says, for the registry to check."""
        if self.route.has_body:
            if request.query_params:
                raise InvalidInput("This takes no query.", hint="Put the arguments in the body, as JSON.")
            given = _object(body)
        else:
            if body:
                raise InvalidInput("This takes no body.", hint="Put the arguments in the query.")
            given = self._from_query(request)
        for name, value in request.path_params.items():
            _add(given, name, value, "the path")
        key = request.headers.get(IDEMPOTENCY_HEADER)
        if key is not None and IDEMPOTENT in self._kinds:
            _add(given, IDEMPOTENT, key, f"the header {IDEMPOTENCY_HEADER}")
        return given

    def _from_query(self, request: Request) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name in request.query_params:
            values = request.query_params.getlist(name)
            kind = self._kinds.get(to_snake(name))
            if kind == "list":
                given[name] = values
                continue
            if len(values) > 1:
                raise InvalidInput(
                    f"`{name}` is given {len(values)} times.",
                    hint="Give it once.",
                    details={"argument": name},
                )
            given[name] = _SWITCHES.get(values[0], values[0]) if kind == "boolean" else values[0]
        return given


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as exc:
        raise InvalidInput(
            f"The body is not valid JSON: {exc}.", hint='Send arguments as {"name": value, …}.'
        ) from exc
    if not isinstance(given, dict):
        raise InvalidInput("The body is not a JSON object.", hint='Send arguments as {"name": value, …}.')
    return given


def _add(given: dict[str, Any], name: str, value: str, place: str) -> None:
    """Add an argument that has its own place; said elsewhere too it must be the same."""
    if given.get(name, value) != value:
        raise InvalidInput(
            f"`{name}` is given twice: {place} says something else.",
            hint="Give it once.",
            details={"argument": name},
        )
    given[name] = value

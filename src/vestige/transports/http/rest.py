"""REST: every operation of the registry at its address below /api/v1. Arguments come from the path and the
body, or from the query where there is no body (`Route.has_body`). The registry checks them, with the same
errors as on every other transport."""

import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from traceback import clear_frames
from typing import Any

import anyio
import orjson
from anyio.to_thread import run_sync
from pydantic.alias_generators import to_snake
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import Receive, Scope, Send

from vestige.core.caller import Invocation
from vestige.core.errors import Cancelled, InvalidInput, VestigeError
from vestige.operations.registry.registry import Operation, Registry
from vestige.operations.registry.route import Route
from vestige.transports.arguments import arguments_of, invalid_argument
from vestige.transports.http.context import (
    ServerContext,
    caller_of,
    key_of,
    media_type_of,
    parse_body,
    request_id_of,
    run_in_thread,
    slot_release_of,
)
from vestige.transports.http.limits.bodies_and_rates import retry_after
from vestige.transports.http.limits.fair_queue import OVERLOADED, QUEUE_SECONDS
from vestige.transports.http.limits.responses import check_size, check_texts, wait_for_disconnect
from vestige.transports.http.limits.worker_pool import PoolFull
from vestige.transports.http.openapi.document import IDEMPOTENCY_HEADER, IDEMPOTENT, PREFIX, document
from vestige.transports.http.problems import METHOD_NOT_ALLOWED, UNSUPPORTED_MEDIA_TYPE, problem

JSON = "application/json"
_SWITCHES: dict[str, object] = {"true": True, "false": False}

DOCUMENT = f"{PREFIX}/openapi.json"
PAGE = f"{PREFIX}/docs"
SHORT = "/docs"
"""Where people look for the page."""
FILES = {
    PAGE: ("api.html", "text/html; charset=utf-8"),
    f"{PAGE}/api.js": ("api.js", "text/javascript; charset=utf-8"),
    f"{PAGE}/api-form.js": ("api-form.js", "text/javascript; charset=utf-8"),
    f"{PAGE}/api.css": ("api.css", "text/css; charset=utf-8"),
}

_STATIC = Path(__file__).with_name("static")


def description_routes(
    context: ServerContext, *, describe: Callable[[Registry], dict[str, Any]] = document
) -> list[BaseRoute]:
    """The OpenAPI document, and a page to read it and try it out. They contain nothing that is not in the
    source, so they need no key."""
    context.public.update((DOCUMENT, SHORT, f"{PAGE}/", *FILES))  # with a slash it redirects to the page

    making, made = anyio.Lock(), list[bytes]()

    def described() -> bytes:
        return orjson.dumps(describe(context.registry))

    async def answer(request: Request) -> Response:
        # Made on the first request: a server starts without it. Concurrent requests wait without a thread.
        async with making:
            if not made:
                made.append(await run_in_thread(context, described))
        return Response(made[0], media_type=JSON)

    async def to_page(request: Request) -> Response:
        return RedirectResponse(PAGE, status_code=307)

    return [
        StarletteRoute(DOCUMENT, answer),
        StarletteRoute(SHORT, to_page),
        *(StarletteRoute(path, _fixed(*file)) for path, file in FILES.items()),
    ]


def _fixed(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    content = (_STATIC / name).read_bytes()

    async def answer(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return answer


def routes(context: ServerContext) -> list[BaseRoute]:
    routes_here: dict[str, list[Route]] = defaultdict(list)
    for route in sorted(context.registry.routes(), key=Route.order):
        routes_here[route.path].append(route)
    return [
        *description_routes(context),
        *(
            StarletteRoute(PREFIX + path, _Resource(context, several))
            for path, several in routes_here.items()
        ),
    ]


class _Resource:
    """The operations at one path, by method."""

    def __init__(self, context: ServerContext, routes_here: list[Route]) -> None:
        self._context = context
        self._endpoints = {
            str(route.method): _Endpoint(context.registry.operations[route.operation], route)
            for route in routes_here
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        request_id = request_id_of(request)
        endpoint = self._endpoints.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            return problem(METHOD_NOT_ALLOWED, request_id, {"Allow": ", ".join(self._endpoints)})
        try:
            body = await request.body()
            arrived = self._context.monotonic()
            if body and media_type_of(request.headers) != JSON:
                return problem(UNSUPPORTED_MEDIA_TYPE, request_id)
            arguments = await parse_body(self._context.reading, body, partial(endpoint.arguments, request))
            body, created = await self._answer(request, endpoint, arguments, arrived)
        except ClientDisconnect:
            return problem(Cancelled(), request_id)
        except PoolFull:
            return problem(OVERLOADED, request_id, retry_after(QUEUE_SECONDS))
        except VestigeError as error:
            return problem(error, request_id)
        return Response(body, status_code=201 if created else 200, media_type=JSON)

    async def _answer(
        self, request: Request, endpoint: "_Endpoint", arguments: Mapping[str, Any], arrived: float
    ) -> tuple[bytes, bool]:
        """Run an operation in a thread, and cancel it when the client disconnects. Returns the response as
        JSON, and whether something new was created."""
        context, gone, long = self._context, threading.Event(), endpoint.operation.long

        async def watch() -> None:
            await wait_for_disconnect(request.receive)
            gone.set()

        def work() -> tuple[bytes, bool] | VestigeError:
            # Raised here, it would leave the task group wrapped in an exception group.
            try:
                answer = context.app.call_operation(
                    Invocation(
                        name=endpoint.operation.name,
                        arguments=arguments,
                        caller=caller_of(request),
                        request_id=request_id_of(request),
                        cancelled=gone,
                        deadline=context.deadline(arrived, long=long),
                    )
                )
                check_texts(answer, context.most_answer)
                body = orjson.dumps(answer)
                check_size(len(body), context.most_answer)
            except VestigeError as error:
                clear_frames(error.__traceback__)  # they hold the arguments
                return error.with_traceback(None)
            return body, endpoint.route.created(answer)

        if long:  # long work waits for threads of its own, without a slot
            slot_release_of(request)()
        async with (
            context.pools.turn(key_of(request), long=long, seconds=QUEUE_SECONDS) as threads,
            anyio.create_task_group() as group,
        ):
            group.start_soon(watch)
            answer = await run_sync(work, limiter=threads)
            group.cancel_scope.cancel()
        if isinstance(answer, VestigeError):
            try:
                raise answer
            finally:
                del answer  # this frame and the error would keep each other, and the body, in memory
        return answer


class _Endpoint:
    """An operation at an address, and how its arguments are read from a request."""

    def __init__(self, operation: Operation, route: Route) -> None:
        self.operation = operation
        self.route = route
        self._kinds = {argument.name: argument.kind for argument in arguments_of(operation)}

    def arguments(self, request: Request, body: bytes) -> dict[str, Any]:
        """All arguments of a request, for the registry to check."""
        if self.route.has_body:
            if request.query_params:
                raise InvalidInput(
                    "This operation takes no query parameters.",
                    hint="Put the arguments in the body, as JSON.",
                )
            given = _object(body)
        else:
            if body:
                raise InvalidInput(
                    "This operation takes no request body.", hint="Put the arguments in the query."
                )
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
                raise invalid_argument(name, f"`{name}` is given {len(values)} times.", "Give it once.")
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


def _add(given: dict[str, Any], name: str, value: str, source: str) -> None:
    """Add an argument from a header or path; elsewhere it must have the same value."""
    if given.get(name, value) != value:
        message = f"`{name}` is given twice: {source} has another value."
        raise invalid_argument(name, message, "Give it once.")
    given[name] = value

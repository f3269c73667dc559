"""The OpenAPI document of the REST API, and a page to read it and try it out. They contain nothing that is
not in the source, so they need no key."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vestige.operations.registry.registry import Registry
from vestige.transports.http.context import ServerContext, run_in_thread
from vestige.transports.http.openapi.document import PREFIX, document

DOCUMENT = f"{PREFIX}/openapi.json"
PAGE = f"{PREFIX}/docs"
FILES = {
    PAGE: ("api.html", "text/html; charset=utf-8"),
    f"{PAGE}/api.js": ("api.js", "text/javascript; charset=utf-8"),
    f"{PAGE}/api-form.js": ("api-form.js", "text/javascript; charset=utf-8"),
    f"{PAGE}/api.css": ("api.css", "text/css; charset=utf-8"),
}

_STATIC = Path(__file__).parents[1] / "static"


def routes(
    context: ServerContext, *, describe: Callable[[Registry], dict[str, Any]] = document
) -> list[BaseRoute]:
    context.public.update((DOCUMENT, f"{PAGE}/", *FILES))  # with a slash it redirects to the page

    making, made = anyio.Lock(), list[bytes]()

    def described() -> bytes:
        return orjson.dumps(describe(context.registry))

    async def answer(request: Request) -> Response:
        # Made on the first request: a server starts without it. Concurrent requests wait without a thread.
        async with making:
            if not made:
                made.append(await run_in_thread(context, described))
        return Response(made[0], media_type="application/json")

    return [Route(DOCUMENT, answer), *(Route(path, _fixed(*file)) for path, file in FILES.items())]


def _fixed(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    content = (_STATIC / name).read_bytes()

    async def answer(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return answer

"""What describes the REST interface: its OpenAPI document, and a page to read it and try it out.

They hold nothing that is not in the source, so they need no key.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vestige.operations.registry.registry import Registry
from vestige.transports.http.context import Desk, run
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


def routes(desk: Desk, *, describe: Callable[[Registry], dict[str, Any]] = document) -> list[BaseRoute]:
    """The document and the page."""
    desk.public.update((DOCUMENT, f"{PAGE}/", *FILES))  # with a slash it leads to the page

    making, made = anyio.Lock(), list[bytes]()

    def described() -> bytes:
        return orjson.dumps(describe(desk.registry))

    async def answer(request: Request) -> Response:
        # Not made before somebody asks: a server starts without it. Those who ask meanwhile take no thread.
        async with making:
            if not made:
                made.append(await run(desk, described))
        return Response(made[0], media_type="application/json")

    return [Route(DOCUMENT, answer), *(Route(path, _fixed(*file)) for path, file in FILES.items())]


def _fixed(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    """Answers with a file."""
    content = (_STATIC / name).read_bytes()

    async def answer(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return answer

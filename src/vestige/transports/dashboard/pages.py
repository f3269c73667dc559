"""Serves the dashboard: one HTML page for every address, and its scripts and styles.

Everything here is the same for everybody, so it needs no key. What a page shows comes from the REST
operations and the live events, with the login of its reader.
"""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.context import ServerContext

FILES = Path(__file__).with_name("static")
PAGES = (
    "/", "/search", "/memories", "/map", "/timeline", "/feed", "/inbox", "/intentions", "/dreams",
    "/schedule", "/importance", "/activation", "/contradictions", "/duplicates", "/decisions", "/domains",
    "/session", "/sessions", "/projects", "/trace", "/operate", "/settings",
)  # fmt: skip
"""The addresses of pages. Those of `BELOW` have pages below them, such as /memories/ID."""
BELOW = ("/memories", "/domains")
ASSETS = "/static/app"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOREVER = "public, max-age=31536000, immutable"
_SMALLEST = 512
"""Bytes from which a file is worth compressing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file with its compressed form, if that is smaller."""

    content: bytes
    compressed: bytes | None
    tag: str
    media_type: str

    @classmethod
    def of(cls, content: bytes, suffix: str) -> "Asset":
        packed = gzip.compress(content, mtime=0) if len(content) >= _SMALLEST else content
        return cls(
            content=content,
            compressed=packed if len(packed) < len(content) else None,
            tag=f'"{hashlib.sha256(content).hexdigest()[:32]}"',
            media_type=MEDIA_TYPES[suffix],
        )

    def respond(self, request: Request, keeping: str) -> Response:
        headers = {"ETag": self.tag, "Cache-Control": keeping, "Vary": "Accept-Encoding"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        accepted = [
            one.partition(";")[0].strip() for one in request.headers.get("accept-encoding", "").split(",")
        ]
        if self.compressed is not None and "gzip" in accepted:
            headers["Content-Encoding"] = "gzip"
            return Response(self.compressed, headers=headers, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


@cache
def assets() -> Mapping[str, Asset]:
    """All files by their path, read once."""
    return {
        path.relative_to(FILES).as_posix(): Asset.of(path.read_bytes(), path.suffix)
        for path in sorted(FILES.rglob("*"))
        if path.suffix in MEDIA_TYPES
    }


@cache
def version() -> str:
    """Changes with every file, so that browsers may keep the files of a version for ever."""
    both = hashlib.sha256()
    for path, asset in assets().items():
        both.update(f"{path} {asset.tag}\n".encode())
    return both.hexdigest()[:16]


@cache
def shell() -> Asset:
    """The HTML page, with the addresses of this version and hints to load all scripts at once."""
    base = f"{ASSETS}/{version()}"
    scripts = [path for path in assets() if path.endswith(".js")]
    hints = "\n    ".join(f'<link rel="modulepreload" href="{escape(f"{base}/{path}")}">' for path in scripts)
    page = assets()["index.html"].content.decode("utf-8")
    return Asset.of(page.replace("{base}", base).replace("<!-- modules -->", hints).encode(), ".html")


def routes(context: ServerContext) -> list[BaseRoute]:
    context.public.update((*PAGES, *(f"{path}/*" for path in BELOW)))

    async def page(request: Request) -> Response:
        return shell().respond(request, "no-cache")

    async def asset(request: Request) -> Response:
        found = assets().get(request.path_params["path"])
        if found is None or request.path_params["path"] == "index.html":
            return Response(status_code=404)
        current = request.path_params["version"] == version()
        return found.respond(request, _FOREVER if current else "no-cache")

    return [
        *(Route(path, page, methods=["GET"]) for path in PAGES),
        *(Route(f"{path}/{{id}}", page, methods=["GET"]) for path in BELOW),
        Route(f"{ASSETS}/{{version}}/{{path:path}}", asset, methods=["GET"]),
    ]

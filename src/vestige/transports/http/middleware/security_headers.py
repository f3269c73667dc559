"""What every response says to browsers: what a page may do, and that answers are not kept."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.transports.http.problems import starts

STATIC = "/static/"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_ALWAYS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",  # nginx would hold events back
}
"""What a stream of events says of itself."""


class SecurityHeaders:
    """Adds them to every response. Files of ours may be kept, but are asked for again each time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and what comes back with the headers."""
        keeping = "no-cache" if scope["path"].startswith(STATIC) else "no-store"

        async def telling(message: Message) -> None:
            if starts(message):
                headers = MutableHeaders(scope=message)
                headers.update(_ALWAYS)
                headers.setdefault("Cache-Control", keeping)
            await send(message)

        await self._app(scope, receive, telling)

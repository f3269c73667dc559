"""The checks of request headers that MCP requires. Pure functions."""

import binascii
from base64 import b64decode

from starlette.datastructures import Headers

from vestige.transports.http.context import media_type_of
from vestige.transports.mcp.protocol import versions
from vestige.transports.mcp.protocol.jsonrpc import INVALID_REQUEST, ProtocolError, Request, shown

VERSION = "mcp-protocol-version"
SESSION = "mcp-session-id"
METHOD = "mcp-method"
NAME = "mcp-name"
HEADER_MISMATCH = -32020

JSON = "application/json"
EVENTS = "text/event-stream"

_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ENCODED, _END = "=?base64?", "?="


class HeaderRefused(Exception):
    """A refused request; `request_id` is that of the message, if known."""

    def __init__(self, status: int, error: ProtocolError, request_id: str | int | None = None) -> None:
        self.status = status
        self.error = error
        self.request_id = request_id
        super().__init__(error.message)


def refused(status: int, why: str) -> HeaderRefused:
    """A refusal of the request itself, whatever its message."""
    return HeaderRefused(status, ProtocolError(INVALID_REQUEST, why))


def check_content_type(headers: Headers) -> None:
    if media_type_of(headers) != JSON:
        raise refused(415, f"The Content-Type must be {JSON}")


def check_accept(headers: Headers, *wanted: str) -> None:
    """Refuse a client that does not accept every form of the response."""
    ranges = [one.partition(";")[0].strip().lower() for one in headers.get("accept", "*/*").split(",")]
    for kind in wanted:
        if not {kind, kind.partition("/")[0] + "/*", "*/*"}.intersection(ranges):
            raise refused(406, f"The client must accept {' and '.join(wanted)}")


def is_modern(headers: Headers, request: Request | None) -> bool:
    """Whether a request is of the stateless era, by its header, or by its envelope if the header is absent
    or of the other era."""
    version = headers.get(VERSION)
    if version is not None and version not in versions.LEGACY:
        return True
    return request is not None and request.method != "initialize" and versions.VERSION_KEY in request.meta


def check_routing(headers: Headers, request: Request) -> None:
    """Refuse headers that contradict the message: proxies may route by them."""
    for header in (VERSION, METHOD, NAME):
        if len(headers.getlist(header)) > 1:
            raise _mismatch(f"{header} is given more than once")
    version = versions.enveloped_version(request)
    _agree(VERSION, headers.get(VERSION), version)
    _agree(METHOD, headers.get(METHOD), request.method)
    field = _NAMED_BY.get(request.method)
    named = request.params.get(field) if field else None
    if isinstance(named, str):
        _agree(NAME, _decoded(headers.get(NAME)), named)


def _agree(header: str, given: str | None, stated: str) -> None:
    if given is None:
        raise _mismatch(f"{header} is missing")
    if given != stated:
        raise _mismatch(f"{header} is {shown(given)!r}, and the message says {shown(stated)!r}")


def _decoded(value: str | None) -> str | None:
    """The text of a header value, which may be encoded in base64."""
    if value is None or not (value.startswith(_ENCODED) and value.endswith(_END)):
        return value
    try:
        return b64decode(value[len(_ENCODED) : -len(_END)], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _mismatch(f"{NAME} is not base64 of UTF-8") from None


def _mismatch(why: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {why}")

"""The two generations of MCP versions, and their answers. Pure.

*Legacy* versions start with the `initialize` handshake. *Modern* ones are stateless: each request
carries its version and the client's capabilities in `params._meta`, the envelope.
"""

from vestige.transports.mcp.protocol.jsonrpc import (
    INVALID_PARAMS,
    Message,
    ProtocolError,
    Request,
    as_id,
    shown,
)

BATCHING = "2025-03-26"
LEGACY = ("2024-11-05", BATCHING, "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)

RESOURCE_NOT_FOUND = -32002
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = _PREFIX + "protocolVersion"
CAPABILITIES_KEY = _PREFIX + "clientCapabilities"
CLIENT_KEY = _PREFIX + "clientInfo"
LOG_LEVEL_KEY = _PREFIX + "logLevel"
SERVER_KEY = _PREFIX + "serverInfo"

_LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

STATIC: Message = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""Cache hints for lists that are the same for every client until the next release."""

STATIC_FOR_ONE: Message = {**STATIC, "cacheScope": "private"}
"""Cache hints for lists that depend on the client's permissions."""

PERSONAL: Message = {"ttlMs": 0, "cacheScope": "private"}
"""Cache hints for user data that changes: the contents of a resource."""


MOST_NAMED_CHARS = 60


def client_name(stated: object) -> str | None:
    """The program that a client says it is, as text that can be shown; None if it does not say."""
    name = stated.get("name") if isinstance(stated, dict) else None
    if not isinstance(name, str):
        return None
    shown_name = "".join(one for one in " ".join(name.split()) if one.isprintable())
    return shown_name[:MOST_NAMED_CHARS] or None


def is_modern(request: Request) -> bool:
    """The generation of a message, decided per message. `initialize` is legacy even inside an envelope (a
    client whose probe timed out sends it); any envelope key marks a modern request, so that an incomplete
    envelope gets a modern error."""
    if request.method == "initialize":
        return False
    envelope = (VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY)
    return request.method == "server/discover" or any(key in request.meta for key in envelope)


def enveloped_version(request: Request) -> str:
    """Check the keys and types of a modern envelope; returns its version."""
    meta = request.meta
    for key in (VERSION_KEY, CAPABILITIES_KEY):
        if key not in meta:
            raise ProtocolError(INVALID_PARAMS, f'Invalid params: "_meta" must have "{key}"')
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f'Invalid params: "{VERSION_KEY}" must be a string')
    if not isinstance(meta[CAPABILITIES_KEY], dict):
        raise ProtocolError(INVALID_PARAMS, f'Invalid params: "{CAPABILITIES_KEY}" must be an object')
    return version


def modern_version(request: Request) -> str:
    """The version of a modern request, if it is complete and supported."""
    version = enveloped_version(request)
    if version not in MODERN:
        data: Message = {"supported": list(MODERN), "requested": version}
        raise ProtocolError(UNSUPPORTED_VERSION, f"Unsupported protocol version: {shown(version)}", data)
    return version


def check_options(request: Request) -> None:
    """Check the optional envelope keys of a modern request."""
    if LOG_LEVEL_KEY in request.meta and request.meta[LOG_LEVEL_KEY] not in _LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, f'Invalid params: "{LOG_LEVEL_KEY}" is not a log level')
    if "progressToken" in request.meta and as_id(request.meta["progressToken"]) is None:
        raise ProtocolError(INVALID_PARAMS, 'Invalid params: "progressToken" must be a string or an integer')


def legacy_version(request: Request) -> str:
    """The version that a handshake agrees on: the client's if supported, else our newest."""
    asked = request.params.get("protocolVersion")
    if not isinstance(asked, str):
        raise ProtocolError(INVALID_PARAMS, 'Invalid params: "protocolVersion" must be a string')
    return asked if asked in LEGACY else LEGACY[-1]


def capabilities(version: str) -> Message:
    """The capabilities of the server. In modern versions an absent flag means no."""
    if version in MODERN:
        return {"tools": {}, "prompts": {}, "resources": {}}
    return {
        "tools": {"listChanged": False},
        "prompts": {"listChanged": False},
        "resources": {"listChanged": False, "subscribe": False},
    }


def complete(version: str, body: Message, server_info: Message, cache: Message | None = None) -> Message:
    """A complete result in the form of its version; `cache` is for methods with cache hints."""
    if version not in MODERN:
        return body
    return {"resultType": "complete", **body, **(cache or {}), "_meta": {SERVER_KEY: server_info}}


def input_required(requests: Message, server_info: Message) -> Message:
    """The modern answer that asks the client for input: the client then repeats its request with it."""
    return {"resultType": "input_required", "inputRequests": requests, "_meta": {SERVER_KEY: server_info}}


def resource_not_found(version: str, uri: str, error: Message | None = None) -> ProtocolError:
    """The error for an unknown resource, with the error value if there is one."""
    code = INVALID_PARAMS if version in MODERN else RESOURCE_NOT_FOUND
    data: Message = {"uri": uri} if error is None else {"uri": uri, "error": error}
    return ProtocolError(code, "Resource not found", data)

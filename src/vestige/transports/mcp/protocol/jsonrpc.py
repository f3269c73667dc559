"""JSON-RPC 2.0 as MCP uses it: parsing lines, creating replies. Pure."""

import json

Message = dict[str, object]
RequestId = str | int

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_SHOWN_CHARS = 200


class ProtocolError(Exception):
    """A message that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Message | None = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(message)


class Request:
    """A well-formed request; a notification if it has no id."""

    def __init__(self, request_id: RequestId | None, method: str, params: Message) -> None:
        self.id = request_id
        self.method = method
        self.params = params

    @property
    def meta(self) -> Message:
        """`params._meta`, or an empty object."""
        return as_object(self.params.get("_meta")) or {}


def as_object(value: object) -> Message | None:
    """`value` if it is a JSON object."""
    return value if isinstance(value, dict) else None


def as_id(value: object) -> RequestId | None:
    """`value` if it is a string or an integer, as ids and progress tokens must be."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def shown(text: str) -> str:
    """A caller's text, shortened for an error message."""
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def parse(line: bytes) -> object:
    try:
        value: object = _DECODER.decode(line.decode("utf-8").removeprefix("\ufeff"))
    except RecursionError:
        raise ProtocolError(PARSE_ERROR, "Parse error: nested too deeply") from None
    except ValueError as error:  # JSON and UTF-8 errors, and integers of thousands of digits
        raise ProtocolError(PARSE_ERROR, f"Parse error: {shown(str(error))}") from None
    return value


def dumps(value: object) -> str:
    """Compact JSON text. Raises ValueError, TypeError or RecursionError for values JSON cannot hold."""
    return _ENCODER.encode(value)


def encode(message: Message | list[Message]) -> bytes:
    """One message, or a batch of them, as a line."""
    try:
        return dumps(message).encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        # A lone surrogate from the client (in an id or a name) has no UTF-8 form, but JSON can escape it.
        return _ASCII_ENCODER.encode(message).encode("ascii") + b"\n"


def is_reply(message: Message) -> bool:
    """Whether this answers a request of ours."""
    return "method" not in message and ("result" in message or "error" in message)


def read_request(message: object) -> Request:
    """Check that a value is one request or notification."""
    fields = as_object(message)
    if fields is None:
        raise ProtocolError(INVALID_REQUEST, "Invalid request: a message must be a JSON object")
    if fields.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    request_id = as_id(fields.get("id"))
    if "id" in fields and request_id is None:
        raise ProtocolError(INVALID_REQUEST, "Invalid request: an id must be a string or an integer")
    method = fields.get("method")
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, 'Invalid request: "method" must be a string')
    params = fields.get("params")
    if params is None:  # absent, or null from some clients
        return Request(request_id, method, {})
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, 'Invalid params: "params" must be an object')
    return Request(request_id, method, params)


def result_reply(request_id: RequestId, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_reply(request_id: RequestId | None, error: ProtocolError) -> Message:
    """A failed answer; without a known id, `id` is null, as JSON-RPC 2.0 requires."""
    shape: Message = {"code": error.code, "message": error.message}
    if error.data is not None:
        shape["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": shape}


def notification(method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}

"""What a job comes to, as the body of a result or as a JSON-RPC error. Pure."""

from vestige.transports.mcp.protocol import eras
from vestige.transports.mcp.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Message,
    ProtocolError,
    dumps,
)
from vestige.transports.mcp.protocol.messages import Done, Failed, Job, Outcome

UNPRINTABLE: Message = {"code": "internal", "message": "The answer could not be written as JSON."}

_CALLER_ERRORS = ("invalid_input", "unknown_argument", "too_large")


def tool_body(outcome: Outcome) -> Message:
    """The answer as text and as structure; a failure looks the same but for its mark."""
    text, outcome = _written(outcome)
    failed = isinstance(outcome, Failed)
    structured = {"error": outcome.error} if isinstance(outcome, Failed) else outcome.value
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": failed}


def resource_body(job: Job, outcome: Outcome, media_type: str | None) -> Message:
    """The content of a resource. These have no `isError`, so a failure raises ProtocolError."""
    text, outcome = _written(outcome)
    if isinstance(outcome, Failed):
        raise _resource_error(job, outcome.error)
    return {"contents": [{"uri": job.name, "mimeType": media_type, "text": text}]}


def _written(outcome: Outcome) -> tuple[str, Outcome]:
    """The outcome's JSON text; an outcome JSON cannot hold becomes a failure that it can."""
    if isinstance(outcome, Done) and outcome.text is not None:
        return outcome.text, outcome
    try:
        return dumps(outcome.value if isinstance(outcome, Done) else {"error": outcome.error}), outcome
    except (ValueError, TypeError, RecursionError):
        return dumps({"error": UNPRINTABLE}), Failed(UNPRINTABLE)


def _resource_error(job: Job, error: Message) -> ProtocolError:
    """The error value goes into the JSON-RPC error's data."""
    if error.get("code") == "not_found":
        return eras.resource_not_found(job.version, job.name, error)
    code = INVALID_PARAMS if error.get("code") in _CALLER_ERRORS else INTERNAL_ERROR
    return ProtocolError(code, str(error.get("message")), {"uri": job.name, "error": error})

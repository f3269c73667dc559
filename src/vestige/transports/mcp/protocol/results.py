"""Results of jobs as bodies or as JSON-RPC errors. Pure."""

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
    """The answer as text and as structure; an error differs only in `isError`."""
    text, outcome = _written(outcome)
    failed = isinstance(outcome, Failed)
    structured = {"error": outcome.error} if isinstance(outcome, Failed) else outcome.value
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": failed}


def resource_body(job: Job, outcome: Outcome, media_type: str | None) -> Message:
    """The content of a resource. It has no `isError`, so a failure raises ProtocolError."""
    text, outcome = _written(outcome)
    if isinstance(outcome, Failed):
        raise _resource_error(job, outcome.error)
    return {"contents": [{"uri": job.name, "mimeType": media_type, "text": text}]}


def _written(outcome: Outcome) -> tuple[str, Outcome]:
    """The outcome's JSON text; an outcome that JSON cannot hold becomes a failure."""
    if isinstance(outcome, Done) and outcome.text is not None:
        return outcome.text, outcome
    try:
        return dumps(outcome.value if isinstance(outcome, Done) else {"error": outcome.error}), outcome
    except (ValueError, TypeError, RecursionError):
        return dumps({"error": UNPRINTABLE}), Failed(UNPRINTABLE)


def _resource_error(job: Job, error: Message) -> ProtocolError:
    """The JSON-RPC error of a failed resource, with the error value in its data."""
    if error.get("code") == "not_found":
        return eras.resource_not_found(job.version, job.name, error)
    code = INVALID_PARAMS if error.get("code") in _CALLER_ERRORS else INTERNAL_ERROR
    return ProtocolError(code, str(error.get("message")), {"uri": job.name, "error": error})

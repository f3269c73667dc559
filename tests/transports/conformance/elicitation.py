"""Fixtures of the stateless era that ask their client before they answer. Pure."""

import hashlib
import hmac
from typing import Any

from tests.transports.conformance.fixtures import text
from vestige.transports.mcp.protocol import versions
from vestige.transports.mcp.protocol.jsonrpc import INVALID_PARAMS, Message, ProtocolError, Request, as_object

_SECRET = b"of the fixtures"


class Asks(Exception):
    """The client must be asked first."""

    def __init__(self, questions: dict[str, Message], state: str | None = None) -> None:
        self.questions = questions
        self.state = state
        super().__init__("asked")


def form(message: str, name: str, kind: str = "string") -> Message:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words: str, tokens: int) -> Message:
    message = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


ROOTS: Message = {"method": "roots/list", "params": {}}
NAME = {"user_name": form("What is your name?", "name")}
CONFIRM = {"confirm": form("Please confirm", "ok", "boolean")}


def needed(name: str) -> dict[str, Message]:
    """What a tool or prompt asks at first."""
    match name.removeprefix("test_input_required_result_"):
        case "sampling":
            return {"capital_question": sampling("What is the capital of France?", 100)}
        case "list_roots":
            return {"client_roots": ROOTS}
        case "request_state" | "tampered_state":
            return CONFIRM
        case "multiple_inputs" | "capabilities":
            return {**NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
        case "multi_round":
            return {"step1": form("Step 1: What is your name?", "name")}
        case "prompt":
            return {"user_context": form("What context should the prompt use?", "context")}
        case _:
            return NAME


def answers(request: Request, name: str) -> dict[str, Any]:
    """What the client answered; raises Asks as long as something is missing."""
    told = as_object(request.params.get("inputResponses")) or {}
    keeps_state = name.endswith(("request_state", "tampered_state", "multiple_inputs", "multi_round"))
    state = request.params.get("requestState")
    if state is not None and state not in (_signed(name, 1), _signed(name, 2)):
        raise ProtocolError(INVALID_PARAMS, "The state is not one that was given out")
    if name.endswith("multi_round") and (state == _signed(name, 2) or "step1" in told):
        if state != _signed(name, 2) or as_object(told.get("step2")) is None:
            color = form("Step 2: What is your favorite color?", "color")
            raise Asks({"step2": color}, _signed(name, 2))
        return told
    questions = {key: one for key, one in needed(name).items() if _declared(request, one)}
    missing = {key: one for key, one in questions.items() if not _answered(one, told.get(key))}
    if missing:
        raise Asks(missing, _signed(name, 1) if keeps_state else None)
    return told


def _declared(request: Request, question: Message) -> bool:
    """Whether the client says that it can answer this."""
    capabilities = as_object(request.meta.get(versions.CAPABILITIES_KEY)) or {}
    return str(question["method"]).partition("/")[0] in capabilities


def _answered(question: Message, told: object) -> bool:
    fields = as_object(told)
    if fields is None:
        return False
    kind = {"elicitation/create": "action", "sampling/createMessage": "content", "roots/list": "roots"}
    return kind[str(question["method"])] in fields


def _signed(name: str, step: int) -> str:
    words = f"{name}-{step}"
    return f"{words}.{hmac.new(_SECRET, words.encode(), hashlib.sha256).hexdigest()}"

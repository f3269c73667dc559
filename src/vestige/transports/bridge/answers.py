"""Converts the result of a tool into `{success, data, error}`, with the texts of a search truncated on
request."""

from collections.abc import Mapping

import orjson

from vestige.transports.bridge.child import Message
from vestige.transports.http.problems import Refusal

TEXTS = ("content", "body", "text", "merged_body")
_WRONG_ARGUMENTS = ("invalid_input", "unknown_argument")


class BridgeRefused(Exception):
    """A request that the bridge refuses, with the reason."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


def answer(result: Message) -> Message:
    """The response for the result of a tool; BridgeRefused where the tool does not know or accept an
    argument. A decision of the tool against a request is a response, too: clients look at `success`, and the
    connection worked."""
    structured = structure(result)
    if not result.get("isError"):
        return {"success": True, "data": _data(result, structured), "error": None}
    error = _as_object(structured.get("error"))
    code = str(error.get("code") or "tool_error")
    details = _as_object(error.get("details"))
    if code in _WRONG_ARGUMENTS and "argument" in details:
        hint = error.get("hint")
        raise BridgeRefused(
            Refusal(
                status=422,
                code=code,
                message=str(error.get("message")),
                hint=None if hint is None else str(hint),
                details=details,
            )
        )
    message = " ".join(str(error[name]) for name in ("message", "hint") if error.get(name))
    return failure(code, message or _texts(result))


def failure(code: str, message: str) -> Message:
    return {"success": False, "data": None, "error": message, "code": code}


def structure(result: Message) -> Message:
    """The structured data of a result; empty if there is only text."""
    return dict(_as_object(result.get("structuredContent")))


def restructured(result: Message, structured: Message) -> Message:
    """The result with other data, and its text as the same data in JSON."""
    text = orjson.dumps(structured).decode()
    return {**result, "content": [{"type": "text", "text": text}], "structuredContent": structured}


def truncated(result: Message, most_chars: int) -> Message:
    """The result of a search with texts truncated to `most_chars`; 0 leaves them whole. A truncated entry has
    a note of that, and the length of its text."""
    structured = structure(result)
    entries = structured.get("results")
    if not most_chars or result.get("isError") or not isinstance(entries, list):
        return result
    cut = [_cut(entry, most_chars) if isinstance(entry, dict) else entry for entry in entries]
    return result if cut == entries else restructured(result, {**structured, "results": cut})


def _cut(entry: Message, most_chars: int) -> Message:
    texts = {name: entry[name] for name in TEXTS if isinstance(entry.get(name), str)}
    long = {name: str(text) for name, text in texts.items() if len(str(text)) > most_chars}
    if not long:
        return entry
    shorter = {name: text[:most_chars] for name, text in long.items()}
    return {**entry, **shorter, "body_length": max(map(len, long.values())), "truncated_body": True}


def _data(result: Message, structured: Message) -> Message:
    return {"content": result.get("content") or [], "structured": structured or None}


def _texts(result: Message) -> str:
    content = result.get("content")
    blocks = [_as_object(one) for one in content] if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if "text" in block) or "The tool failed."


def _as_object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}

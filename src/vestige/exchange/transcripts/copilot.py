"""Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`, before that `<id>.jsonl`."""

from collections.abc import Iterator

from vestige.core.transcripts import Action, Entry, Result, SessionFacts, Step
from vestige.exchange.transcripts.clean import said
from vestige.exchange.transcripts.shape import (
    Json,
    State,
    action,
    listing,
    mapping,
    seconds,
    shortened,
    text_of,
)

CLIENT = "copilot"


def steps(record: Json, state: State) -> Iterator[Step]:
    """The steps of one event."""
    state["line"] = int(state.get("line", 0)) + 1
    data = mapping(record.get("data"))
    at = seconds(record.get("timestamp"))
    if record.get("type") == "session.start":
        state["session"] = text_of(data.get("sessionId")) or str(state["session"])
    session = str(state["session"])
    context = mapping(data.get("context"))
    yield SessionFacts(
        id=session,
        cwd=text_of(context.get("cwd")),
        repository=text_of(context.get("repository")),
        branch=text_of(context.get("branch")),
        title=text_of(data.get("title")) if record.get("type") == "session.title_changed" else None,
        title_rank=2,
        started=at,
        ended=at,
    )
    made = _entry(record, data, session, f"{session}:{record.get('id') or state['line']}", at)
    if made is not None:
        yield made


def _entry(record: Json, data: Json, session: str, uid: str, at: float | None) -> Entry | None:
    match record.get("type"):
        case "user.message":
            return Entry(
                session=session, uid=uid, role="user", at=at, text=said(str(data.get("content") or ""))
            )
        case "assistant.message":
            calls = (
                action(one.get("toolCallId"), one.get("name"), one.get("arguments"))
                for one in listing(data.get("toolRequests"))
            )
            text = said(str(data.get("content") or ""))
            return Entry(session=session, uid=uid, role="assistant", at=at, text=text, actions=tuple(calls))
        case "tool.execution_start":
            made = action(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
            return Entry(session=session, uid=uid, role="tool", at=at, actions=(made,))
        case "tool.execution_complete":
            result = mapping(data.get("result"))
            ended = Result(id=str(data.get("toolCallId") or ""), status=0 if data.get("success") else 1)
            output = shortened(str(result.get("content") or mapping(data.get("error")).get("message") or ""))
            return Entry(session=session, uid=uid, role="tool", at=at, output=output, results=(ended,))
        case "session.shutdown":
            changed = mapping(data.get("codeChanges")).get("filesModified")
            files = tuple(str(one) for one in changed) if isinstance(changed, list) else ()
            if files:
                edit = Action(id=uid, name="edit", files=files, detail=" ".join(files))
                return Entry(session=session, uid=uid, role="tool", at=at, actions=(edit,))
    return None

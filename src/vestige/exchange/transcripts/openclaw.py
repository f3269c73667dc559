"""OpenClaw and pi: `~/.openclaw/agents/<agent>/sessions/<session>.jsonl`, a tree by `id` and `parentId`."""

from collections.abc import Iterator

from vestige.core.transcripts import Entry, Result, SessionFacts, Step
from vestige.exchange.transcripts.clean import said
from vestige.exchange.transcripts.shape import (
    Json,
    State,
    action,
    joined,
    listing,
    mapping,
    seconds,
    shortened,
    text_of,
)

CLIENT = "openclaw"
NOISE = frozenset({"NO_REPLY", "HEARTBEAT_OK"})
"""What an agent says when a timer woke it and there was nothing to do."""


def steps(record: Json, state: State) -> Iterator[Step]:
    """The steps of one line. `state` has the session's key (`resume`) where `sessions.json` names it."""
    at = seconds(record.get("timestamp"))
    if record.get("type") == "session":
        state["session"] = text_of(record.get("id")) or str(state["session"])
        yield SessionFacts(
            id=str(state["session"]),
            cwd=text_of(record.get("cwd")),
            parent=text_of(record.get("parentSession")),
            started=at,
            ended=at,
            resume=text_of(state.get("resume")),
        )
        return
    session = str(state["session"])
    name = text_of(record.get("id"))
    if name is None:
        return
    yield SessionFacts(id=session, started=at, ended=at)
    yield _entry(record, session, f"{session}:{name}", at)


def _entry(record: Json, session: str, uid: str, at: float | None) -> Entry:
    """The entry of a line. One without words stays as a link of the tree."""
    above = text_of(record.get("parentId"))
    link = Entry(session=session, uid=uid, parent=f"{session}:{above}" if above else None, role="tool", at=at)
    match record.get("type"):
        case "compaction" | "branch_summary":
            return _filled(link, "summary", said(str(record.get("summary") or "")))
        case "custom_message":
            return link  # put in by a plugin
        case "message":
            return _message(mapping(record.get("message")), link)
    return link


def _message(message: Json, link: Entry) -> Entry:
    role, content = message.get("role"), message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
    text = joined(str(one.get("text") or "") for one in blocks if one.get("type") == "text")
    if role == "toolResult":
        status = 1 if message.get("isError") else 0
        return Entry(
            session=link.session, uid=link.uid, parent=link.parent, role="tool", at=link.at,
            output=shortened(text), results=(Result(id=str(message.get("toolCallId") or ""), status=status),),
        )  # fmt: skip
    if role not in ("user", "assistant") or text.strip() in NOISE:
        return link
    return Entry(
        session=link.session,
        uid=link.uid,
        parent=link.parent,
        role=role,
        at=link.at,
        text=said(text),
        thought=said(
            joined(str(one.get("thinking") or "") for one in blocks if one.get("type") == "thinking")
        ),
        actions=tuple(
            action(one.get("id"), one.get("name"), one.get("arguments"))
            for one in blocks
            if one.get("type") == "toolCall"
        ),
    )


def _filled(link: Entry, role: str, text: str) -> Entry:
    return Entry(
        session=link.session, uid=link.uid, parent=link.parent, at=link.at, text=text,
        role="summary" if role == "summary" else "assistant",
    )  # fmt: skip

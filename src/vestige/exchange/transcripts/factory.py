"""Factory's Droid: `~/.factory/sessions/**/*.jsonl`; and Cursor's command line, whose lines have the same
messages without ids or times: `~/.cursor/projects/<folder>/agent-transcripts/**/*.jsonl`."""

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

CLIENT = "factory"
CURSOR_CLIENT = "cursor-cli"


def steps(record: Json, state: State) -> Iterator[Step]:
    """The steps of one line."""
    state["line"] = int(state.get("line", 0)) + 1
    if record.get("type") == "session_start":
        state["session"] = text_of(record.get("id")) or str(state["session"])
        title = text_of(record.get("sessionTitle")) or text_of(record.get("title"))
        yield SessionFacts(
            id=str(state["session"]), cwd=text_of(record.get("cwd")), title=title, title_rank=2,
            parent=text_of(record.get("parent")),
        )  # fmt: skip
        return
    session = str(state["session"])
    message = mapping(record.get("message"))
    role = message.get("role") or record.get("role")
    if role not in ("user", "assistant"):
        return
    at = seconds(record.get("timestamp"))
    yield SessionFacts(id=session, started=at, ended=at)
    uid = f"{session}:{record.get('id') or state['line']}"
    yield entry_of(message.get("content"), Entry(session=session, uid=uid, role=role, at=at))


def entry_of(content: object, one: Entry) -> Entry:
    """An entry with the text, the tool calls and the tool results of blocks as Anthropic's API has them."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    text = said(joined(str(block.get("text") or "") for block in blocks if block.get("type") == "text"))
    return Entry(
        session=one.session,
        uid=one.uid,
        parent=one.parent,
        role="tool" if results and not text else one.role,
        at=one.at,
        text=text,
        thought=said(
            joined(str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking")
        ),
        output=joined(shortened(_text(block.get("content"))) for block in results),
        actions=tuple(
            action(block.get("id"), block.get("name"), block.get("input"))
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        results=tuple(
            Result(id=str(block.get("tool_use_id") or ""), status=1 if block.get("is_error") else 0)
            for block in results
        ),
        replaces=one.replaces,
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return joined(str(one.get("text") or "") for one in listing(content))

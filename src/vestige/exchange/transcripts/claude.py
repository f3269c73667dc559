"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, one record a line.

A message of the model is spread over several lines, one block each, with the same `message.id`. `parentUuid`
makes a tree: an edited prompt starts a branch, a compaction a new root. Lines that are copied into another
file when a session is resumed keep their `uuid`.
"""

from collections.abc import Iterator

from vestige.core.transcripts import Action, Entry, Result, SessionFacts, Step, Titled
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

CLIENT = "claude"
SYNTHETIC = "<synthetic>"
TITLES = {"ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
LEFT_OUT = ("isMeta", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_EXIT_CODE = "Exit code "


def steps(record: Json, state: State) -> Iterator[Step]:
    """The steps of one line. `state` has the session that the file is of (`session`)."""
    session = str(state["session"])
    kind = text_of(record.get("type"))
    if kind in TITLES:
        name, rank = TITLES[kind]
        if (title := text_of(record.get(name))) is not None and not state.get("subagent"):
            yield SessionFacts(id=session, title=title, title_rank=rank)
        return
    if kind == "summary":
        title, leaf = text_of(record.get("summary")), text_of(record.get("leafUuid"))
        if title and leaf:
            yield Titled(session=session, leaf=leaf, title=title)
        return
    if kind not in ("user", "assistant", "system", "attachment", "progress"):
        return
    at = seconds(record.get("timestamp"))
    yield SessionFacts(
        id=session,
        cwd=text_of(record.get("cwd")),
        branch=text_of(record.get("gitBranch")),
        subagent=bool(state.get("subagent")),
        parent=text_of(state.get("parent")),
        started=at,
        ended=at,
    )
    uid = text_of(record.get("uuid"))
    if uid is not None:
        yield _entry(record, session, uid, at)


def _entry(record: Json, session: str, uid: str, at: float | None) -> Entry:
    """The entry of a line. One without words stays as a link of the tree."""
    message = mapping(record.get("message"))
    parent = text_of(record.get("parentUuid")) or text_of(record.get("logicalParentUuid"))
    kind = record.get("type")
    link = Entry(session=session, uid=uid, parent=parent, role="tool", at=at)
    if kind not in ("user", "assistant") or message.get("model") == SYNTHETIC:
        return link
    if any(record.get(name) for name in LEFT_OUT) or (record.get("isSidechain") and not _is_own(record)):
        return link
    blocks = _blocks(message.get("content"))
    results = [one for one in blocks if one.get("type") == "tool_result"]
    text = said(joined(str(one.get("text") or "") for one in blocks if one.get("type") == "text"))
    thought = said(joined(str(one.get("thinking") or "") for one in blocks if one.get("type") == "thinking"))
    output = joined(shortened(_output(one.get("content"))) for one in results)
    summary = bool(record.get("isCompactSummary"))
    return Entry(
        session=session,
        uid=uid,
        parent=parent,
        group=text_of(message.get("id")) if kind == "assistant" else None,
        role="summary" if summary else "assistant" if kind == "assistant" else "user" if text else "tool",
        at=at,
        text=text,
        thought=thought,
        output=output,
        actions=tuple(_action(one) for one in blocks if one.get("type") == "tool_use"),
        results=tuple(_result(one) for one in results),
    )


def _is_own(record: Json) -> bool:
    """Whether a line of a side chain is in the file of its subagent, which names it on every line."""
    return bool(record.get("agentId"))


def _blocks(content: object) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else listing(content)


def _action(block: Json) -> Action:
    return action(block.get("id"), block.get("name"), block.get("input"))


def _result(block: Json) -> Result:
    failed = bool(block.get("is_error"))
    text = _output(block.get("content"))
    status = 1 if failed else 0
    if failed and text.startswith(_EXIT_CODE):
        number = text[len(_EXIT_CODE) :].split(maxsplit=1)[:1]
        status = int(number[0]) if number and number[0].isdecimal() and len(number[0]) < 9 else 1
    return Result(id=str(block.get("tool_use_id") or ""), status=status)


def _output(content: object) -> str:
    if isinstance(content, str):
        return content
    return joined(str(one.get("text") or "") for one in listing(content))

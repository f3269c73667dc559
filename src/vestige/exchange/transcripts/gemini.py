"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, append-only; `.json` before.

A message with the id of an earlier one replaces it. `$set` changes the header, and with `messages` in it the
whole conversation; `$rewindTo` drops a message and all after it.
"""

from collections.abc import Iterator

from vestige.core.transcripts import Action, Entry, Restarted, Rewound, SessionFacts, Step
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

CLIENT = "gemini"
_FAILED = ("error", "cancelled")


def steps(record: Json, state: State) -> Iterator[Step]:
    """The steps of one line. `state` has the folder of the project (`cwd`) where the client names it."""
    if "$rewindTo" in record:
        yield Rewound(session=str(state["session"]), uid=f"{state['session']}:{record['$rewindTo']}")
    elif "$set" in record:
        yield from _header(mapping(record["$set"]), state)
    elif "sessionId" in record and "type" not in record:
        state["session"] = str(record["sessionId"])
        yield from _header(record, state)
    else:
        yield from _message(record, state)


def whole(document: Json, state: State) -> Iterator[Step]:
    """The steps of an old file, one JSON object."""
    state["session"] = text_of(document.get("sessionId")) or str(state["session"])
    yield Restarted(session=str(state["session"]))
    yield from _header(document, state)


def _header(record: Json, state: State) -> Iterator[Step]:
    session = str(state["session"])
    folders = record.get("directories")
    folder = folders[0] if isinstance(folders, list) and folders else None
    yield SessionFacts(
        id=session,
        cwd=text_of(folder) or text_of(state.get("cwd")),
        title=text_of(record.get("summary")),
        title_rank=1,
        parent=text_of(state.get("parent")),
        subagent=bool(state.get("parent")) or record.get("kind") == "subagent",
        started=seconds(record.get("startTime")),
        ended=seconds(record.get("lastUpdated")),
    )
    if isinstance(record.get("messages"), list):
        yield Restarted(session=session)
        for number, message in enumerate(listing(record["messages"])):
            yield from _message({"id": str(number), **message}, state)


def _message(record: Json, state: State) -> Iterator[Step]:
    session, kind, name = str(state["session"]), record.get("type"), text_of(record.get("id"))
    if kind not in ("user", "gemini") or name is None:
        return
    at = seconds(record.get("timestamp"))
    calls = listing(record.get("toolCalls"))
    thoughts = (
        f"{one.get('subject') or ''}\n{one.get('description') or ''}"
        for one in listing(record.get("thoughts"))
    )
    yield SessionFacts(id=session, started=at, ended=at)
    yield Entry(
        session=session,
        uid=f"{session}:{name}",
        role="user" if kind == "user" else "assistant",
        at=at,
        text=said(_text(record.get("content"))),
        thought=said(joined(thoughts)),
        output=joined(shortened(_output(one)) for one in calls),
        actions=tuple(_action(one) for one in calls),
        replaces=True,
    )


def _action(call: Json) -> Action:
    status = call.get("status")
    return action(
        call.get("id"), call.get("name"), call.get("args"), 1 if status in _FAILED else 0 if status else None
    )


def _output(call: Json) -> str:
    shown = call.get("resultDisplay")
    if isinstance(shown, str):
        return shown
    if isinstance(shown, dict):
        return str(shown.get("fileDiff") or "")
    responses = (
        mapping(mapping(one.get("functionResponse")).get("response")) for one in listing(call.get("result"))
    )
    return joined(str(one.get("output") or one.get("error") or "") for one in responses)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return joined(one if isinstance(one, str) else str(mapping(one).get("text") or "") for one in content)
    return str(mapping(content).get("text") or "")

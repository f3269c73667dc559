"""Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, plain or compressed with zstd.

A legacy file has the messages as `response_item` and again as `event_msg`; a paginated one has them as
`item_completed` beside the `response_item`s. One of the two is read, never both.
"""

from collections.abc import Iterator
from dataclasses import replace

from vestige.core.transcripts import Action, Entry, Result, RolledBack, SessionFacts, Step
from vestige.exchange.transcripts.clean import said
from vestige.exchange.transcripts.shape import (
    Json,
    State,
    action,
    arguments_of,
    joined,
    listing,
    mapping,
    patched_files,
    seconds,
    shortened,
    text_of,
)

CLIENT = "codex"
SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh")
_EXIT = ("Exit code: ", "Process exited with code ", "exit_code: ")


def steps(record: Json, state: State) -> Iterator[Step]:
    """The steps of one line. `state` counts the lines and has the kind of history."""
    state["line"] = int(state.get("line", 0)) + 1
    payload = mapping(record.get("payload"))
    at = seconds(record.get("timestamp"))
    kind = record.get("type")
    if kind == "session_meta":
        yield from _about(payload, state, at)
        return
    session = str(state["session"])
    if at is not None:
        yield SessionFacts(id=session, started=at, ended=at)
    uid = f"{session}:{record.get('ordinal') or state['line']}"
    if kind == "turn_context":
        yield SessionFacts(id=session, cwd=text_of(payload.get("cwd")))
    elif kind == "compacted":
        summary = said(str(payload.get("message") or ""))
        yield Entry(session=session, uid=uid, role="summary", at=at, text=summary)
    elif kind == "event_msg":
        yield from _event(payload, state, uid, at)
    elif kind == "response_item" and not state.get("items"):
        made = _response(payload, session, uid, at)
        if made is not None:
            yield made


def _about(payload: Json, state: State, at: float | None) -> Iterator[Step]:
    """The first record about the session wins: a fork has those of its origin after its own."""
    if state.get("known"):
        return
    state["known"] = True
    state["session"] = session = text_of(payload.get("id")) or str(state["session"])
    state["items"] = payload.get("history_mode") == "paginated"
    git = mapping(payload.get("git"))
    source = payload.get("source")
    subagent = isinstance(source, dict) and "subagent" in source
    base = payload.get("history_base")
    inherited = text_of(mapping(base).get("thread_id")) or text_of(base)
    began = seconds(payload.get("timestamp")) or at
    yield SessionFacts(
        id=session,
        cwd=text_of(payload.get("cwd")),
        repository=text_of(git.get("repository_url")),
        branch=text_of(git.get("branch")),
        parent=text_of(payload.get("parent_thread_id"))
        or text_of(payload.get("forked_from_id"))
        or inherited,
        subagent=subagent or bool(payload.get("parent_thread_id")),
        started=began,
        ended=began,
    )


def _event(payload: Json, state: State, uid: str, at: float | None) -> Iterator[Step]:
    session = str(state["session"])
    kind = payload.get("type")
    if kind == "thread_rolled_back":
        turns = payload.get("num_turns")
        yield RolledBack(session=session, turns=turns if isinstance(turns, int) else 1)
    elif kind == "thread_name_updated":
        yield SessionFacts(id=session, title=text_of(payload.get("thread_name")), title_rank=3)
    elif kind == "item_completed":
        state["items"] = True
        item = mapping(payload.get("item"))
        name = item.get("id")
        made = _item(item, session, f"{session}:{payload.get('turn_id')}:{name}" if name else uid, at)
        if made is not None:
            yield made


def _item(item: Json, session: str, uid: str, at: float | None) -> Entry | None:
    """The entry of an item of a paginated history."""
    kind = str(item.get("type") or "")
    one = Entry(session=session, uid=uid, role="assistant", at=at, replaces=True)
    text = _text(item.get("content")) or _text(item.get("text"))
    match kind.replace("_", "").lower():
        case "usermessage":
            return _with(one, role="user", text=said(text))
        case "agentmessage" | "plan":
            return _with(one, text=said(text))
        case "reasoning":
            thought = _text(item.get("summary_text")) or _text(item.get("summary")) or text
            return _with(one, thought=said(thought))
        case "contextcompaction":
            return _with(one, role="summary", text=said(text or _text(item.get("summary"))))
        case "commandexecution":
            command = _command(item.get("command"))
            code = item.get("exit_code", item.get("exitCode"))
            ran = Action(
                id=str(item.get("id") or ""),
                name="shell",
                command=command,
                detail=command[:300],
                status=code if isinstance(code, int) else None,
            )
            printed = item.get("aggregated_output", item.get("aggregatedOutput", item.get("output")))
            return _with(one, role="tool", output=shortened(_text(printed)), actions=(ran,))
        case "filechange":
            changes = item.get("changes")
            paths = (
                list(changes) if isinstance(changes, dict) else [one.get("path") for one in listing(changes)]
            )
            files = tuple(str(path) for path in paths if path)
            return _with(
                one,
                role="tool",
                actions=(
                    Action(id=str(item.get("id") or ""), name="edit", files=files, detail=" ".join(files)),
                ),
            )
        case "mcptoolcall":
            called = action(item.get("id"), item.get("tool"), item.get("arguments"))
            result = mapping(item.get("result"))
            return _with(one, role="tool", actions=(called,), output=shortened(_text(result.get("content"))))
    return None


def _with(one: Entry, **changed: object) -> Entry:
    return replace(one, **changed)  # type: ignore[arg-type]  # the fields of Entry, by name


def _response(payload: Json, session: str, uid: str, at: float | None) -> Entry | None:
    """The entry of an item as it was sent to or came from the model."""
    kind = payload.get("type")
    one = Entry(session=session, uid=uid, role="assistant", at=at)
    call = payload.get("call_id") or payload.get("id")
    match kind:
        case "message":
            parts = [said(_text([part])) for part in listing(payload.get("content"))]
            role = payload.get("role")
            if role not in ("user", "assistant"):
                return None  # instructions of the developer
            return _with(one, role=role, text=joined(parts))
        case "reasoning":
            return _with(one, thought=said(_text(payload.get("summary")) or _text(payload.get("content"))))
        case "function_call":
            called = action(call, payload.get("name"), payload.get("arguments"))
            raw = arguments_of(payload.get("arguments")).get("command")
            return _with(one, actions=(_shell(called, raw),))
        case "custom_tool_call":
            patch = str(payload.get("input") or "")
            files = patched_files(patch)
            made = Action(
                id=str(call or ""), name=str(payload.get("name") or ""), files=files, detail=" ".join(files)
            )
            return _with(one, actions=(made,))
        case "local_shell_call":
            command = _command(mapping(payload.get("action")).get("command"))
            made = Action(id=str(call or ""), name="shell", command=command, detail=command[:300])
            return _with(one, actions=(made,))
        case "function_call_output" | "custom_tool_call_output":
            output, status = _output(payload.get("output"))
            result = Result(id=str(call or ""), status=status)
            return _with(one, role="tool", output=shortened(output), results=(result,))
    return None


def _shell(called: Action, raw: object) -> Action:
    command = _command(raw) if isinstance(raw, list) else called.command
    return replace(called, command=command, detail=(command or called.detail)[:300])


def _command(value: object) -> str:
    """A command line, without the shell that it was given to."""
    if not isinstance(value, list):
        return str(value or "")
    words = [str(one) for one in value]
    if len(words) == 3 and words[0] in SHELLS:
        return words[2]
    return " ".join(words)


def _output(value: object) -> tuple[str, int | None]:
    """The output of a tool and its exit status, where it says one."""
    if isinstance(value, str):
        whole = arguments_of(value) if value.startswith("{") else {}
        if not whole:
            return value, _status(value)
        value = whole
    given = mapping(value)
    code = mapping(given.get("metadata")).get("exit_code")
    text = _text(given.get("output") or given.get("content"))
    if isinstance(code, int):
        return text, code
    return text, 1 if given.get("success") is False else _status(text)


def _status(text: str) -> int | None:
    for mark in _EXIT:
        at = text.find(mark, 0, 400)
        if at >= 0:
            number = text[at + len(mark) : at + len(mark) + 6].split()
            if number and number[0].isdecimal():
                return int(number[0])
    return None


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return joined(one if isinstance(one, str) else _text(one) for one in value)
    return str(mapping(value).get("text") or "")

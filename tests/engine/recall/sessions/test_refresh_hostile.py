"""Hostile transcripts, in which any value can be anything. A record costs itself at most, never the run."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testbed.effort import effort
from testbed.world import World
from tests.engine.recall.sessions.transcripts import claude_file, conversation, world_at_home
from tests.exchange.transcripts.homes import write_database, write_lines
from tests.exchange.transcripts.test_cursor_store import MESSAGES, store
from tests.exchange.transcripts.test_databases import OPENCODE, opencode_parts
from vestige.core.errors import VestigeError

CHANGES = effort(150, nightly=5_000)
HONEST = "cccc0000-0000-4000-8000-000000000003"
DEEP: Any = json.loads("[" * 400 + '"a"' + "]" * 400)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 10**400, -(10**400), 1e300, 5e10, float("nan"), float("inf"), float("-inf"), "",
    "a", "9" * 5_000, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "\ud800", "a\0b", "/\0",
    [], {}, [[]], [None, 1, "x", {}], {"type": []}, {"text": {}}, DEEP, {"a": DEEP}, "x" * 100_000,
    "Exit code 99999999999", '{"command": [[1]]}', "*** Update File: \ud800\n",
)  # fmt: skip
"""What a value is replaced by."""

Record = dict[str, Any]
TOOL_USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls", "path": "a.py"}}
TOOL_RESULT = {
    "type": "tool_result",
    "tool_use_id": "t",
    "content": [{"type": "text", "text": "ok"}],
    "is_error": True,
}
BLOCKS = [{"type": "text", "text": "hello"}, {"type": "thinking", "thinking": "hm"}, TOOL_USE, TOOL_RESULT]
WHEN = "2026-02-20T10:00:00Z"


def _claude() -> list[Record]:
    said = {"uuid": "u1", "parentUuid": "u0", "timestamp": WHEN, "cwd": "/w", "gitBranch": "main"}
    return [
        {"type": "user", **said, "message": {"role": "user", "content": "hi"}},
        {"type": "assistant", **said, "uuid": "u2", "message": {"id": "m", "model": "x", "content": BLOCKS}},
        {"type": "ai-title", "aiTitle": "A title"},
        {"type": "summary", "summary": "About", "leafUuid": "u1"},
    ]


def _codex() -> list[Record]:
    def of(kind: str, **payload: Any) -> Record:
        return {"type": kind, "timestamp": WHEN, "ordinal": 3, "payload": payload}

    call = {"call_id": "c", "name": "shell"}
    source, git = {"subagent": "x"}, {"repository_url": "u", "branch": "b"}
    output = {"output": "x", "metadata": {"exit_code": 1}}
    ran = {"type": "CommandExecution", "id": "i", "command": ["bash", "-c", "ls"], "exit_code": 1}
    return [
        of("session_meta", id="s", cwd="/w", timestamp=WHEN, source=source, git=git, history_base={}),
        of("turn_context", cwd="/w"),
        of("compacted", message="summary"),
        of("response_item", type="message", role="user", content=[{"text": "hi"}]),
        of("response_item", type="reasoning", summary=[{"text": "hm"}]),
        of("response_item", type="function_call", arguments='{"command": ["bash", "-lc", "ls"]}', **call),
        of("response_item", type="function_call_output", output=json.dumps(output), **call),
        of("response_item", type="custom_tool_call", input="*** Add File: a.py", **call),
        of("response_item", type="local_shell_call", action={"command": ["ls"]}, **call),
        of("event_msg", type="thread_rolled_back", num_turns=1),
        of("event_msg", type="thread_name_updated", thread_name="x"),
        of("event_msg", type="item_completed", turn_id="t", item={**ran, "aggregated_output": "x"}),
        of("event_msg", type="item_completed", item={"type": "FileChange", "changes": {"a.py": {}}}),
        of("event_msg", type="item_completed", item={"type": "UserMessage", "content": [{"text": "hi"}]}),
        of("event_msg", type="item_completed", item={"type": "McpToolCall", "tool": "t", "arguments": {}}),
    ]


def _gemini() -> list[Record]:
    call = {"id": "t", "name": "ls", "args": {"path": "/w"}, "status": "error", "resultDisplay": {}}
    answered = {**call, "resultDisplay": None, "result": [{"functionResponse": {"response": {"output": ""}}}]}
    message = {"id": "1", "timestamp": WHEN, "content": [{"text": "hi"}]}
    thoughts = [{"subject": "a", "description": "b"}]
    return [
        {"sessionId": "s", "startTime": WHEN, "directories": ["/w"], "summary": "x", "messages": [message]},
        {"type": "user", **message},
        {"type": "gemini", **message, "toolCalls": [call, answered], "thoughts": thoughts},
        {"$set": {"lastUpdated": WHEN, "messages": [{"type": "user", **message}]}},
        {"$rewindTo": "1"},
    ]


def _copilot() -> list[Record]:
    def of(kind: str, **data: Any) -> Record:
        return {"type": kind, "timestamp": WHEN, "id": kind, "data": data}

    call = {"toolCallId": "t", "toolName": "bash", "arguments": {"command": "ls"}}
    return [
        of("session.start", sessionId="s", context={"cwd": "/w", "repository": "r", "branch": "b"}),
        of("user.message", content="hi"),
        of("assistant.message", content="hello", toolRequests=[{**call, "name": "bash"}]),
        of("tool.execution_start", **call),
        of("tool.execution_complete", **call, success=False, result={"content": "x"}, error={"message": "m"}),
        of("session.shutdown", codeChanges={"filesModified": ["a.py"]}),
        of("session.title_changed", title="x"),
    ]


def _factory() -> list[Record]:
    message = {"role": "assistant", "content": BLOCKS}
    return [
        {"type": "session_start", "id": "s", "cwd": "/w", "title": "x", "parent": "p"},
        {"type": "message", "id": "1", "timestamp": WHEN, "message": message},
    ]


def _openclaw() -> list[Record]:
    def of(number: int, **message: Any) -> Record:
        return {"type": "message", "id": f"{number}", "parentId": "0", "timestamp": WHEN, "message": message}

    call = {"type": "toolCall", "id": "t", "name": "ls", "arguments": {"path": "a"}}
    return [
        {"type": "session", "id": "s", "cwd": "/w", "timestamp": WHEN, "parentSession": "p"},
        of(1, role="user", content="hi"),
        of(2, role="assistant", content=[*BLOCKS, call]),
        of(3, role="toolResult", content=BLOCKS, isError=True, toolCallId="t"),
        {"type": "compaction", "id": "4", "summary": "x", "timestamp": 1_700_000_000_000},
    ]


LINES: dict[str, tuple[str, Callable[[], list[Record]]]] = {
    "claude": (".claude/projects/-w/dddd0000-0000-4000-8000-000000000004.jsonl", _claude),
    "codex": (".codex/sessions/2026/02/20/rollout-dddd0000-0000-4000-8000-000000000004.jsonl", _codex),
    "gemini": (".gemini/tmp/w/chats/session-1.jsonl", _gemini),
    "copilot": (".copilot/session-state/s/events.jsonl", _copilot),
    "factory": (".factory/sessions/s.jsonl", _factory),
    "openclaw": (".openclaw/agents/main/sessions/s.jsonl", _openclaw),
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_at_home(tmp_path) as opened:
        yield opened


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values in a record."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*at, name)
        yield from places(part, (*at, name))


def changed(record: Record, rng: Random) -> Record:
    """The record with another value at one or two places."""
    made = copy.deepcopy(record)
    for _ in range(rng.choice((1, 1, 2))):
        *folders, name = rng.choice(list(places(made)) or [("type",)])
        inner: Any = made
        for one in folders:
            inner = inner[one]
        inner[name] = copy.deepcopy(rng.choice(VALUES))
    return made


def everything_works(world: World) -> None:
    """Whatever was indexed, every operation on sessions answers, and an honest session is found."""
    (honest,) = world.call("recall_sessions", query="flamingo")["sessions"]
    assert honest["sessionId"] == HONEST
    listed = world.call("sessions", action="list", limit=200, since="2000-01-01")
    assert any(one["sessionId"] == HONEST for one in listed["sessions"])
    for one in world.call("sessions", action="list", limit=200)["sessions"][:20]:
        with suppress(VestigeError):  # an id that is too long, or one of several sessions
            world.call("read_session", session=one["sessionId"], outputs=True)
            world.call("sessions", action="resume", session=one["sessionId"])
    world.call("recall_sessions", query="hello last week", subagents=False)
    world.call("sessions", action="archive", every_client=True)
    world.call("sessions", action="doctor", check=True)


@pytest.mark.parametrize("client", LINES)
def test_a_record_that_can_be_anything_costs_itself_at_most(
    world: World, tmp_path: Path, client: str
) -> None:
    path, records = LINES[client]
    rng, home = Random(client), tmp_path / "home"
    lines = records()
    hostile = [json.dumps(changed(rng.choice(lines), rng)) for _ in range(CHANGES)]
    write_lines(home / path, [*lines, *hostile])
    write_lines(claude_file(home, HONEST), conversation(HONEST, ("user", "where is the flamingo")))

    done = world.call("sessions", action="index")

    assert done["unread"] == {}
    everything_works(world)


def test_a_line_that_is_no_json_or_no_text_costs_itself(world: World, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = home / LINES["claude"][0]
    path.parent.mkdir(parents=True)
    lines = [
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"type": "user"',
        b'{"a": "' + b"x" * 1_000_000 + b'"}',
        b"{}",
    ]
    path.write_bytes(b"\n".join([*lines, json.dumps(_claude()[0]).encode(), b""]))
    write_lines(claude_file(home, HONEST), conversation(HONEST, ("user", "where is the flamingo")))

    done = world.call("sessions", action="index")

    assert (done["unread"], done["brokenLines"]) == ({}, 3)
    everything_works(world)


@pytest.mark.parametrize("number", range(CHANGES // 30))
def test_a_database_whose_values_can_be_anything_costs_itself_at_most(
    world: World, tmp_path: Path, number: int
) -> None:
    rng, home = Random(number), tmp_path / "home"
    odd = (b"\xff\xfe", 2**63 - 1, 1e300, "\x00", "9" * 5_000, b"{", "[]", '{"role": []}', None, -1.5, "a\0b")
    tables = opencode_parts()
    for name, (columns, rows) in tables.items():
        rows = [tuple(rng.choice(odd) if rng.random() < 0.2 else one for one in row) for row in rows]
        tables[name] = (columns.replace(" PRIMARY KEY", ""), rows)
    write_database(home / OPENCODE, tables)
    goose = ("s", "/w", "x", rng.choice(odd), rng.choice(odd), rng.choice(odd))
    written = json.dumps([changed({"a": one}, rng)["a"] for one in BLOCKS])
    message = (rng.choice(odd), "s", "user", rng.choice(odd), rng.choice((*odd, written)))
    write_database(
        home / ".local/share/goose/sessions/sessions.db",
        {
            "sessions": ("id, working_dir, description, created_at, updated_at, session_type", [goose]),
            "messages": ("id, session_id, role, created_timestamp, content_json", [message]),
        },
    )
    store(
        home, [changed(one, rng) for one in MESSAGES], createdAt=rng.choice(VALUES), name=rng.choice(VALUES)
    )
    write_lines(claude_file(home, HONEST), conversation(HONEST, ("user", "where is the flamingo")))

    world.call("sessions", action="index")

    everything_works(world)


@pytest.mark.parametrize("days", [10**400, 10**9, 1e308, -5, True, "9" * 5_000 + "d", "99999999999d", []])
def test_a_setting_of_a_client_can_be_anything(world: World, tmp_path: Path, days: object) -> None:
    home = tmp_path / "home"
    write_lines(home / LINES["gemini"][0], _gemini())
    write_lines(claude_file(home, HONEST), conversation(HONEST, ("user", "where is the flamingo")))
    retention = {"general": {"sessionRetention": {"maxAge": days}}}
    (home / ".gemini/settings.json").write_text(json.dumps(retention), encoding="utf-8")
    (home / ".claude/settings.json").write_text(json.dumps({"cleanupPeriodDays": days}), encoding="utf-8")

    world.call("sessions", action="index")

    everything_works(world)


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_damaged_packed_file_is_named_and_the_rest_is_read(
    world: World, tmp_path: Path, client: str
) -> None:
    home = tmp_path / "home"
    write_lines(home / LINES[client][0], LINES[client][1]())
    world.call("sessions", action="archive", every_client=True)
    for copied in (tmp_path / "data").rglob("*.gz"):
        data = copied.read_bytes()
        copied.write_bytes(data[: len(data) // 2] if client == "claude" else data[:-8] + b"\0" * 8)
    (home / LINES[client][0]).unlink()
    write_lines(claude_file(home, HONEST), conversation(HONEST, ("user", "where is the flamingo")))

    done = world.call("sessions", action="index")

    assert len(done["unread"]) == 1
    everything_works(world)

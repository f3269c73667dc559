"""The operations on sessions: what they answer, and who may ask."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World
from tests.engine.recall.sessions.transcripts import CART, LOGIN, claude_file, plant, said, world_at_home
from tests.exchange.transcripts.homes import write_lines
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import Forbidden
from vestige.core.models import EVERYTHING, Access
from vestige.operations.registry.registry import registry

TOOLS: dict[str, dict[str, Any]] = {
    "recall_sessions": {"query": "login"},
    "read_session": {"session": LOGIN},
    "sessions": {"action": "list"},
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_at_home(tmp_path) as opened:
        plant(tmp_path / "home")
        yield opened


def as_caller(
    world: World, permissions: set[str], access: Access, tool: str, **arguments: Any
) -> dict[str, Any]:
    caller = Caller(name="someone", permissions=frozenset(permissions), access=access)
    return world.app.call_tool(Invocation(name=tool, arguments=arguments, caller=caller, request_id="x"))


def test_nothing_is_indexed_until_somebody_says_so(world: World, tmp_path: Path) -> None:
    answer = world.call("recall_sessions", query="flaky login test")
    assert answer["sessions"] == []
    assert "vestige sessions index" in answer["message"]
    assert not (tmp_path / "data" / "sessions.db").exists()


def test_a_search_after_the_first_run_reads_what_is_new(world: World, tmp_path: Path) -> None:
    world.call("sessions", action="index")
    write_lines(
        claude_file(tmp_path / "home", LOGIN), [said(5, "user", "and the ostrich", session=LOGIN)], "a"
    )
    (found,) = world.call("recall_sessions", query="ostrich")["sessions"]
    assert found["sessionId"] == LOGIN
    assert found["resumeCommand"] == f"claude --resume {LOGIN}"
    assert found["passages"][0]["text"] == "and the ostrich"


def test_a_session_is_read_in_pages_with_what_was_done(world: World) -> None:
    world.call("sessions", action="index")
    first = world.call("read_session", session="aaaa", limit=2)
    assert [entry["role"] for entry in first["entries"]] == ["user", "assistant"]
    assert first["more"] is True
    rest = world.call("read_session", session=LOGIN, first=2, outputs=True)
    assert rest["entries"][0]["commands"] == [{"command": "pytest tests/login", "status": 1}]
    assert "TokenExpired" in rest["entries"][1]["output"]
    assert rest["more"] is False


def test_lists_resumes_archives_and_diagnoses(world: World) -> None:
    world.call("sessions", action="index")
    listed = world.call("sessions", action="list", cwd="/w/cart")
    assert (listed["total"], listed["sessions"][0]["sessionId"]) == (1, CART)
    assert world.call("sessions", action="resume", session=CART)["command"] == ["claude", "--resume", CART]
    operation = registry.operations["sessions.resume"]
    shown = operation.render(world.app.run(operation, {"session": CART}, lambda *_: None))
    assert shown == f"cd /w/cart && claude --resume {CART}"
    assert world.call("sessions", action="archive")["copied"] == 2
    diagnosis = world.call("sessions", action="doctor")
    assert (diagnosis["unarchived"], diagnosis["copies"], diagnosis["indexedSessions"]) == (0, 2, 2)


@pytest.mark.parametrize("access", [Access(scopes=("/project/x",)), Access(domains=("infra",))])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_limited_key_sees_no_session(tool: str, access: Access, world: World) -> None:
    world.call("sessions", action="index")
    with pytest.raises(Forbidden):
        as_caller(world, {"read", "write", "admin"}, access, tool, **TOOLS[tool])


def test_a_key_that_only_reads_searches_but_changes_nothing(world: World, tmp_path: Path) -> None:
    world.call("sessions", action="index")
    write_lines(
        claude_file(tmp_path / "home", LOGIN), [said(5, "user", "and the ostrich", session=LOGIN)], "a"
    )
    assert as_caller(world, {"read"}, EVERYTHING, "recall_sessions", query="ostrich")["sessions"] == []
    with pytest.raises(Forbidden):
        as_caller(world, {"read", "write"}, EVERYTHING, "sessions", action="index")


@pytest.mark.parametrize("name", ["recall_sessions", "sessions.list", "sessions.doctor", "sessions.archive"])
def test_the_text_for_people_names_sessions_and_steps(name: str, world: World) -> None:
    world.call("sessions", action="index")
    operation = registry.operations[name]
    arguments = {"query": "login test"} if name == "recall_sessions" else {}
    answer = world.app.run(operation, arguments, lambda *_: None)
    shown = operation.render(answer)
    expected = {
        "recall_sessions": LOGIN, "sessions.list": CART, "sessions.doctor": "will vanish",
        "sessions.archive": "2 files copied",
    }[name]  # fmt: skip
    assert expected in shown


def test_a_damaged_index_of_sessions_says_how_it_is_made_again(world: World, tmp_path: Path) -> None:
    (tmp_path / "data" / "sessions.db").write_bytes(b"not a database, " * 100)
    refused = world.refused("recall_sessions", query="login")
    assert refused["code"] == "store_corrupt"
    assert "vestige sessions index" in refused["hint"]
    assert "backup" not in refused["hint"]

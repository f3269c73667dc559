"""The thread of a server that keeps the index of sessions up to date."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World
from tests.engine.recall.sessions.transcripts import (
    LOGIN,
    call_of,
    claude_file,
    index_of,
    plant,
    said,
    world_at_home,
)
from tests.exchange.transcripts.homes import write_lines
from vestige.core.caller import Caller, Invocation
from vestige.core.models import EVERYTHING
from vestige.engine.recall.sessions.background import SessionIndexer
from vestige.engine.recall.sessions.recall import find_sessions
from vestige.engine.recall.sessions.refresh import refresh
from vestige.store.contract.sessions import SessionFilter
from vestige.store.sqlite.sessions.index import SqliteSessionIndex


@pytest.fixture
def home(tmp_path: Path) -> Path:
    plant_in = tmp_path / "home"
    plant_in.mkdir()
    plant(plant_in)
    return plant_in


@pytest.fixture
def world(tmp_path: Path, home: Path) -> Iterator[World]:
    with world_at_home(tmp_path) as opened:
        yield opened


def found(world: World, query: str) -> list[str]:
    """What the index has, without reading anything new."""
    answer = find_sessions(index_of(world), query, SessionFilter(), world.clock.now, limit=5)
    return [one.session.id for one in answer.sessions]


def test_nothing_is_read_before_the_first_run_of_the_user(world: World, tmp_path: Path) -> None:
    assert SessionIndexer(world.app.engine).read_some() is False
    assert not index_of(world).exists()
    assert not (tmp_path / "data" / "sessions.db").exists()


def test_after_the_first_run_what_is_new_is_read(world: World, home: Path) -> None:
    refresh(call_of(world), index_of(world))
    write_lines(claude_file(home, LOGIN), [said(5, "user", "and the ostrich", session=LOGIN)], "a")
    assert found(world, "ostrich") == []
    assert SessionIndexer(world.app.engine).read_some() is False
    assert found(world, "ostrich") == [LOGIN]


def test_with_the_setting_all_old_sessions_are_searchable_by_themselves(tmp_path: Path, home: Path) -> None:
    settings: dict[str, Any] = {"sessions.background": "all"}
    with world_at_home(tmp_path, **settings) as world:
        SessionIndexer(world.app.engine).read_some()
        assert LOGIN in found(world, "flaky login test")


def test_with_the_setting_all_a_search_reads_by_itself_too(tmp_path: Path, home: Path) -> None:
    settings: dict[str, Any] = {"sessions.background": "all"}
    with world_at_home(tmp_path, **settings) as world:
        caller = Caller(name="reader", permissions=frozenset({"read"}), access=EVERYTHING)
        asked = Invocation(name="recall_sessions", arguments={"query": "flaky login test"}, caller=caller)
        assert world.app.call_tool(asked)["sessions"] == []  # a key that only reads starts no reading
        assert world.call("recall_sessions", query="flaky login test")["sessions"][0]["sessionId"] == LOGIN


@pytest.mark.parametrize("settings", [{"sessions.background": "off"}, {"storage.backend": "memory"}])
def test_the_thread_is_not_started_where_it_has_nothing_to_do(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with world_at_home(tmp_path, **settings) as world:
        world.app.index_sessions()
        assert not any(thread.name == "vestige-sessions" for thread in threading.enumerate())


def test_one_process_reads_at_a_time(world: World, tmp_path: Path, home: Path) -> None:
    refresh(call_of(world), index_of(world))
    write_lines(claude_file(home, LOGIN), [said(5, "user", "and the ostrich", session=LOGIN)], "a")
    indexer = SessionIndexer(world.app.engine)
    other = SqliteSessionIndex(tmp_path / "data" / "sessions.db")
    with other.reading_alone() as alone:
        assert alone
        assert indexer.read_some() is False
        assert found(world, "ostrich") == []
    indexer.read_some()
    assert found(world, "ostrich") == [LOGIN]


def test_a_large_amount_is_read_in_rounds(world: World, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh(call_of(world), index_of(world))
    monkeypatch.setattr("vestige.engine.recall.sessions.background.ROUND_BYTES", 10)
    for number in range(3):
        name = f"ddd{number}0000-0000-4000-8000-000000000003"
        write_lines(claude_file(home, name), [said(0, "user", f"ostrich {number}", session=name)])
    indexer = SessionIndexer(world.app.engine)
    assert [indexer.read_some() for _ in range(4)] == [True, True, False, False]
    assert len(found(world, "ostrich")) == 3


def test_the_thread_reads_survives_trouble_and_stops(
    world: World, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refresh(call_of(world), index_of(world))
    write_lines(claude_file(home, LOGIN), [said(5, "user", "and the ostrich", session=LOGIN)], "a")
    done, rounds = threading.Event(), list[int]()
    indexer = SessionIndexer(world.app.engine, first_seconds=0, idle_seconds=0)
    read = indexer.read_some

    def read_some() -> bool:
        rounds.append(1)
        if len(rounds) == 1:
            raise OSError("no space")
        more = read()
        done.set()
        return more

    monkeypatch.setattr(indexer, "read_some", read_some)
    indexer.start()
    assert done.wait(PATIENCE_SECONDS)
    assert indexer.stop(PATIENCE_SECONDS)
    assert found(world, "ostrich") == [LOGIN]
    assert "Sessions were not indexed" in caplog.text


def test_an_app_that_serves_has_the_thread_and_ends_it_when_it_is_closed(tmp_path: Path, home: Path) -> None:
    with world_at_home(tmp_path) as world:
        world.app.index_sessions()
        assert any(thread.name == "vestige-sessions" for thread in threading.enumerate())
    assert not any(thread.name == "vestige-sessions" for thread in threading.enumerate())

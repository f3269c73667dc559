"""The index follows the files: appended, changed, vanished; stopped runs; secrets; many processes at once."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import World
from tests.engine.recall.sessions.transcripts import (
    CART,
    LOGIN,
    call_of,
    claude_file,
    conversation,
    index_of,
    plant,
    said,
    world_at_home,
)
from tests.exchange.transcripts.homes import write_lines
from vestige.engine.recall.sessions.recall import find_sessions
from vestige.engine.recall.sessions.refresh import refresh
from vestige.exchange.transcripts import files
from vestige.store.contract.sessions import SessionFilter
from vestige.store.sqlite.sessions.index import SqliteSessionIndex


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_at_home(tmp_path) as opened:
        plant(tmp_path / "home")
        yield opened


def found(world: World, query: str, where: SessionFilter | None = None) -> list[str]:
    made = find_sessions(index_of(world), query, where or SessionFilter(), world.clock.now, limit=10)
    return [one.session.id for one in made.sessions]


def texts(world: World, session: str) -> list[str]:
    (one,) = index_of(world).find(session)
    return [entry.text for entry in index_of(world).entries(one.key) if entry.text]


def test_a_session_is_found_by_what_was_said_in_it(world: World) -> None:
    made = refresh(call_of(world), index_of(world))
    assert (made.files, made.changed, made.unread) == (2, 2, {})
    assert found(world, "why was the login test flaky") == [LOGIN]
    assert found(world, "cart total rounding")[0] == CART


def test_an_appended_line_is_found_and_only_it_is_read(world: World, tmp_path: Path) -> None:
    refresh(call_of(world), index_of(world))
    line = said(5, "user", "now the zebra crossing", session=LOGIN)
    write_lines(claude_file(tmp_path / "home", LOGIN), [line], "a")
    made = refresh(call_of(world), index_of(world))
    assert (made.changed, made.entries) == (1, 1)
    assert made.bytes_read == len(json.dumps(line)) + 1
    assert found(world, "zebra") == [LOGIN]
    assert found(world, "token clock") == [LOGIN]
    assert refresh(call_of(world), index_of(world)).changed == 0


@pytest.mark.parametrize("how", ["rewritten", "truncated", "deleted"])
def test_what_was_indexed_stays_when_the_file_does_not(how: str, world: World, tmp_path: Path) -> None:
    refresh(call_of(world), index_of(world))
    path = claude_file(tmp_path / "home", LOGIN)
    if how == "deleted":
        path.unlink()
    elif how == "truncated":
        write_lines(path, conversation(LOGIN, ("user", "the login test is flaky, find out why")))
    else:
        write_lines(path, [said(9, "user", "a new beginning", session=LOGIN)])
    refresh(call_of(world), index_of(world))
    assert found(world, "token expires") == [LOGIN]
    assert len(texts(world, LOGIN)) == (4 if how == "rewritten" else 3)


def test_a_run_that_is_stopped_goes_on_where_it_was(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH_BYTES", 1_000)
    lines = conversation(LOGIN, *(("user", f"question number {number}") for number in range(40)))
    write_lines(claude_file(tmp_path / "home", LOGIN), lines)
    index = index_of(world)
    stored = 0

    class Stopped(Exception):
        """The process was killed."""

    def store(batch: object, real: object = index.store) -> bool:
        nonlocal stored
        stored += 1
        if stored == 4:
            raise Stopped
        return bool(real(batch))  # type: ignore[operator]  # the method that is replaced

    monkeypatch.setattr(index, "store", store)
    with pytest.raises(Stopped):
        refresh(call_of(world), index)
    monkeypatch.undo()
    made = refresh(call_of(world), index)
    assert 0 < made.bytes_read < sum(path.stat().st_size for path in (tmp_path / "home").rglob("*.jsonl"))
    assert texts(world, LOGIN) == [f"question number {number}" for number in range(40)]


def test_secrets_reach_no_byte_of_the_index(world: World, tmp_path: Path) -> None:
    key = "AKIA" + "Q3EGR7TNLP5XWK2M"
    tool = {"type": "tool_use", "id": "k", "name": "Bash", "input": {"command": f"export AWS_KEY={key}"}}
    lines = conversation(LOGIN, ("user", f"use {key}"), ("assistant", [tool]), ("user", f"<b>{key}</b>"))
    write_lines(claude_file(tmp_path / "home", LOGIN), lines)
    refresh(call_of(world), index_of(world))
    index_of(world).close()
    held = b"".join(path.read_bytes() for path in (tmp_path / "data").glob("sessions.db*"))
    assert key.encode() not in held
    assert key.lower().encode() not in held


def test_our_own_recall_in_a_transcript_is_not_found_again(world: World, tmp_path: Path) -> None:
    block = "go on <vestige-recall id=1>the walrus decision</vestige-recall>"
    write_lines(claude_file(tmp_path / "home", LOGIN), conversation(LOGIN, ("user", block)))
    refresh(call_of(world), index_of(world))
    assert found(world, "walrus") == []


def test_commands_keep_their_exit_status_and_files(world: World) -> None:
    refresh(call_of(world), index_of(world))
    (one,) = index_of(world).find(LOGIN)
    (ran,) = [action for entry in index_of(world).entries(one.key) for action in entry.actions]
    assert (ran.command, ran.status) == ("pytest tests/login", 1)


def test_an_edited_prompt_is_marked_and_still_found(world: World, tmp_path: Path) -> None:
    lines = conversation(LOGIN, ("user", "first"), ("user", "the pelican question"))
    other = {**said(2, "user", "asked instead", session=LOGIN), "parentUuid": f"{LOGIN[:4]}-0"}
    write_lines(claude_file(tmp_path / "home", LOGIN), [*lines, other])
    refresh(call_of(world), index_of(world))
    (one,) = index_of(world).find(LOGIN)
    assert [(entry.text, entry.side) for entry in index_of(world).entries(one.key)] == [
        ("first", False), ("the pelican question", True), ("asked instead", False),
    ]  # fmt: skip
    assert found(world, "pelican") == [LOGIN]


def test_processes_that_index_at_once_store_each_line_once(world: World, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for number in range(12):
        session = f"c{number:03d}0000-0000-4000-8000-000000000000"
        write_lines(
            claude_file(home, session), conversation(session, ("user", f"topic {number}"), ("user", "more"))
        )
    path = tmp_path / "data" / "sessions.db"
    indexes = [SqliteSessionIndex(path) for _ in range(4)]
    threads = [threading.Thread(target=refresh, args=(call_of(world), index)) for index in indexes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = indexes[0].counts()
    for index in indexes:
        index.close()
    assert (held.sessions, held.entries) == (14, 12 * 2 + 5 + 2)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(DISTINCT doc) FROM words_at").fetchone()[0] == held.passages
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(world: World, tmp_path: Path) -> None:
    broken = tmp_path / "home" / ".local/share/opencode/opencode.db"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"SQLite format 3\0" + b"x" * 4_000)
    made = refresh(call_of(world), index_of(world))
    assert list(made.unread) == [str(broken)]
    assert index_of(world).counts().sessions == 2


def test_more_than_was_asked_for_is_not_read_silently(world: World) -> None:
    made = refresh(call_of(world), index_of(world), most_bytes=10)
    assert made.pending_bytes > 10
    assert not index_of(world).exists()


def test_halves_of_surrogate_pairs_can_be_stored(world: World, tmp_path: Path) -> None:
    write_lines(claude_file(tmp_path / "home", LOGIN), conversation(LOGIN, ("user", "odd \ud83d giraffe")))
    refresh(call_of(world), index_of(world))
    assert found(world, "giraffe") == [LOGIN]

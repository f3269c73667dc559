"""The index follows the files: appended, changed, vanished; stopped runs; secrets; many processes at once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
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
from tests.exchange.transcripts.homes import write_database, write_lines
from tests.exchange.transcripts.test_databases import OPENCODE, SESSION_COLUMNS, SESSION_ROW, opencode_parts
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


def test_what_a_client_adds_to_its_database_is_found(world: World, tmp_path: Path) -> None:
    tables, path = opencode_parts(), tmp_path / "home" / OPENCODE
    write_database(path, tables)
    refresh(call_of(world), index_of(world))
    later = ("msg_4", "ses_1", 4, json.dumps({"role": "user"}))
    part = ("p6", "msg_4", "ses_1", json.dumps({"type": "text", "text": "now the zebra crossing"}))
    changed = (*SESSION_ROW[:6], 1_700_000_200_000, SESSION_ROW[7])
    rows = {"session": changed, "message": later, "part": part}
    write_database(path, {name: (tables[name][0], [row]) for name, row in rows.items()})
    refresh(call_of(world), index_of(world))
    assert found(world, "zebra") == ["ses_1"]
    assert refresh(call_of(world), index_of(world)).changed == 0


@pytest.mark.parametrize("title", ["New session - 2026-02-20T10:00:00.000Z", " ", None])
def test_a_session_that_nobody_named_has_its_first_prompt_as_title(
    title: str | None, world: World, tmp_path: Path
) -> None:
    tables, path = opencode_parts(), tmp_path / "home" / OPENCODE
    tables["session"] = (SESSION_COLUMNS, [(*SESSION_ROW[:4], title, *SESSION_ROW[5:])])
    write_database(path, tables)
    refresh(call_of(world), index_of(world))
    (one,) = index_of(world).find("ses_1")
    assert one.title == "build it"
    named = (*SESSION_ROW[:4], "The cart", SESSION_ROW[5], 1_700_000_200_000, SESSION_ROW[7])
    path.unlink()
    write_database(path, tables | {"session": (SESSION_COLUMNS, [named])})
    refresh(call_of(world), index_of(world))
    (one,) = index_of(world).find("ses_1")
    assert one.title == "The cart"


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


def long_file(home: Path, session: str, megabytes: int, modified: int) -> Path:
    """A transcript of this size, changed at this time."""
    path = claude_file(home, session)
    filler = "lorem " * 4_000
    records = [said(number, "user", f"{filler} word{number}", session=session) for number in range(40)]
    write_lines(path, records * megabytes)
    os.utime(path, (modified, modified))
    return path


def test_a_limited_run_reads_the_newest_first_and_the_next_one_reads_on(world: World, tmp_path: Path) -> None:
    refresh(call_of(world), index_of(world))
    home = tmp_path / "home"
    long_file(home, "cccc0000-0000-4000-8000-000000000003", 4, 1_000)
    write_lines(claude_file(home, LOGIN), [said(5, "user", "and the ostrich", session=LOGIN)], "a")
    first = refresh(call_of(world), index_of(world), most_bytes=1)
    assert found(world, "ostrich") == [LOGIN]
    runs, left = 1, first.pending_bytes
    assert left > 3_000_000
    while left:
        made = refresh(call_of(world), index_of(world), most_bytes=1)
        assert made.pending_bytes < left
        assert 0 < made.bytes_read < 2_500_000
        runs, left = runs + 1, made.pending_bytes
    assert runs >= 4
    assert found(world, "word39") == ["cccc0000-0000-4000-8000-000000000003"]
    assert refresh(call_of(world), index_of(world)).changed == 0


def test_a_run_with_a_limit_of_time_ends_after_the_part_that_it_reads(world: World, tmp_path: Path) -> None:
    long_file(tmp_path / "home", "cccc0000-0000-4000-8000-000000000003", 4, 2_000_000_000)

    def slow(_done: float, _total: float | None, _message: str | None) -> None:
        world.clock.advance(hours=1 / 3_600)  # each part takes a second

    call = replace(call_of(world), progress=slow)
    made = refresh(call, index_of(world), most_seconds=1.5)
    assert 1_000_000 < made.bytes_read < 3_500_000
    assert made.pending_bytes > 500_000


def test_a_large_database_is_left_to_a_run_without_a_limit(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.engine.recall.sessions.refresh.MOST_WHOLE_BYTES", 100)
    thread = tmp_path / "home/.local/share/amp/threads/T-1.json"
    thread.parent.mkdir(parents=True)
    message = {"role": "user", "content": [{"type": "text", "text": "the pelican " * 20}]}
    thread.write_text(json.dumps({"id": "T-1", "messages": [message]}), encoding="utf-8")
    made = refresh(call_of(world), index_of(world), most_bytes=10_000_000)
    assert made.pending_bytes == thread.stat().st_size
    assert found(world, "pelican") == []
    refresh(call_of(world), index_of(world))
    assert found(world, "pelican") == ["T-1"]


def test_halves_of_surrogate_pairs_can_be_stored(world: World, tmp_path: Path) -> None:
    write_lines(claude_file(tmp_path / "home", LOGIN), conversation(LOGIN, ("user", "odd \ud83d giraffe")))
    refresh(call_of(world), index_of(world))
    assert found(world, "giraffe") == [LOGIN]


KILLED = """
import os, signal, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from vestige.engine.recall.sessions.refresh import end_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=end_with_parent)
    print(pool.submit(os.getppid).result() == os.getpid(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_workers_of_a_run_that_is_killed_end_too(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    # A worker that lives on holds the pipe of its standard output open, and this would wait for it.
    ended = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, timeout=120)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"True\n")

"""The archive: copies before clients delete, checked, once for equal content; and what will vanish when."""

import gzip
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

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
from vestige.engine.recall.sessions.archive import archive, diagnose
from vestige.engine.recall.sessions.folders import client_folders
from vestige.engine.recall.sessions.recall import find_sessions
from vestige.engine.recall.sessions.refresh import archive_folder, refresh
from vestige.exchange.transcripts.files import batches
from vestige.exchange.transcripts.folders import NO_FILE, OUTSIDE
from vestige.exchange.transcripts.sources import sources
from vestige.operations.registry.registry import registry
from vestige.store.contract.sessions import SessionFilter, SessionIndex
from vestige.store.sqlite.sessions.index import SqliteSessionIndex

DAY = 86_400


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_at_home(tmp_path) as opened:
        plant(tmp_path / "home")
        yield opened


def found(index: SessionIndex, world: World, query: str) -> list[str]:
    made = find_sessions(index, query, SessionFilter(), world.clock.now, limit=10)
    return [one.session.id for one in made.sessions]


def copies(world: World) -> list[Path]:
    return sorted(archive_folder(call_of(world)).rglob("*.gz"))


def test_a_copy_holds_the_file_byte_for_byte(world: World, tmp_path: Path) -> None:
    run = archive(call_of(world), index_of(world))
    assert (run.files, run.copied, run.same) == (2, 2, 0)
    path = claude_file(tmp_path / "home", LOGIN)
    assert path.read_bytes() in [gzip.decompress(copy.read_bytes()) for copy in copies(world)]
    again = archive(call_of(world), index_of(world))
    assert (again.copied, again.same) == (0, 2)


def test_a_file_that_grew_replaces_its_copy_and_a_changed_one_does_not(world: World, tmp_path: Path) -> None:
    archive(call_of(world), index_of(world))
    path = claude_file(tmp_path / "home", LOGIN)
    write_lines(path, [said(5, "user", "more", session=LOGIN)], "a")
    archive(call_of(world), index_of(world))
    assert len(copies(world)) == 2
    before = path.read_bytes()
    write_lines(path, [said(7, "user", "all new", session=LOGIN)])
    archive(call_of(world), index_of(world))
    held = [gzip.decompress(copy.read_bytes()) for copy in copies(world)]
    assert len(held) == 3
    assert before in held


def test_equal_files_are_kept_once(world: World, tmp_path: Path) -> None:
    path = claude_file(tmp_path / "home", LOGIN)
    (path.parent / "copy.jsonl").write_bytes(path.read_bytes())
    archive(call_of(world), index_of(world))
    assert len(copies(world)) == 2


def test_a_lost_index_is_made_again_from_the_archive(world: World, tmp_path: Path) -> None:
    refresh(call_of(world), index_of(world))
    archive(call_of(world), index_of(world))
    claude_file(tmp_path / "home", LOGIN).unlink()
    index_of(world).rebuild()
    made = refresh(call_of(world), index_of(world))
    assert made.changed == 2
    found = find_sessions(index_of(world), "flaky login test", SessionFilter(), world.clock.now, limit=5)
    assert [one.session.id for one in found.sessions] == [LOGIN]


@pytest.mark.parametrize("how", ["rewritten", "truncated", "rotated"])
@pytest.mark.parametrize("indexed", ["never", "lost", "here"])
def test_what_was_archived_is_found_when_the_file_is_another_one(
    how: str, indexed: str, world: World, tmp_path: Path
) -> None:
    if indexed != "never":
        refresh(call_of(world), index_of(world))
    archive(call_of(world), index_of(world))
    path = claude_file(tmp_path / "home", LOGIN)
    if how == "truncated":
        path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    else:
        if how == "rotated":
            path.rename(path.with_suffix(".old"))
        write_lines(path, [said(9, "user", "a new beginning", session=LOGIN)])
    index = index_of(world) if indexed != "lost" else SqliteSessionIndex(None)
    refresh(call_of(world), index)
    assert found(index, world, "token expires") == [LOGIN]
    assert refresh(call_of(world), index).changed == 0
    index.close()


def test_a_copy_of_what_is_indexed_is_not_read(world: World, tmp_path: Path) -> None:
    refresh(call_of(world), index_of(world))
    archive(call_of(world), index_of(world))
    claude_file(tmp_path / "home", LOGIN).unlink()
    assert refresh(call_of(world), index_of(world)).bytes_read == 0
    assert found(index_of(world), world, "token expires") == [LOGIN]


def test_a_copy_of_what_the_file_begins_with_is_not_read(world: World, tmp_path: Path) -> None:
    archive(call_of(world), index_of(world))
    path = claude_file(tmp_path / "home", LOGIN)
    write_lines(path, [said(5, "user", "now the zebra crossing", session=LOGIN)], "a")
    size = sum(one.stat().st_size for one in (tmp_path / "home").rglob("*.jsonl"))
    assert refresh(call_of(world), index_of(world)).bytes_read == size
    assert found(index_of(world), world, "zebra") == [LOGIN]
    path.unlink()
    assert refresh(call_of(world), index_of(world)).bytes_read == 0


def test_a_deleted_index_file_is_made_again_from_the_archive(tmp_path: Path) -> None:
    with world_at_home(tmp_path) as world:
        plant(tmp_path / "home")
        archive(call_of(world), index_of(world))
        catalogue = archive_folder(call_of(world)) / "catalogue.jsonl"
    catalogue.write_bytes(b'{"path": "torn' + catalogue.read_bytes() + b'{"path": "torn')
    claude_file(tmp_path / "home", LOGIN).unlink()
    for path in (tmp_path / "data").glob("sessions.db*"):
        path.unlink()
    with world_at_home(tmp_path) as world:
        refresh(call_of(world), index_of(world))
        assert LOGIN in {one.id for one in index_of(world).sessions(SessionFilter(), limit=10)}
        assert len(copies(world)) == diagnose(call_of(world), index_of(world)).copies == 2


def test_the_doctor_names_what_will_vanish_when_and_what_is_gone(world: World, tmp_path: Path) -> None:
    path = claude_file(tmp_path / "home", LOGIN)
    os.utime(path, (1_000 * DAY, 1_000 * DAY))
    refresh(call_of(world), index_of(world))
    found = diagnose(call_of(world), index_of(world))
    assert (found.files, found.unindexed) == (2, 0)
    first = found.expiring[0]
    assert (first.path, first.expires, first.archived) == (str(path), 1_030 * DAY, False)
    archive(call_of(world), index_of(world))
    assert all(one.archived for one in diagnose(call_of(world), index_of(world)).expiring)
    path.unlink()
    assert diagnose(call_of(world), index_of(world)).gone_archived == [str(path)]


def test_the_doctor_reads_copies_through_if_asked(world: World) -> None:
    archive(call_of(world), index_of(world))
    damaged = copies(world)[0]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    assert diagnose(call_of(world), index_of(world)).damaged == []
    assert [
        name.rsplit("/", 1)[-1] for name in diagnose(call_of(world), index_of(world), check=True).damaged
    ] == [damaged.name]


def test_a_link_out_of_a_clients_folder_is_neither_indexed_nor_archived_and_the_doctor_names_it(
    world: World, tmp_path: Path
) -> None:
    private = tmp_path / "private.jsonl"
    private.write_text('{"type": "user", "message": {"role": "user", "content": "xylophone"}}\n')
    links = claude_file(tmp_path / "home", LOGIN).parent
    (links / "link.jsonl").symlink_to(private)
    os.mkfifo(links / "pipe.jsonl")
    assert refresh(call_of(world), index_of(world)).files == 2
    archive(call_of(world), index_of(world))
    assert not any(b"xylophone" in gzip.decompress(copy.read_bytes()) for copy in copies(world))
    operation = registry.operations["sessions.doctor"]
    answer = world.call("sessions", action="doctor")
    assert (answer["skipped"], answer["skippedFiles"]) == (
        2,
        {str(links / "link.jsonl"): OUTSIDE, str(links / "pipe.jsonl"): NO_FILE},
    )
    shown = str(operation.render(world.app.run(operation, {}, lambda *_: None)))
    assert f"{links / 'link.jsonl'}: {OUTSIDE}" in shown


def test_a_file_that_became_a_link_after_it_was_listed_is_not_opened(world: World, tmp_path: Path) -> None:
    path = claude_file(tmp_path / "home", LOGIN)
    (source,) = (one for one in sources(client_folders(world.app.engine.settings)) if one.path == path)
    path.rename(tmp_path / "private.jsonl")
    path.symlink_to(tmp_path / "private.jsonl")
    with pytest.raises(OSError, match="symbolic"):
        list(batches(source, None))


@pytest.mark.parametrize("where", ["index", "catalogue"])
@pytest.mark.parametrize("name", ["../../victim", "{folder}/victim", "aa/{digest}.gz/../../../victim"])
def test_an_index_from_elsewhere_names_no_file_outside_the_archive(
    world: World, tmp_path: Path, name: str, where: str
) -> None:
    """The snapshot of another machine can have any index; a restore keeps it."""
    victim = tmp_path / "victim"
    write_lines(victim, [said(0, "user", "the canary sings at dawn", session="x")])
    archive(call_of(world), index_of(world))
    path = claude_file(tmp_path / "home", LOGIN)
    write_lines(path, [said(9, "user", "more", session=LOGIN)], "a")
    digest, data = hashlib.sha256(b"").hexdigest(), tmp_path / "data"
    name = name.format(folder=tmp_path, digest=digest)
    row = {"path": str(path), "client": "claude", "name": name, "sha256": digest, "size": 0, "archived": 1.0}
    gone = {**row, "path": str(path.with_name("gone.jsonl"))}
    rows = [{**one, "state": {"session": "x"}} for one in (row, gone)]
    with closing(sqlite3.connect(data / "sessions.db", isolation_level=None)) as db:
        if where == "catalogue":
            db.execute("DELETE FROM archive")
            catalogue = data / "session-archive" / "catalogue.jsonl"
            catalogue.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
        else:
            for one in rows:
                values = [*list(one.values())[:-1], json.dumps(one["state"])]
                db.execute("INSERT INTO archive VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    refresh(call_of(world), index_of(world))
    archive(call_of(world), index_of(world))
    diagnose(call_of(world), index_of(world), check=True)
    assert victim.exists()
    found = find_sessions(index_of(world), "canary", SessionFilter(), world.clock.now, limit=5)
    assert found.sessions == []

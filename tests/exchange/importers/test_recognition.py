"""Every format is recognised by itself, imported once, and its file is only read."""

import hashlib
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import HandClock, World, open_world
from tests.exchange.importers.imports import DATA, IN_MEMORY, LATER, imported
from vestige.core.errors import InvalidInput, VestigeError
from vestige.core.models import EVERYTHING, Filter
from vestige.exchange.importers.recognition import READERS, ImportFormat, recognise

FILES = (
    ("mem0/get_all.json", "mem0", 5),
    ("mem0/history.db", "mem0", 5),
    ("mem0/qdrant", "qdrant", 5),
    ("mem0", "mem0", 5),
    ("sqlite_vec.db", "mcp-memory-service", 3),
    ("mcp-memory-service.json", "mcp-memory-service", 3),
    ("claude-mem.db", "claude-mem", 6),
    ("mempalace", "mempalace", 6),
    ("mempalace/palace", "mempalace", 6),
    ("basic-memory", "basic-memory", 6),
    ("hindsight.zip", "hindsight", 5),
    ("openmemory.sqlite", "openmemory", 4),
)


@pytest.fixture
def later(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "store", clock=HandClock(LATER), **IN_MEMORY) as world:
        yield world


def digests(path: Path) -> dict[str, str]:
    files = [path, *path.rglob("*")] if path.is_dir() else list(path.parent.iterdir())
    return {str(one): hashlib.sha256(one.read_bytes()).hexdigest() for one in files if one.is_file()}


@pytest.mark.parametrize(("name", "form", "memories"), FILES)
def test_a_file_of_another_program_is_recognised_and_imported_once(
    later: World, tmp_path: Path, name: str, form: str, memories: int
) -> None:
    shutil.copytree(DATA, tmp_path / "data")
    path = tmp_path / "data" / name
    before = digests(path)

    tried = imported(later, path, dry_run=True)
    assert later.app.engine.store.count(Filter(archived=None), access=EVERYTHING) == 0
    done = imported(later, path)
    position = later.app.engine.store.log(access=EVERYTHING, limit=10_000)[-1].position
    again = imported(later, path)

    assert (done["format"], done["memoriesImported"], done["notes"]) == (form, memories, [])
    assert {**tried, "dryRun": False, "embedded": done["embedded"]} == done
    assert (again["imported"], again["present"], again["left"]) == (0, done["imported"], done["left"])
    assert later.app.engine.store.log(access=EVERYTHING, after=position) == []
    assert done["read"] == done["imported"] + done["left"]
    assert digests(path) == before


def test_the_same_memories_of_mem0_in_three_files_are_one(later: World) -> None:
    imported(later, DATA / "mem0" / "qdrant")

    for name in ("get_all.json", "history.db"):
        done = imported(later, DATA / "mem0" / name)
        assert (done["imported"], done["present"]) == (0, 5)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_can_be_imported(later: World, tmp_path: Path) -> None:
    folder = tmp_path / "readonly"
    shutil.copytree(DATA / "mempalace", folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)

    assert imported(later, folder)["memoriesImported"] == 6


def test_what_is_in_the_log_beside_a_database_is_read_too(later: World, tmp_path: Path) -> None:
    shutil.copy(DATA / "claude-mem.db", tmp_path / "claude-mem.db")
    with closing(sqlite3.connect(tmp_path / "claude-mem.db")) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("UPDATE user_prompts SET prompt_text = 'Written a moment ago.' WHERE id = 2")
        running.commit()
        before = digests(tmp_path / "claude-mem.db")

        done = imported(later, tmp_path / "claude-mem.db")

        assert digests(tmp_path / "claude-mem.db") == before
    assert done["memoriesImported"] == 6
    assert later.find("a moment ago")[0] == "Written a moment ago."


@pytest.mark.parametrize("name", ["claude-mem.db", "sqlite_vec.db", "openmemory.sqlite", "mem0/history.db"])
def test_a_damaged_database_is_refused_with_a_hint(later: World, tmp_path: Path, name: str) -> None:
    whole = (DATA / name).read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 3])
    holes = bytearray(whole)
    holes[2048::97] = b"\xff" * len(holes[2048::97])
    (tmp_path / "holes.db").write_bytes(holes)

    for broken in ("cut.db", "holes.db"):
        with pytest.raises(VestigeError) as refused:
            imported(later, tmp_path / broken)
        assert refused.value.code == "invalid_input"


def test_every_format_has_a_reader_and_can_be_said(later: World, tmp_path: Path) -> None:
    """A wrong format is refused or reads nothing; it never fails in another way."""
    assert set(ImportFormat) - set(READERS) == {ImportFormat.PORTABLE}
    text = tmp_path / "note.txt"
    text.write_text("Just words.", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    for form in READERS:
        for path in (text, DATA / "mem0" / "history.db", DATA / "hindsight.zip", tmp_path / "empty"):
            try:
                done = imported(later, path, dry_run=True, **{"from": form.value})
            except InvalidInput:
                continue
            assert done["format"] == form.value


def test_an_unknown_database_or_archive_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE t (x)")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "x")

    for name in ("other.db", "other.zip"):
        with pytest.raises(InvalidInput) as refused:
            recognise(tmp_path / name)
        assert "mem0" in str(refused.value.hint)

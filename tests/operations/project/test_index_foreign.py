"""An index that came with a project, or was made for another place, is reported and never read."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import World, open_world

SEARCH = {"action": "search", "query": "add two numbers"}


def project(folder: Path, text: str = "def add(a, b):\n    return a + b\n") -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / "sums.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "shop")


@pytest.fixture
def world(tmp_path: Path, root: Path) -> Iterator[World]:
    with open_world(tmp_path / "data", place=root) as made:
        yield made


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """An index of a stranger for a project of the same name, in which another file has all the words."""
    theirs = project(tmp_path / "stranger" / "shop")
    (theirs / "evil.py").write_text("# add two numbers\n" * 40, encoding="utf-8")
    with open_world(tmp_path / "strange data", place=theirs) as world:
        world.call("project", action="init")
        assert world.call("project", **SEARCH)["hits"][0]["path"] == "evil.py"
    return theirs / ".vestige"


def indexes(root: Path) -> set[str]:
    return {file.name for file in (root / ".vestige").glob("code*.db")}


@pytest.mark.parametrize("name", ["", "code.db", "code-00000000000000000000000000000000.db"])
def test_a_planted_index_answers_nothing_and_is_named(
    world: World, root: Path, planted: Path, name: str
) -> None:
    shutil.copytree(planted, root / ".vestige")
    (theirs,) = (root / ".vestige").glob("code-*.db")
    theirs.rename(root / ".vestige" / (name or theirs.name))
    for action in ("status", "refresh", "search", "doctor", "recall", "warm_up"):
        extra = {"query": "add"} if action == "search" else {"task": "add"} if action == "recall" else {}
        tool = {"recall": "project_recall", "warm_up": "project_warm_up"}.get(action, "project")
        given = extra if tool != "project" else {"action": action, **extra}
        refused = world.refused(tool, **given)
        assert refused["code"] == "not_found"
        assert "not made here" in refused["message"]
        assert "project init" in refused["hint"]


def test_init_makes_an_index_of_its_own_beside_a_planted_one(world: World, root: Path, planted: Path) -> None:
    shutil.copytree(planted, root / ".vestige")
    before = indexes(root)
    done = world.call("project", action="init")
    assert (done["files"], done["added"]) == (1, 1)
    assert "1 other index" in done["message"]
    assert [hit["path"] for hit in world.call("project", **SEARCH)["hits"]] == ["sums.py"]
    found = world.call("project", action="doctor")
    assert found["status"] == "warnings"
    assert "not read" in found["findings"][0]["message"]
    assert before < indexes(root)


def test_rebuild_replaces_a_planted_index(world: World, root: Path, planted: Path) -> None:
    shutil.copytree(planted, root / ".vestige")
    before = indexes(root)
    assert world.call("project", action="rebuild")["files"] == 1
    assert len(indexes(root)) == 1
    assert not before & indexes(root)
    assert world.call("project", action="doctor")["status"] == "ok"
    assert [hit["path"] for hit in world.call("project", **SEARCH)["hits"]] == ["sums.py"]


def test_a_log_that_is_planted_beside_the_index_is_not_read_with_it(world: World, root: Path) -> None:
    """SQLite reads any log that lies beside a file, so that the name of the file must not be known."""
    world.call("project", action="init")
    own = next(iter(indexes(root)))
    assert own != "code.db"
    assert len(own) == len("code-.db") + 32
    (root / ".vestige" / "code.db-wal").write_bytes(b"x" * 5_000)
    assert world.call("project", action="doctor")["status"] == "ok"


def test_an_index_planted_in_a_folder_inside_does_not_hide_the_own_one(
    tmp_path: Path, root: Path, planted: Path
) -> None:
    inside = root / "lib"
    inside.mkdir()
    shutil.copytree(planted, inside / ".vestige")
    with open_world(tmp_path / "data", place=root) as world:
        world.call("project", action="init")
    with open_world(tmp_path / "data", place=inside) as world:
        found = world.call("project", **SEARCH)
        assert [hit["path"] for hit in found["hits"]] == ["sums.py"]


def test_rows_that_are_changed_in_a_copy_do_not_come_back(tmp_path: Path, root: Path) -> None:
    """A project that was given away with its index, and comes back into another folder."""
    with open_world(tmp_path / "data", place=root) as world:
        world.call("project", action="init")
    returned = tmp_path / "returned"
    shutil.copytree(root, returned)
    (file,) = (returned / ".vestige").glob("code-*.db")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("update section set name = 'changed'")
    with open_world(tmp_path / "data", place=returned) as world:
        assert world.refused("project", **SEARCH)["code"] == "not_found"
        world.call("project", action="init")
        assert world.call("project", **SEARCH)["hits"][0]["symbol"] == "add"


def test_a_moved_project_needs_one_init(tmp_path: Path, root: Path) -> None:
    with open_world(tmp_path / "data", place=root) as world:
        world.call("project", action="init")
    moved = root.rename(tmp_path / "moved")
    with open_world(tmp_path / "data", place=moved) as world:
        refused = world.refused("project", action="status")
        assert "moved" in refused["hint"]
        assert world.call("project", action="init")["files"] == 1
        assert world.call("project", **SEARCH)["hits"][0]["path"] == "sums.py"
    with open_world(tmp_path / "data", place=moved) as world:  # after a restart
        assert world.call("project", action="status")["files"] == 1


def test_a_store_inside_of_the_project_keeps_its_key_elsewhere(tmp_path: Path, root: Path) -> None:
    data = root / ".vestige"
    with open_world(data, place=root, template=False) as world:
        world.call("project", action="init")
        assert world.call("project", **SEARCH)["hits"][0]["path"] == "sums.py"
    assert not list(data.glob("project-key*"))
    (key,) = data.rglob("project-key")  # HOME of this world is in its data directory
    assert key.parent != data
    assert key.stat().st_mode & 0o777 == 0o600

"""The operations on the index of a project, and who may call them."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import Forbidden, VestigeError
from vestige.core.models import Access
from vestige.operations.project.search import CodeFound, render_found

SOURCE = "def add(a, b):\n    return a + b\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "sums.py").write_text(SOURCE, encoding="utf-8")
    return folder


@pytest.fixture
def world(tmp_path: Path, root: Path) -> Iterator[World]:
    with open_world(tmp_path / "data", place=root) as made:
        yield made


def index_of(root: Path) -> Path:
    """The only index of a project."""
    (file,) = (root / ".vestige").glob("code-*.db")
    return file


def by(
    world: World, action: str, *, access: Access, permissions: tuple[str, ...] = ("read",), **given: object
) -> object:
    caller = Caller(name="agent", permissions=frozenset(permissions), access=access)
    return world.app.call_tool(
        Invocation(name="project", arguments={"action": action, **given}, request_id="test", caller=caller)
    )


def test_without_init_there_is_nothing(world: World, root: Path) -> None:
    for action in ("status", "refresh", "rebuild", "doctor", "search"):
        extra = {"query": "add"} if action == "search" else {}
        assert world.refused("project", action=action, **extra)["code"] == "not_found"
    assert not (root / ".vestige").exists()


def test_init_indexes_the_repository_around_the_folder(world: World, root: Path) -> None:
    done = world.call("project", action="init")
    assert (done["project"], done["files"], done["added"]) == ("shop", 1, 1)
    assert done["freshness"]["word"] == "fresh"
    assert done["scope"].startswith("/project/shop")
    again = world.call("project", action="init")
    assert (again["added"], again["changed"]) == (0, 0)
    assert index_of(root).is_file()


def test_status_counts_memories_of_the_project(world: World) -> None:
    world.call("project", action="init")
    world.remember("Sums are never rounded.")
    status = world.call("project", action="status")
    assert (status["memories"], status["files"], status["complete"]) == (1, 1, True)


def test_status_names_what_was_left_out_on_reading_with_its_reason(world: World, root: Path) -> None:
    (root / "bundle.js").write_text("var harbour = 1;" * 10_000, encoding="utf-8")
    (root / "lib.min.js").write_text("var a;", encoding="utf-8")
    (root / "table.py").write_bytes(b"x = 1\0")
    done = world.call("project", action="init")
    assert (done["files"], done["skipped"]) == (1, {"binary": 1, "build output": 2, "minified": 2})
    status = world.call("project", action="status")
    assert status["skipped"] == done["skipped"]
    assert status["skippedExamples"]["minified"] == ["lib.min.js", "bundle.js"]
    assert status["skippedExamples"]["binary"] == ["table.py"]


def test_a_damaged_index_is_reported_and_rebuilt(world: World, root: Path) -> None:
    world.call("project", action="init")
    memory = world.remember("Sums are never rounded.")
    index_of(root).write_bytes(b"not a database, " * 1000)
    assert world.refused("project", action="search", query="add")["code"] == "store_corrupt"
    found = world.call("project", action="doctor")
    assert found["status"] == "broken"
    assert "rebuild" in found["findings"][0]["remedy"]
    assert world.call("project", action="rebuild")["files"] == 1
    assert world.call("project", action="doctor")["status"] == "ok"
    assert world.get(memory)["content"] == "Sums are never rounded."


@pytest.mark.parametrize(
    "damage",
    [
        "update file set terms = x'00'",
        "update file set terms = 5",
        "update file set terms = (select terms from file where path = 'more.py')",
        "update state set value = 'no'",
        "update state set value = '{\"other\": 1}'",
        'update state set value = \'{"generation": "x"}\'',
        "delete from section where file_id in (select id from file where path = 'sums.py')",
        "drop table words",
    ],
)
def test_rows_that_do_not_fit_together_are_damage_too(world: World, root: Path, damage: str) -> None:
    (root / "more.py").write_text("".join(f"def f{n}():\n    return add({n}, 1)\n" * 9 for n in range(99)))
    world.call("project", action="init")
    with closing(sqlite3.connect(index_of(root))) as database, database:
        database.execute(damage)
    found = world.call("project", action="doctor")
    assert found["status"] == "broken"
    assert "rebuild" in found["findings"][0]["remedy"]
    (root / "sums.py").write_text(f"{SOURCE}\n", encoding="utf-8")
    refused = world.refused("project", action="refresh")
    assert refused["code"] == "store_corrupt"
    assert "rebuild" in refused["hint"]
    assert world.call("project", action="rebuild")["files"] == 2
    assert world.call("project", action="doctor")["status"] == "ok"
    assert world.call("project", action="search", query="add")["hits"][0]["path"] == "sums.py"


def test_search_says_how_fresh_it_is(world: World, root: Path) -> None:
    world.call("project", action="init")
    (root / "new.py").write_text("x = 1\n", encoding="utf-8")
    found = world.call("project", action="search", query="add")
    assert found["freshness"] == {"word": "stale", "staleFiles": 1}
    assert found["hits"][0]["path"] == "sums.py"
    assert world.call("project", action="search", query="zebra")["message"] == "Nothing found."


def test_a_link_for_a_memory_directory_is_refused(world: World, root: Path, tmp_path: Path) -> None:
    (root / ".vestige").symlink_to(tmp_path)
    assert world.refused("project", action="init")["code"] == "store"
    assert not list(tmp_path.glob("code*"))


def test_only_the_command_line_may_index_another_folder(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text(SOURCE, encoding="utf-8")
    assert world.refused("project", action="init", path=str(other))["code"] == "forbidden"
    assert world.refused("project", action="search", query="add", path=str(other))["code"] == "not_found"


def test_a_caller_with_limited_access_sees_no_code(world: World) -> None:
    scope = world.call("project", action="init")["scope"]
    assert by(world, "search", access=Access(), query="add")
    for access in (Access(scopes=(scope,)), Access(domains=("cooking",))):
        with pytest.raises(Forbidden):
            by(world, "search", access=access, query="add")


def test_a_reader_may_not_index(world: World) -> None:
    world.call("project", action="init")
    for action in ("init", "refresh", "rebuild"):
        with pytest.raises(VestigeError) as refused:
            by(world, action, access=Access())
        assert refused.value.code == "forbidden"


def test_the_root_of_the_disk_and_the_home_are_too_large(world: World) -> None:
    caller = Invocation(name="project.init", arguments={"path": "/"}, request_id="test", local=True)
    with pytest.raises(VestigeError, match="too large"):
        world.app.call_operation(caller)


def test_places_for_people_are_a_list_without_blank_lines(world: World) -> None:
    world.call("project", action="init")
    found = world.call("project", action="search", query="add", detail="places")
    lines = render_found(CodeFound.model_validate(found)).split("\n")
    assert len(lines) == 2
    assert "sums.py:1-2" in lines[0]


def test_where_nobody_shares_memories_nothing_is_loaded_to_read_them(world: World, root: Path) -> None:
    """It takes longer to import than a refresh without changes takes."""
    code = (
        "import sys, vestige.operations.project.index as index\n"
        "print([one for one in sys.modules if one.endswith(('team_memory', 'scan_secrets'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ADMIN = ("read", "write", "admin")


@pytest.mark.parametrize("action", ["status", "init", "rebuild", "refresh", "doctor"])
def test_a_client_of_the_network_is_not_told_which_folders_there_are(
    world: World, root: Path, tmp_path: Path, action: str
) -> None:
    foreign = tmp_path / "cloned"
    (foreign / ".vestige").mkdir(parents=True)
    world.call("project", action="init")
    (foreign / ".vestige" / index_of(root).name).write_bytes(index_of(root).read_bytes())
    (tmp_path / "private").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    answers = set()
    for name in ("private", "file", "none", "cloned", "private/none"):
        with pytest.raises(VestigeError) as caught:
            by(world, action, access=Access(), permissions=ADMIN, path=str(tmp_path / name))
        answers.add((caught.value.code, caught.value.message, caught.value.hint))
    assert len(answers) == 1
    assert by(world, action, access=Access(), permissions=ADMIN, path=str(root))

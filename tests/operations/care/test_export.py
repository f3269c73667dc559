"""`export`: memories as a file that is whole or not there, on every store."""

import errno
from pathlib import Path
from typing import Any

import orjson
import pytest

from testbed.world import World, open_world
from vestige.core.errors import Cancelled, Forbidden
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IN_A: dict[str, Any] = {"memory.scope": "/project/a"}
EXPORT = registry.operations["export"]


def exported(world: World, **arguments: Any) -> list[dict[str, Any]]:
    path = Path(world.call("export", format="jsonl", **arguments)["path"])
    lines = path.read_bytes().splitlines()
    path.unlink()
    return [orjson.loads(line) for line in lines]


def contents(world: World, **arguments: Any) -> list[str]:
    return [one["content"] for one in exported(world, **arguments)]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_everything_is_written_as_memory_shows_it_and_without_vectors(world: World, form: str) -> None:
    first = world.remember("Ada drinks tea.\nDaily.", tags=["drink"], author="Ada", metadata={"a": [1]})
    second = world.remember("The parser is written in Rust.", scope="/project/a")

    done = world.call("export", format=form)

    raw = Path(done["path"]).read_bytes()
    nodes = orjson.loads(raw) if form == "json" else [orjson.loads(line) for line in raw.splitlines()]
    assert [node.pop("domainScores") for node in nodes] == [{}, {}]
    assert nodes == [world.get(first), world.get(second)]
    assert b"vector" not in raw
    assert done["sizeBytes"] == len(raw)
    assert (done["memoriesExported"], done["totalMemories"], done["scope"]) == (2, 2, "/")
    assert Path(done["path"]).name == f"memories-20260301-090000.{form}"


@pytest.mark.parametrize(("form", "empty"), [("json", []), ("jsonl", None)])
def test_an_export_of_nothing_is_an_empty_file_of_its_format(world: World, form: str, empty: Any) -> None:
    path = Path(world.call("export", format=form)["path"])

    assert (orjson.loads(path.read_bytes()) == []) if empty is not None else (path.read_bytes() == b"")


def test_a_person_is_told_that_nothing_matched(world: World) -> None:
    world.remember("Ada drinks tea.", tags=["drink"])
    call = Call(engine=world.app.engine)
    for tags, told in ((["work"], True), (["drink"], False)):
        result = EXPORT.answer(call, {"tags": tags, "path": f"{tags[0]}.jsonl"})
        assert ("No memory matched" in EXPORT.render(result)) is told


def test_the_file_is_its_owners_alone_and_nothing_else_is_left(world: World) -> None:
    world.remember("Ada drinks tea.")
    path = Path(world.call("export", path="mine.json")["path"])

    assert path == world.app.engine.settings.data_dir / "exports" / "mine.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert list(path.parent.iterdir()) == [path]


def test_nothing_is_overwritten(world: World) -> None:
    world.remember("Ada drinks tea.")
    path = Path(world.call("export", path="mine.json")["path"])
    before = path.read_bytes()
    world.remember("The parser is written in Rust.")

    error = world.refused("export", path="mine.json")

    assert (error["code"], "exists already" in error["message"]) == ("invalid_input", True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "name", ["../up.json", "a/b.json", "/tmp/x.json", "..", ".", "", " ", ".hidden", "a\\b", "a\0b", "a\nb",
             "C:x.json", "x" * 250]
)  # fmt: skip
def test_a_path_is_the_plain_name_of_a_file(world: World, name: str) -> None:
    error = world.refused("export", path=name)

    assert error["code"] == "invalid_input"
    assert not (world.app.engine.settings.data_dir / "exports").exists()


def test_exports_of_the_same_second_get_a_number(world: World) -> None:
    world.remember("Ada drinks tea.")

    paths = [Path(world.call("export", format="jsonl")["path"]) for _ in range(3)]

    assert [path.name.removeprefix("memories-20260301-090000") for path in paths] == [
        ".jsonl",
        "-2.jsonl",
        "-3.jsonl",
    ]
    assert len({path.read_bytes() for path in paths}) == 1


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.jsonl", "jsonl"),
        ("A.JSONL", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.json", "json"),
        ("a.txt", "json"),
    ],
)
def test_the_name_of_the_file_tells_its_format(world: World, path: str, form: str) -> None:
    world.remember("Ada drinks tea.")

    done = world.call("export", path=path)

    assert done["format"] == form
    assert Path(done["path"]).read_bytes().startswith(b"[" if form == "json" else b"{")


@pytest.mark.parametrize(("path", "form"), [("a.jsonl", "json"), ("a.json", "jsonl")])
def test_a_name_that_tells_another_format_is_refused(world: World, path: str, form: str) -> None:
    error = world.refused("export", path=path, format=form)

    assert (error["code"], form in error["message"]) == ("invalid_input", True)
    assert not (world.app.engine.settings.data_dir / "exports").exists()


def test_tags_must_all_match_and_since_is_inclusive(world: World) -> None:
    world.remember("Tea is green.", tags=["drink", "green"])
    world.clock.advance(days=2)
    world.remember("Grass needs rain.", tags=["green"])

    assert contents(world, tags=["green", "drink"]) == ["Tea is green."]
    assert contents(world, since="2026-03-03") == ["Grass needs rain."]


def test_as_of_and_known_at_give_what_was_true_and_what_was_known(world: World) -> None:
    old = world.remember("The service runs on PostgreSQL 14.")
    world.clock.advance(days=1)
    world.remember("The service runs on PostgreSQL 16.")
    world.clock.advance(days=1)
    world.call("memory", action="edit", id=old, content="The service ran on PostgreSQL 14.")

    assert contents(world, as_of="2026-03-01T12:00:00Z") == ["The service ran on PostgreSQL 14."]
    assert contents(world, as_of="2026-03-02T12:00:00Z") == ["The service runs on PostgreSQL 16."]
    (known,) = exported(world, known_at="2026-03-01T12:00:00Z")
    assert known["content"] == "The service runs on PostgreSQL 14."
    assert "validUntil" not in known
    assert len(contents(world, known_at="2026-03-02T12:00:00Z")) == 2


def test_the_callers_own_scope_is_exported_unless_another_is_asked_for(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        world.remember("Ours is blue.")
        world.remember("Theirs is red.", scope="/project/b")

        assert contents(world) == ["Ours is blue."]
        assert contents(world, scope="/project/b") == ["Theirs is red."]
        assert len(contents(world, scope="/")) == 2
        done = world.call("export", path="x.json")
        assert (done["scope"], done["memoriesExported"], done["totalMemories"]) == ("/project/a", 1, 2)


@pytest.mark.parametrize("form", ["jsonl", "portable"])
def test_an_export_of_the_callers_own_scope_says_what_it_leaves_out(tmp_path: Path, form: str) -> None:
    with open_world(tmp_path, **IN_A) as world:
        world.remember("Ours is blue.", tags=["colour"])
        world.remember("All of us like green.", scope="/", tags=["colour"])
        for colour in ("red", "black"):
            world.remember(f"Theirs is {colour}.", scope="/project/b", tags=["colour"])
        world.remember("Theirs is far away.", scope="/project/b")

        done = world.call("export", format=form)
        assert done["memoriesExported"] == 2
        assert (
            done["note"] == '3 memories of other scopes were left out. Pass scope "/" to export everything.'
        )
        result = EXPORT.answer(Call(engine=world.app.engine, scope="/project/a"), {"format": form})
        assert done["note"] in EXPORT.render(result).splitlines()

        chosen = world.call("export", format=form, tags=["colour"])
        assert chosen["note"].startswith("2 memories of other scopes were left out.")
        for plain in ({"scope": "/project/a"}, {"scope": "/"}, {"tags": ["unheard of"]}):
            assert "note" not in world.call("export", format=form, **plain)


def test_what_an_export_leaves_out_is_counted_within_the_callers_reach(world: World) -> None:
    world.remember("Ours is blue.", scope="/project/a")
    world.remember("Theirs is red.", scope="/project/b")
    world.remember("Nobody may know that it is black.", scope="/private")

    def note(*scopes: str) -> str | None:
        call = Call(engine=world.app.engine, access=Access(scopes=scopes), scope="/project/a")
        told: str | None = EXPORT.call(call, {}).get("note")
        return told

    assert note("/project/a") is None
    assert note("/project") == (
        '1 memory of other scopes was left out. Pass scope "/" to export everything you have access to.'
    )


def test_an_export_holds_only_what_the_caller_may_read_and_needs_its_permission(world: World) -> None:
    world.remember("Ours is blue.", scope="/project/a")
    world.remember("Theirs is red.", scope="/project/b")
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    done = EXPORT.call(call, {"format": "jsonl", "scope": "/"})

    assert done["path"].startswith("exports/")  # where the data directory is, is not his to know
    assert b"red" not in (world.app.engine.settings.data_dir / done["path"]).read_bytes()
    assert (done["memoriesExported"], done["totalMemories"]) == (1, 1)
    with pytest.raises(Forbidden):
        EXPORT.call(Call(engine=world.app.engine, permissions=frozenset({"read"})), {})


def test_an_export_that_is_cancelled_leaves_no_file(world: World) -> None:
    world.remember("Ada drinks tea.")
    progress: list[float] = []

    def told(done: float, total: float | None, what: str | None) -> None:
        progress.append(done)

    EXPORT.call(Call(engine=world.app.engine, progress=told), {"path": "whole.json"})
    asked = iter((False, True))
    with pytest.raises(Cancelled):
        EXPORT.call(Call(engine=world.app.engine, cancelled=lambda: next(asked)), {"path": "part.json"})

    assert progress == [1]
    assert [path.name for path in (world.app.engine.settings.data_dir / "exports").iterdir()] == [
        "whole.json"
    ]


def test_a_full_disk_is_told_as_one_and_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.remember("Ada drinks tea.")
    first = Path(world.call("export", path="first.json")["path"])

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    refused = world.refused("export", path="second.json")
    assert (refused["code"], [one.name for one in first.parent.iterdir()]) == ("store_full", ["first.json"])

"""`export` in the portable format: everything canonical, or only what belongs to the chosen memories."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from testbed.world import World, open_world
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

EXPORT = registry.operations["export"]


def portable(world: World, **arguments: Any) -> bytes:
    """The file as an agent gets it."""
    path = Path(world.call("export", format="portable", **arguments)["path"])
    raw = path.read_bytes()
    path.unlink()
    return raw


def lines(raw: bytes, kind: str) -> list[dict[str, Any]]:
    told = [orjson.loads(line) for line in raw.splitlines()]
    return [one for one in told if one.get("type") == kind]


def a_past(world: World) -> dict[str, str]:
    """Memories with revisions, links, an intention, a deletion; ids by name."""
    ids = {
        "tea": world.remember("Ada drinks green tea.", tags=["drink"]),
        "mate": world.remember("Bob drinks mate in the morning.", tags=["drink"]),
        "rust": world.remember("The parser is written in Rust.", scope="/project/a"),
        "gone": world.remember("The launch code is 4711 hexagons."),
    }
    world.clock.advance(days=1)
    world.call("memory", action="edit", id=ids["tea"], content="Ada drinks black tea.")
    world.call("memory", action="promote", id=ids["mate"])
    world.call("memory", action="delete", id=ids["gone"])
    world.call("suppress", id=ids["rust"])
    world.call(
        "intention", action="set", description="Buy oat milk.", trigger={"type": "time", "at": "2026-04-01"}
    )
    return ids


def test_everything_that_is_canonical_leaves(world: World) -> None:
    ids = a_past(world)

    done = world.call("export", format="portable")

    raw = Path(done["path"]).read_bytes()
    assert Path(done["path"]).name == "memories-20260302-090000.vestige.jsonl"
    told = {one["id"]: one for one in lines(raw, "memory")}
    assert set(told) == set(ids.values())
    assert [one["content"] for one in told[ids["tea"]]["versions"]] == [
        "Ada drinks green tea.",
        "Ada drinks black tea.",
    ]
    assert "versions" not in told[ids["gone"]]
    assert b"4711" not in raw
    assert told[ids["rust"]]["versions"][-1]["suppression_count"] == 1
    assert {"memory.remarked"} <= {event["kind"] for event in told[ids["mate"]]["events"]}
    assert b"Buy oat milk." in raw
    assert (done["memoriesExported"], done["deletedExported"], done["format"]) == (3, 1, "portable")
    assert done["documentsExported"] == len(lines(raw, "document"))
    assert done["sizeBytes"] == len(raw)


def test_nothing_in_it_depends_on_when_or_how_often_it_is_written(world: World) -> None:
    a_past(world)
    first = portable(world)
    world.clock.advance(days=3)

    assert portable(world, path="again.jsonl") == first
    assert gzip.decompress(portable(world, path="again.vestige.jsonl.gz")) == first


@pytest.mark.parametrize(
    "chosen",
    [
        {"tags": ["drink"]},
        {"since": "2026-03-03"},
        {"until": "2026-03-02"},
        {"scope": "/project/a"},
        {"as_of": "2026-03-02", "tags": ["drink"]},
    ],
    ids=["tag", "since", "until", "scope", "as of"],
)
def test_only_what_was_chosen_leaves(world: World, chosen: dict[str, Any]) -> None:
    ids = a_past(world)
    world.clock.advance(days=2)
    ids["late"] = world.remember("Grass needs rain.", tags=["green"])
    texts = {
        "tea": b"black tea",
        "mate": b"mate in the",
        "rust": b"parser",
        "late": b"Grass",
        "gone": b"4711",
    }
    wanted = {
        "tags": {"tea", "mate"},
        "since": {"late"},
        "until": {"tea", "mate", "rust"},
        "scope": {"rust"},
    }[next(name for name in ("tags", "since", "until", "scope") if name in chosen)]

    raw = portable(world, **chosen)

    assert {one["id"] for one in lines(raw, "memory")} == {ids[name] for name in wanted}
    for name, text in texts.items():
        assert (text in raw, ids[name].encode() in raw) == (name in wanted, name in wanted), name
    assert lines(raw, "curve") == []
    assert b"oat milk" not in raw


def test_a_link_leaves_only_with_both_of_its_ends(world: World) -> None:
    old = world.remember("The service runs on PostgreSQL 14.", tags=["db"])
    new = world.remember("The service no longer runs on PostgreSQL 14, but on 16.", tags=["db", "new"])
    both, one = portable(world, tags=["db"]), portable(world, tags=["new"])

    assert {(edge["source"], edge["target"]) for edge in lines(both, "edge")} <= {(old, new), (new, old)}
    assert lines(both, "edge")
    assert lines(one, "edge") == []
    assert old.encode() not in one


def test_a_caller_with_limited_access_gets_no_portable_file(world: World) -> None:
    """The numbers of its events would say how many there are in all."""
    a_past(world)
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    with pytest.raises(Forbidden, match="access to the whole store"):
        EXPORT.call(call, {"format": "portable", "scope": "/"})

    assert not list(world.app.engine.settings.data_dir.glob("exports/*"))


def test_vectors_come_along_when_asked_for_and_only_then(world: World) -> None:
    a_past(world)

    without, with_them = portable(world), portable(world, vectors=True)

    assert orjson.loads(without.splitlines()[0]) == {"format": "vestige.portable.v1", "vectors": None}
    assert not any("vectors" in one for one in lines(without, "memory"))
    assert orjson.loads(with_them.splitlines()[0])["vectors"]["name"] == "hashing"
    assert all("vectors" in one for one in lines(with_them, "memory") if "versions" in one)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.vestige.jsonl", "portable"),
        ("a.jsonl.gz", "portable"),
        ("a.VESTIGE.JSONL", "portable"),
        ("a.jsonl", "jsonl"),
    ],
)
def test_the_name_of_the_file_tells_the_format(world: World, path: str, form: str) -> None:
    assert world.call("export", path=path)["format"] == form


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"format": "jsonl", "path": "a.vestige.jsonl"}, "format"),
        ({"format": "json", "path": "a.json.gz"}, "format"),
        ({"format": "portable", "path": "a.json"}, "format"),
        ({"format": "portable", "known_at": "2026-03-01"}, "known_at"),
        ({"format": "json", "vectors": True}, "vectors"),
        ({"format": "portable", "path": "../a.jsonl"}, "path"),
    ],
)
def test_what_does_not_go_together_is_refused(world: World, arguments: dict[str, Any], argument: str) -> None:
    error = world.refused("export", **arguments)

    assert (error["code"], error["details"]) == ("invalid_input", {"argument": argument})
    assert not (world.app.engine.settings.data_dir / "exports").exists()


def test_the_local_user_names_any_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_world(tmp_path / "data") as world:
        world.remember("Ada drinks tea.")
        call = Call(engine=world.app.engine, local=True)
        here = EXPORT.call(call, {"path": "here.json"})
        there = EXPORT.call(call, {"path": str(tmp_path / "there.vestige.jsonl")})

    assert (here["path"], there["path"]) == (
        str(tmp_path / "here.json"),
        str(tmp_path / "there.vestige.jsonl"),
    )
    assert Path(there["path"]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["memories.json", "memories.vestige.jsonl.gz"])
def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, name: str) -> None:
    """It is mistyped, or on a disk that is not mounted; only `exports/` is ours to make."""
    with open_world(tmp_path / "data") as world:
        call = Call(engine=world.app.engine, local=True)
        with pytest.raises(InvalidInput) as refused:
            EXPORT.call(call, {"path": str(tmp_path / "usb" / "deep" / name)})
        own = EXPORT.call(call, {"path": str(tmp_path / "data" / "exports" / name)})

    assert str(tmp_path / "usb" / "deep") in refused.value.message
    assert refused.value.hint is not None
    assert not (tmp_path / "usb").exists()
    assert Path(own["path"]).is_file()

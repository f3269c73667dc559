"""`import` as callers see it: which files, into which scope, what is told, and what a stop leaves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from tests.exchange.importers.tools.reference_database import EDGES, INTENTIONS, NODES, build
from vestige.core.errors import Cancelled, Forbidden, InvalidInput, NotFound
from vestige.core.events import StoreMerged
from vestige.core.models import EVERYTHING, Access, Filter, Memory
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Add

IMPORT = registry.operations["import"]
IN_A: dict[str, Any] = {"memory.scope": "/project/a"}
KEY = "ghp_" + "a8Zk3Qm1Wx7Rt5Yv9Bn2Lc4Dp6Fs0Hj2Gk8T"


def exports(world: World) -> Path:
    folder = world.app.engine.settings.data_dir / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def lines(path: Path, *contents: str) -> Path:
    path.write_text("".join(f'{{"content": "{one}"}}\n' for one in contents), encoding="utf-8")
    return path


def as_user(world: World, **call: Any) -> Call:
    return Call(engine=world.app.engine, local=True, **call)


def count(world: World) -> int:
    return world.app.engine.store.count(Filter(archived=None), access=EVERYTHING)


def test_an_agent_imports_from_exports_and_backups_by_name(world: World) -> None:
    lines(exports(world) / "a.jsonl", "Ada drinks tea.")
    backups = exports(world).parent / "backups"
    backups.mkdir(exist_ok=True)
    build(backups / "old.db", 11, {"knowledge_nodes": NODES[:1]})

    first = world.call("import", path="a.jsonl")
    second = world.call("import", path="old.db")

    assert (first["format"], first["memoriesImported"], first["scope"]) == ("jsonl", 1, "/")
    assert (second["format"], second["memoriesImported"]) == ("reference", 1)
    assert (first["embedded"], second["embedded"]) == (1, 1)
    assert world.find("tea in the morning")


def test_restore_is_an_old_name_of_it(world: World) -> None:
    lines(exports(world) / "a.jsonl", "Ada drinks tea.")

    assert world.call("restore", path="a.jsonl")["memoriesImported"] == 1


@pytest.mark.parametrize("path", ["../secret.jsonl", "/etc/passwd", "a/b.jsonl", "..", ".hidden", "~/x", ""])
def test_an_agent_names_no_file_elsewhere(world: World, path: str) -> None:
    assert world.refused("import", path=path)["code"] == "invalid_input"


def test_a_name_that_is_refused_is_told_where_the_file_must_be(world: World) -> None:
    for tool in ("import", "restore"):
        hint = world.refused(tool, path="/etc/passwd")["hint"]
        assert hint.endswith("the file must be in exports/ or backups/ of the data directory.")


def test_a_file_that_is_not_there_is_not_found(world: World, tmp_path: Path) -> None:
    error = world.refused("import", path="nothing.jsonl")

    assert (error["code"], "exports/" in error["hint"]) == ("not_found", True)
    with pytest.raises(NotFound) as local:
        IMPORT.call(as_user(world), {"path": str(tmp_path / "nothing")})
    assert "file or folder" in str(local.value.hint)
    assert "exports/" in str(local.value.hint)


def test_the_user_names_any_file_and_exports_by_their_name(world: World, tmp_path: Path) -> None:
    elsewhere = lines(tmp_path / "b.jsonl", "Grace maintains the parser.")
    lines(exports(world) / "a.jsonl", "Ada drinks tea.")

    assert IMPORT.call(as_user(world), {"path": str(elsewhere)})["memoriesImported"] == 1
    assert IMPORT.call(as_user(world), {"path": "a.jsonl"})["memoriesImported"] == 1


def test_memories_go_where_the_caller_is_or_says(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        lines(exports(world) / "a.jsonl", "Ours.")

        assert world.call("import", path="a.jsonl")["scope"] == "/project/a"
        assert world.call("import", path="a.jsonl", scope="/project/b")["memoriesImported"] == 1
        scopes = world.call("system_status")["byScope"]
        assert scopes == {"/project/a": 1, "/project/b": 1}


def test_it_needs_its_permission_and_an_unlimited_reach(world: World) -> None:
    """A file in the folder of exports may hold what its importer does not reach in the store."""
    lines(exports(world) / "a.jsonl", "Ours.")
    limited = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    with pytest.raises(Forbidden) as refused:
        IMPORT.call(as_user(world, permissions=frozenset({"read", "write"})), {"path": "a.jsonl"})
    assert "`vestige keys create --label NAME --permissions admin`" in str(refused.value.hint)
    with pytest.raises(Forbidden):
        IMPORT.call(limited, {"path": "a.jsonl", "scope": "/project/a"})
    assert count(world) == 0


def test_the_format_can_be_said(world: World, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("# Tea\n\nAda drinks it.\n", encoding="utf-8")

    with pytest.raises(InvalidInput, match="not in a format"):
        IMPORT.call(as_user(world), {"path": str(path)})
    done = IMPORT.call(as_user(world), {"path": str(path), "from": "markdown"})

    assert (done["format"], done["memoriesImported"]) == ("markdown", 1)


def test_one_record_that_the_store_refuses_does_not_stop_its_batch(world: World) -> None:
    """An id of a memory out of reach is taken, and nobody may say by whom."""
    theirs = Memory(id="taken", content="Theirs.", created_at=world.clock.now, updated_at=world.clock.now,
                    scope="/project/b")  # fmt: skip
    world.app.engine.store.commit([Add(memory=theirs)], access=EVERYTHING)
    (exports(world) / "a.jsonl").write_text(
        '{"content": "One."}\n{"id": "taken", "content": "Two."}\n{"content": "Three."}\n', encoding="utf-8"
    )
    limited = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    done = IMPORT.run(limited, IMPORT.parse({"path": "a.jsonl", "scope": "/project/a"})).wire()

    assert (done["imported"], done["left"], done["examples"][0]["place"]) == (2, 1, "line 2")
    assert world.get("taken")["content"] == "Theirs."


def test_an_import_that_is_stopped_keeps_whole_batches_and_is_completed_by_the_next(world: World) -> None:
    lines(exports(world) / "a.jsonl", *(f"Number {n}." for n in range(450)))
    heard: list[float] = []

    def stop_later() -> Callable[[], bool]:
        asked = iter([False] * 2)  # before it starts, and before the first batch
        return lambda: next(asked, True)

    with pytest.raises(Cancelled):
        IMPORT.call(Call(engine=world.app.engine, cancelled=stop_later()), {"path": "a.jsonl"})
    assert count(world) == 200

    done = IMPORT.call(
        Call(engine=world.app.engine, progress=lambda at, total, what: heard.append(at)), {"path": "a.jsonl"}
    )

    assert (done["imported"], done["present"], done["embedded"]) == (250, 200, 450)
    assert heard[:3] == [200, 400, 450]


def test_vectors_that_a_stop_prevented_are_made_by_the_next_run(world: World) -> None:
    lines(exports(world) / "a.jsonl", *(f"Number {n}." for n in range(130)))
    asked = iter([False] * 3)  # before it starts, before the batch, and before the first slice of vectors
    stopping = Call(engine=world.app.engine, cancelled=lambda: next(asked, True))

    with pytest.raises(Cancelled):
        IMPORT.call(stopping, {"path": "a.jsonl"})
    assert count(world) == 130
    done = world.call("import", path="a.jsonl")

    assert (done["imported"], done["present"], done["embedded"]) == (0, 130, 66)


def test_listeners_are_told_once(world: World) -> None:
    lines(exports(world) / "a.jsonl", "One.", "Two.")

    world.call("import", path="a.jsonl")
    world.call("import", path="a.jsonl")

    merged = [one for one in world.heard if isinstance(one, StoreMerged)]
    assert [(one.source, one.added, one.changed, one.ended) for one in merged] == [("a.jsonl", 2, 0, 0)]


def test_a_portable_file_is_united_and_takes_no_scope(tmp_path: Path) -> None:
    with open_world(tmp_path / "one") as world:
        kept = world.remember("Ada drinks tea.")
        world.call("export", format="portable", path="all.jsonl")
        file = exports(world) / "all.jsonl"
    with open_world(tmp_path / "two") as world:
        checked = IMPORT.call(as_user(world), {"path": str(file), "dry_run": True})
        assert (checked["format"], checked["byKind"]["memory"]["read"], count(world)) == ("portable", 1, 0)
        with pytest.raises(InvalidInput):
            IMPORT.call(as_user(world), {"path": str(file), "scope": "/project/a"})

        done = IMPORT.call(as_user(world), {"path": str(file)})

        assert (done["memoriesImported"], world.get(kept)["content"]) == (1, "Ada drinks tea.")
        assert IMPORT.call(as_user(world), {"path": str(file)})["imported"] == 0


def test_secrets_are_left_redacted_or_taken_as_the_setting_says(tmp_path: Path) -> None:
    for policy, imported in (("refuse", 1), ("redact", 2), ("allow", 2)):
        settings: dict[str, Any] = {"memory.secrets": policy}
        with open_world(tmp_path / policy, **settings) as world:
            lines(exports(world) / "a.jsonl", "Ada drinks tea.", f"The token is {KEY}")

            done = world.call("import", path="a.jsonl")

            assert done["imported"] == imported
            assert (KEY in str(done)) is False
            texts = str(world.call("export", format="json", path="out.json"))
            texts += (exports(world) / "out.json").read_text(encoding="utf-8")
            assert (KEY in texts) == (policy == "allow")


@pytest.mark.parametrize("field", ["node_type", "agent_id", "session_id"])
def test_a_secret_is_found_in_every_field_that_holds_words(world: World, field: str) -> None:
    (exports(world) / "a.jsonl").write_text(
        f'{{"content": "Ada drinks tea.", "{field}": "{KEY}"}}\n', encoding="utf-8"
    )

    done = world.call("import", path="a.jsonl")

    assert (done["imported"], done["left"]) == (0, 1)
    assert "secret" in done["reasons"][0]["what"]


def test_a_secret_in_the_trigger_of_an_imported_intention_is_found(world: World) -> None:
    event = next(row for row in INTENTIONS if row["id"] == "i-event")
    told = {**event, "trigger_data": json.dumps({"condition": f"the token {KEY} expires"})}
    build(exports(world) / "old.db", 11, {"knowledge_nodes": NODES, "intentions": (told,)})

    done = world.call("import", path="old.db")

    assert any("secret" in one["what"] for one in done["reasons"])
    histories = world.app.engine.store.histories(access=EVERYTHING)
    assert KEY not in repr([one for batch in histories for one in batch])


def test_the_answer_for_a_person_names_every_reason(world: World) -> None:
    build(exports(world) / "old.db", 11, {"knowledge_nodes": NODES, "memory_connections": EDGES})

    text = IMPORT.render(IMPORT.answer(Call(engine=world.app.engine), {"path": "old.db"}))

    assert "it links a memory to itself" in text
    assert "already here" in text

"""Taking a portable file in: united with what is here, told to who listens, or refused as a whole."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.errors import Forbidden, InvalidInput, VestigeError
from vestige.core.events import StoreMerged
from vestige.core.models import EVERYTHING, Access, Edge
from vestige.embed.protocol import Signature
from vestige.engine.context import Call
from vestige.engine.exchange.export import export_portable
from vestige.engine.exchange.import_portable import import_portable, inspect
from vestige.exchange.portable.file import PortableReader, Writer
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Link
from vestige.store.merge.histories import EdgeHistory, EntityHistory, MemoryHistory

KEY = "ghp_" + "a8Kx93mPq0ZvT2rYw7LdNc51sBfUeJhGi4Xo"  # made up


def a_call(world: World) -> Call:
    return Call(engine=world.app.engine, local=True)


def exported(world: World, path: Path, *, vectors: bool = False) -> Path:
    return export_portable(a_call(world), None, name=str(path), vectors=vectors)[0]


IN_MEMORY: dict[str, Any] = {"storage.backend": "memory"}


class Elsewhere(HandClock):
    """The clock of another machine, which gives other ids."""

    def __init__(self, machine: int = 1) -> None:
        super().__init__()
        self.machine = machine

    def new_id(self) -> str:
        return super().new_id().replace("01890000", f"0189000{self.machine}")


def with_vectors(tmp_path: Path, revision: str | None = None) -> Path:
    """A memory from elsewhere with its vectors, said to be of another revision of the model."""
    with open_world(tmp_path / "source", clock=Elsewhere(), **IN_MEMORY) as source:
        source.remember("Ada drinks tea.")
        path = exported(source, tmp_path / "vectors.jsonl", vectors=True)
    if revision:
        with path.open("rb") as file:
            reader = PortableReader(file, path.stat().st_size)
            signature, lives = reader.signature, list(reader.histories())
        assert signature is not None
        other = replace(signature, revision=revision)
        with path.open("wb") as out:
            writer = Writer(out, other)
            for life in lives:
                writer.add(_signed(life, other))
            writer.end()
    return path


def _signed(life: EntityHistory, signature: Signature) -> EntityHistory:
    if not isinstance(life, MemoryHistory) or life.embedded is None:
        return life
    return replace(life, embedded=replace(life.embedded, signature=signature))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """What another machine knows: two memories, one of them deleted, and an intention."""
    with open_world(tmp_path / "source", clock=Elsewhere(), **IN_MEMORY) as source:
        kept = source.remember("Ada drinks green tea.", tags=["drink"])
        gone = source.remember("The launch code is 4711 hexagons.")
        source.clock.advance(days=1)
        source.call("memory", action="edit", id=kept, content="Ada drinks black tea.")
        source.call("memory", action="delete", id=gone)
        return exported(source, tmp_path / "source.vestige.jsonl")


def test_what_is_here_stays_and_what_comes_is_added(world: World, file: Path) -> None:
    mine = world.remember("The parser is written in Rust.")

    done = import_portable(a_call(world), file)

    assert (done.added, done.changed, done.unchanged, done.ended) == (1, 0, 0, 0)
    assert world.find("What does Ada drink?")[0] == "Ada drinks black tea."
    assert world.get(mine)["content"] == "The parser is written in Rust."


def test_what_was_imported_has_its_history_and_is_found_by_meaning_at_once(world: World, file: Path) -> None:
    done = import_portable(a_call(world), file)

    (node,) = world.call("search", query="Ada drinks tea")["results"]
    past = world.app.engine.store.history(node["id"], access=EVERYTHING)
    assert [one.memory.content for one in past] == ["Ada drinks green tea."]
    assert done.embedded == 1
    assert world.call("search", query="Ada drinks tea")["method"] == "hybrid"


def test_a_deletion_there_ends_the_memory_here(world: World, tmp_path: Path, file: Path) -> None:
    import_portable(a_call(world), file)
    both = exported(world, tmp_path / "both.jsonl")
    with open_world(tmp_path / "third", clock=Elsewhere(2), **IN_MEMORY) as third:
        import_portable(a_call(third), both)
        (node,) = third.call("search", query="Ada drinks tea")["results"]
        third.call("memory", action="delete", id=node["id"])
        after = exported(third, tmp_path / "after.jsonl")

    done = import_portable(a_call(world), after)

    assert (done.added, done.changed, done.ended) == (0, 0, 1)
    assert world.find("Ada drinks tea") == []
    assert import_portable(a_call(world), file).added == 0  # nothing brings it back
    assert world.find("Ada drinks tea") == []


def test_who_listens_hears_of_it_once(world: World, file: Path) -> None:
    import_portable(a_call(world), file)
    import_portable(a_call(world), file)

    heard = [one for one in world.heard if isinstance(one, StoreMerged)]
    assert [(one.source, one.added, one.changed, one.ended) for one in heard] == [(file.name, 1, 0, 0)]


def test_vectors_of_the_same_model_come_along_and_none_is_made(world: World, tmp_path: Path) -> None:
    file = with_vectors(tmp_path)

    done = import_portable(a_call(world), file)

    assert (done.added, done.embedded) == (1, 0)
    assert world.app.engine.store.signature() == inspect(file, None).signature
    assert world.call("search", query="Ada drinks tea")["method"] == "hybrid"


def test_vectors_of_another_model_are_left_and_made_anew(world: World, tmp_path: Path) -> None:
    file = with_vectors(tmp_path, revision="another")

    done = import_portable(a_call(world), file)

    assert (done.added, done.embedded) == (1, 1)
    assert world.app.engine.store.signature() != inspect(file, None).signature


def test_a_store_without_a_model_is_not_bound_to_that_of_the_file(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off", **IN_MEMORY) as world:
        done = import_portable(a_call(world), with_vectors(tmp_path))

        assert (done.added, done.embedded) == (1, 0)
        assert world.app.engine.store.signature() is None


def test_only_a_caller_who_reaches_everything_may_import(world: World, file: Path) -> None:
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    with pytest.raises(Forbidden):
        import_portable(call, file)


def test_progress_never_goes_back_and_ends_at_the_end(world: World, file: Path) -> None:
    told: list[tuple[float, float | None]] = []
    call = Call(engine=world.app.engine, progress=lambda done, total, what: told.append((done, total)))

    import_portable(call, file)

    size = file.stat().st_size
    reading = [done for done, total in told if total == 2 * size]
    assert reading == sorted(reading)
    assert reading[-1] == 2 * size


def _nothing(path: Path) -> None:
    """There is no such file."""


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _text(path: Path) -> None:
    path.write_text("Dear diary,\n", encoding="utf-8")


def _newer(path: Path) -> None:
    path.write_text('{"format":"vestige.portable.v2"}\n', encoding="utf-8")


@pytest.mark.parametrize("make", [_nothing, _pipe, Path.mkdir, Path.touch, _text, _newer])
def test_what_is_no_such_file_is_refused(world: World, tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x.jsonl")

    with pytest.raises(InvalidInput) as refused:
        import_portable(a_call(world), tmp_path / "x.jsonl")

    assert ("x.jsonl" in refused.value.message) != (refused.value.details == {"line": 1})


def test_a_line_that_contradicts_itself_stops_the_import_before_it_begins(
    world: World, tmp_path: Path, file: Path
) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    (tmp_path / "edited.jsonl").write_bytes(b"".join(lines).replace(b"green tea", b"blue tea"))

    with pytest.raises(VestigeError) as refused:
        import_portable(a_call(world), tmp_path / "edited.jsonl")

    assert refused.value.details == {"line": len(lines)}
    assert world.find("tea") == []


@pytest.fixture
def careless(tmp_path: Path) -> Path:
    """What another machine told: a secret in a memory, in the history of another, and in an intention."""
    with open_world(tmp_path / "source", clock=Elsewhere(), **IN_MEMORY) as source:
        source.remember("Ada drinks green tea.")
        source.remember(f"The bot pushes with {KEY}.", secrets="allow")
        old = source.remember("The wifi password is Kuchen-77-blau.", secrets="allow")
        source.clock.advance(days=1)
        source.call("memory", action="edit", id=old, content="The wifi is in the cellar.")
        source.call("intention", action="set", description=f"Revoke {KEY}", secrets="allow")
        return exported(source, tmp_path / "careless.vestige.jsonl")


def imported(world: World, path: Path, **arguments: Any) -> dict[str, Any]:
    return registry.operations["import"].call(a_call(world), {"path": str(path), **arguments})


def test_secrets_that_come_in_are_counted_and_named_without_their_text(world: World, careless: Path) -> None:
    expected = imported(world, careless, dry_run=True)["secrets"]
    seen = imported(world, careless)["secrets"]

    assert seen == expected
    assert seen["records"] == 3
    assert sorted((one["entity"], one["secrets"]) for one in seen["first"]) == [
        ("intention", ["GitHub token"]),
        ("memory", ["GitHub token"]),
        ("memory", ["password"]),
    ]
    assert all(one["id"] for one in seen["first"])
    assert "vestige scan --redact" in seen["message"]
    assert not any(secret in str(seen) for secret in (KEY, "Kuchen"))


def test_of_secrets_that_were_here_already_nothing_is_said_again(world: World, careless: Path) -> None:
    imported(world, careless)

    assert "secrets" not in imported(world, careless)


def test_secrets_that_were_blacked_out_here_do_not_come_back_with_the_old_file(
    world: World, careless: Path
) -> None:
    imported(world, careless)
    world.clock.advance(days=2)
    registry.operations["scan"].call(a_call(world), {"redact": True})

    assert "secrets" not in imported(world, careless)
    assert registry.operations["scan"].call(a_call(world), {})["found"] == 0


def test_who_allows_secrets_hears_nothing_of_them(tmp_path: Path, careless: Path) -> None:
    with open_world(tmp_path / "data", **(IN_MEMORY | {"memory.secrets": "allow"})) as world:
        assert "secrets" not in imported(world, careless)


def rewritten(path: Path, *, without: str | None = None, links: bool = True) -> Path:
    """The file without the life of a memory, or without links."""
    with path.open("rb") as file:
        lives = list(PortableReader(file, path.stat().st_size).histories())
    other = path.with_name(f"{'part' if without else 'unlinked'}.vestige.jsonl")
    with other.open("wb") as out:
        writer = Writer(out, None)
        for life in lives:
            if not (isinstance(life, MemoryHistory) and life.memory_id == without) and (
                links or not isinstance(life, EdgeHistory)
            ):
                writer.add(life)
        writer.end()
    return other


def test_links_without_an_end_are_left_and_come_to_life_with_it(world: World, tmp_path: Path) -> None:
    with open_world(tmp_path / "source", clock=Elsewhere(), **IN_MEMORY) as source:
        texts = ("Ada drinks tea.", "The harbour freezes in January.", "Grace maintains the parser.")
        tea, port, code = (source.remember(text) for text in texts)
        at = source.clock.now
        edges = [Edge(source_id=tea, target_id=end, kind="causal", created_at=at) for end in (port, code)]
        source.app.engine.store.commit([Link(edge=edge) for edge in edges], access=EVERYTHING)
        whole = exported(source, tmp_path / "whole.vestige.jsonl")
    part, unlinked = rewritten(whole, without=code), rewritten(whole, links=False)

    first, again, rest = (imported(world, path) for path in (part, part, unlinked))

    assert first["byKind"]["connection"] == {"read": 2, "imported": 1, "present": 0, "left": 1}
    assert again["byKind"]["connection"] == {"read": 2, "imported": 0, "present": 1, "left": 1}
    assert [(one["kind"], one["what"], one["count"]) for one in again["reasons"]] == [
        ("connection", "the memory at one end is not here", 1)
    ]
    assert rest["byKind"]["connection"] == {"read": 0, "imported": 0, "present": 0, "left": 0}
    assert len(world.app.engine.store.edges([tea], access=EVERYTHING)) == 2

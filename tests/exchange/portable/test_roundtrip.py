"""Out of one store and into another: the same bytes again, the same answers, however it was interrupted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.world import START, HandClock, World, open_world
from tests.exchange.portable.full_store import people
from tests.store.support.generators import Dice
from vestige.core.errors import Cancelled
from vestige.core.models import EVERYTHING, Filter
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call
from vestige.engine.exchange import import_portable as importing
from vestige.engine.exchange.export import export_portable
from vestige.engine.exchange.import_portable import ImportedPortable, import_portable

pytestmark = pytest.mark.slow

FEW = 120


def a_call(world: World) -> Call:
    return Call(engine=world.app.engine, local=True)


def embedder(world: World) -> Embedder:
    found = world.app.engine.embedders.get(10)
    assert found is not None
    return found


def exported(world: World, path: Path, *, vectors: bool = False, where: Filter | None = None) -> bytes:
    written, _ = export_portable(a_call(world), where, name=str(path), vectors=vectors)
    return written.read_bytes()


def answers(world: World, queries: list[str]) -> list[Any]:
    return [world.call("search", query=query, record=False, limit=20)["results"] for query in queries]


def later() -> HandClock:
    """The clock of a machine on which the other store's days have passed too."""
    return HandClock(START.replace(year=2027))


@pytest.fixture(params=["memory", "sqlite"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A second, empty world on each store in turn: what leaves one kind of store goes into every kind."""
    with open_world(tmp_path / "other", clock=later(), **{"storage.backend": request.param}) as opened:
        yield opened


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("ending", ["vestige.jsonl", "vestige.jsonl.gz"])
def test_an_export_of_what_was_imported_is_the_same_file(
    world: World, other: World, tmp_path: Path, ending: str, vectors: bool
) -> None:
    people(a_call(world), embedder(world), FEW)
    first = exported(world, tmp_path / f"first.{ending}", vectors=vectors)

    done = import_portable(a_call(other), tmp_path / f"first.{ending}")

    assert exported(other, tmp_path / f"second.{ending}", vectors=vectors) == first
    assert (done.added, done.changed, done.unchanged, done.ended) == (100, 0, 0, 0)
    assert (done.edges, done.documents) == (done.contents.edges, done.contents.documents)
    assert (done.waiting, done.note) == ((), None)


def test_the_imported_memories_answer_as_the_others_do(world: World, other: World, tmp_path: Path) -> None:
    people(a_call(world), embedder(world), FEW)
    exported(world, tmp_path / "all.jsonl", vectors=True)
    world.clock.now = other.clock.now
    import_portable(a_call(other), tmp_path / "all.jsonl")
    queries = [Dice(seed).text(4) for seed in range(20)]

    assert answers(other, queries) == answers(world, queries)
    assert any(answers(world, queries))


def test_importing_again_changes_nothing(world: World, other: World, tmp_path: Path) -> None:
    people(a_call(world), None, FEW)
    exported(world, tmp_path / "all.jsonl")
    first = import_portable(a_call(other), tmp_path / "all.jsonl")
    before = exported(other, tmp_path / "before.jsonl", vectors=True)
    heard = len(other.heard)

    again = import_portable(a_call(other), tmp_path / "all.jsonl")

    assert exported(other, tmp_path / "after.jsonl", vectors=True) == before
    assert (again.added, again.changed, again.ended, again.edges, again.documents) == (0, 0, 0, 0, 0)
    assert again.unchanged == first.contents.memories
    assert len(other.heard) == heard


def stopped_after(world: World, steps: int, path: Path) -> ImportedPortable | None:
    """An import whose caller goes away after so many looks at whether he is there; None when he did."""
    looks = iter(range(steps))
    call = Call(engine=world.app.engine, cancelled=lambda: next(looks, None) is None)
    try:
        return import_portable(call, path)
    except Cancelled:
        return None


@pytest.mark.parametrize("backend", ["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_an_import_that_was_stopped_anywhere_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(importing, "BATCH", 20)
    settings: dict[str, Any] = {"storage.backend": backend}
    source = tmp_path / "all.jsonl"
    with open_world(tmp_path / "source", **settings) as world:
        people(a_call(world), None, 60)
        whole = exported(world, source)
    seen = set()
    done = None
    for steps in range(1, 60):
        with open_world(tmp_path / f"stopped-{steps}", clock=later(), provider="off", **settings) as other:
            done = stopped_after(other, steps, source)
            seen.add(other.app.engine.store.count(Filter(archived=None), access=EVERYTHING))
            if done is not None:
                break
            import_portable(a_call(other), source)
            assert exported(other, tmp_path / f"after-{steps}.jsonl") == whole
    assert done is not None
    assert len(seen) > 60 // 20  # it was stopped before, between and after batches


def test_a_file_that_is_damaged_changes_nothing(world: World, other: World, tmp_path: Path) -> None:
    people(a_call(world), None, FEW)
    raw = exported(world, tmp_path / "all.jsonl")
    (tmp_path / "cut.jsonl").write_bytes(raw[:-200])
    before = exported(other, tmp_path / "before.jsonl")

    with pytest.raises(Exception, match="cut off"):
        import_portable(a_call(other), tmp_path / "cut.jsonl")

    assert exported(other, tmp_path / "after.jsonl") == before


@pytest.mark.slow
@pytest.mark.nightly
def test_ten_thousand_memories_with_their_past_make_the_round(tmp_path: Path) -> None:
    with open_world(tmp_path / "one") as one, open_world(tmp_path / "two") as two:
        people(a_call(one), embedder(one), 10_000)
        plain = exported(one, tmp_path / "plain.vestige.jsonl")
        first = exported(one, tmp_path / "first.vestige.jsonl.gz", vectors=True)

        done = import_portable(a_call(two), tmp_path / "first.vestige.jsonl.gz")

        assert done.added > 9_000
        assert exported(two, tmp_path / "again.vestige.jsonl") == plain
        assert exported(two, tmp_path / "again.vestige.jsonl.gz", vectors=True) == first
        dice = Dice(11)
        queries = [dice.text(5) for _ in range(200)]
        assert answers(two, queries) == answers(one, queries)

"""What is archived: found by nothing, counted apart, read by its id, kept like everything else."""

from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add_with,
    axis,
    flat,
    found,
    held,
    hits,
    ids,
    link,
    revise,
    rows,
)
from vestige.cognition.text.analyser import fingerprint
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore


@pytest.fixture
def shelved(store: MemoryStore) -> MemoryStore:
    """`a` is archived, `b` is not; they are linked, and others make their words rare."""
    memory = replace(a_memory("a", "xylophone"), tags=("percussion",), source="band.md", pinned=True)
    add_with(store, memory, axis(0))
    add_with(store, a_memory("b", "bassoon"), axis(1))
    for number in range(4):
        add_with(store, a_memory(f"other {number}", "granite"), axis(2))
    link(store, "a", "b")
    revise(store, replace(memory, archived_at=T0 + DAY, updated_at=T0 + DAY, revision=2))
    return store


def test_nothing_finds_an_archived_memory(shelved: MemoryStore) -> None:
    assert "a" not in found(shelved, Filter())
    assert "a" not in ids(flat(shelved.stream(Filter(), access=EVERYTHING)))
    assert shelved.lexical(["xylophon"], Filter(), access=EVERYTHING, limit=9) == []
    (near,) = shelved.nearest(rows(axis(0)), SIGNATURE, Filter(), access=EVERYTHING, limit=9)
    assert "a" not in hits(near)
    probe = Probe(
        terms=("xylophon",),
        literals=("band.md",),
        vector=axis(0),
        signature=SIGNATURE,
        where=Filter(now=T0),
        per_arm=9,
    )
    assert "a" not in shelved.gather(probe, access=EVERYTHING).ids
    same = [fingerprint("xylophone")]
    assert shelved.same_text(same, scope="/", valid_at=T0, access=EVERYTHING) == {}


def test_it_is_read_by_its_id_with_all_that_belongs_to_it(shelved: MemoryStore) -> None:
    record = held(shelved, "a")
    assert (record.memory.content, record.memory.archived_at) == ("xylophone", T0 + DAY)
    assert record.embedded
    assert len(shelved.history("a", access=EVERYTHING)) == 1
    assert len(shelved.edges(["a"], access=EVERYTHING)) == 1
    assert set(shelved.vectors(["a"], SIGNATURE, access=EVERYTHING)) == {"a"}


def test_it_is_counted_apart(shelved: MemoryStore) -> None:
    stats = shelved.stats(access=EVERYTHING, now=T0)
    levels = shelved.levels(access=EVERYTHING, now=T0)
    assert (stats.memories, stats.archived, stats.pinned, len(levels.retentions)) == (5, 1, 0, 5)
    assert stats.by_type == {"fact": 5}
    assert shelved.tag_counts(access=EVERYTHING) == {}
    assert shelved.count(Filter(), access=EVERYTHING) == 5
    assert shelved.count(ANYTHING, access=EVERYTHING) == 6


def test_what_comes_back_is_found_again(shelved: MemoryStore) -> None:
    memory = held(shelved, "a").memory
    revise(shelved, replace(memory, archived_at=None, updated_at=T0 + 2 * DAY, revision=3))
    assert hits(shelved.lexical(["xylophon"], Filter(), access=EVERYTHING, limit=9)) == ["a"]
    (near,) = shelved.nearest(rows(axis(0)), SIGNATURE, Filter(), access=EVERYTHING, limit=1)
    assert hits(near) == ["a"]
    assert shelved.stats(access=EVERYTHING, now=T0).archived == 0


def test_everything_that_is_kept_is_streamed(shelved: MemoryStore) -> None:
    assert "a" in ids(flat(shelved.stream(access=EVERYTHING)))
    assert shelved.rebuild_words() == 6

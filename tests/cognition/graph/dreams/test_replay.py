"""What a dream replays and which links it proposes: laws of the pure part."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.dreams.replay import (
    MOST_LINKS,
    RUN,
    degrees_of,
    faint,
    kind_of,
    pair,
    propose,
    runs,
    stronger,
    word_similarity,
)
from vestige.cognition.graph.kinds import PRUNE_BELOW
from vestige.cognition.text.vocabulary import Vocabulary, named_in, vocabulary_of
from vestige.core.models import Edge, Memory

AT = datetime(2026, 3, 1, tzinfo=UTC)


def memory(name: str, content: str = "A note.", *, days: float = 0, **fields: Any) -> Memory:
    at = AT + timedelta(days=days)
    return Memory(id=name, content=content, created_at=at, updated_at=at, **fields)


def words_of(memories: Mapping[str, Memory]) -> Vocabulary:
    return vocabulary_of({name: named_in(one) for name, one in memories.items()})


def edge(source: str, target: str, kind: str = "semantic", weight: float = 0.6) -> Edge:
    return Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=AT)


@given(st.integers(0, 3000), st.integers(0, 500), st.integers(0, 200))
def test_runs_lie_inside_the_list_apart_and_give_as_many_as_are_wanted(
    there: int, wanted: int, turn: int
) -> None:
    found = runs(there, wanted, turn)
    places = [at for place, length in found for at in range(place, place + length)]

    assert len(places) == len(set(places))
    assert all(0 <= at < there for at in places)
    assert len(places) >= min(there, wanted) - RUN


def test_dreams_come_to_every_old_memory_in_time() -> None:
    seen = {
        at
        for turn in range(60)
        for place, length in runs(200, 15, turn)
        for at in range(place, place + length)
    }
    assert len(seen) > 190


@pytest.mark.parametrize(
    ("one", "other", "similarity", "kind"),
    [
        (memory("a", tags=("x", "y")), memory("b", tags=("y", "x", "z")), 0.9, "shared_concepts"),
        (memory("a"), memory("b", days=1), 0.61, "temporal"),
        (memory("a"), memory("b", days=1.1), 0.61, "complementary"),
        (memory("a"), memory("b", days=2), 0.81, "semantic"),
        (memory("a", tags=("x",)), memory("b", tags=("x",), days=9), 0.6, "complementary"),
    ],
)
def test_the_kind_of_a_link_follows_from_tags_time_and_likeness(
    one: Memory, other: Memory, similarity: float, kind: str
) -> None:
    assert kind_of(one, other, similarity) == kind_of(other, one, similarity) == kind


def test_a_link_goes_from_the_later_memory_to_the_earlier_one() -> None:
    memories = {one.id: one for one in (memory("a", days=3), memory("b"))}
    found = propose(memories, {("a", "b"): 0.9}, (), {}, words_of(memories))
    assert [(one.source_id, one.target_id, one.similarity) for one in found] == [("a", "b", 0.9)]


def test_each_memory_gets_few_links_to_what_is_nearest() -> None:
    memories = {name: memory(name) for name in "abcdef"}
    near = {pair("a", other): 0.5 + at / 100 for at, other in enumerate("bcdef")}
    found = propose(memories, near, (), {}, words_of(memories), 2)
    assert {one.target_id for one in found} | {one.source_id for one in found} == {"a", "e", "f"}


def test_what_is_linked_already_and_what_has_many_links_gets_no_more() -> None:
    memories = {name: memory(name) for name in "abc"}
    words = words_of(memories)
    assert propose(memories, {("a", "b"): 0.9}, {("a", "b")}, {}, words) == []
    assert propose(memories, {("a", "b"): 0.9}, (), {"b": MOST_LINKS}, words) == []


def test_parts_of_one_thread_are_not_linked_and_of_two_only_when_they_name_the_same_rare_thing() -> None:
    small_talk = [memory(f"x{at}", "Hey, good to see you!", thread=f"t{at}", position=0) for at in range(9)]
    pottery = [
        memory("p1", "I signed up for a pottery class.", thread="one", position=1),
        memory("p2", "Good to see the pottery you made!", thread="two", position=4),
        memory("p3", "The pottery class begins soon.", thread="one", position=9),
    ]
    memories = {one.id: one for one in (*small_talk, *pottery)}
    words = words_of(memories)
    near = {("p1", "p2"): 0.8, ("p1", "p3"): 0.9, ("x0", "x1"): 0.99}

    found = propose(memories, near, (), {}, words)

    assert [pair(one.source_id, one.target_id) for one in found] == [("p1", "p2")]


def test_only_learned_links_between_replayed_memories_get_stronger() -> None:
    edges = [edge("a", "b"), edge("a", "c"), edge("a", "b", "user_defined"), edge("b", "a", weight=1.0)]
    (found,) = stronger(edges, {"a", "b"})
    assert (found.source_id, found.target_id, found.kind) == ("a", "b", "semantic")
    assert found.weight == pytest.approx(0.65)


def test_faint_learned_links_are_pruned_unless_an_end_is_pinned() -> None:
    weak = PRUNE_BELOW / 2
    edges = [edge("a", "b", weight=weak), edge("a", "c", weight=weak), edge("a", "d", "causal", weak)]
    assert faint(edges, {"c"}) == [edges[0]]


def test_only_links_of_dreams_count_towards_the_limit() -> None:
    assert degrees_of([edge("a", "b"), edge("a", "c", "supersedes")]) == {"a": 1, "b": 1}


def test_without_vectors_words_and_tags_tell_how_alike_two_memories_are() -> None:
    words = frozenset({"a", "b"}), frozenset({"a", "b", "c", "d"})
    assert word_similarity(memory("a"), memory("b", tags=("x",)), words) == 0.5
    tagged = memory("a", tags=("x",)), memory("b", tags=("x",))
    assert word_similarity(*tagged, words) == pytest.approx(0.4 + 0.6 * 0.5)

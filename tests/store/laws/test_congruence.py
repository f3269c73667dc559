"""The same thousand memories in two stores: every answer must be the same."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.store.support.compare import (
    assert_same_log,
    assert_same_pool,
    assert_same_ranking,
    assert_same_records,
    assert_same_stats,
    assert_same_words,
)
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    WORDS,
    Dice,
    embedded,
    flat,
    generated_access,
    generated_filter,
    generated_memory,
    generated_tokens,
    generated_turn,
    memory_id,
    rows,
)
from vestige.cognition.text.analyser import fingerprint, query_terms
from vestige.cognition.text.form import name_hash
from vestige.core.models import ANYTHING, EVERYTHING, Access, Edge, Evidence, Memory, Order
from vestige.store.contract.changes import Add, Change, Embedded, Forget, Link, RecordEvidence, Revise
from vestige.store.contract.search import POSTINGS_BUDGET, Probe
from vestige.store.contract.store import MemoryStore

MEMORIES = 1_000
KINDS = ("related", "cause", "contradicts")
EVIDENCE = [evidence for evidence in Evidence if evidence is not Evidence.ENCODED]
NOW = T0 + 450 * DAY

Pair = tuple[MemoryStore, MemoryStore]


def generated_life(dice: Dice) -> list[list[Change]]:
    """Commits that add a thousand memories, change many of them and delete some."""
    memories = [
        (generated_turn if number % 2 else generated_memory)(dice, memory_id(number))
        for number in range(MEMORIES)
    ]
    added: list[Change] = [Add(memory=memory, embedded=vectors_for(dice, memory)) for memory in memories]
    later: list[Change] = []
    for memory in memories[: MEMORIES // 4]:
        new = replace(
            memory,
            content=dice.one((memory.content, dice.text())),
            tags=dice.one((memory.tags, ("new",))),
            scope=dice.one((memory.scope, memory.scope, "/project")),
            suppression_count=int(dice.often(0.2)),
            archived_at=dice.one((memory.archived_at, T0)),
            occurred_at=dice.one((memory.occurred_at, T0)),
            updated_at=memory.updated_at + DAY,
            revision=2,
        )
        later.append(Revise(memory=new, reason="generated", embedded=vectors_for(dice, new)))
    for _ in range(MEMORIES):
        at = dice.moment()
        later.append(RecordEvidence(memory_id=dice.one(memories).id, evidence=dice.one(EVIDENCE), at=at))
        source, target = dice.one(memories).id, dice.one(memories).id
        if source != target:
            weight = float(dice.rng.random())
            edge = Edge(
                source_id=source, target_id=target, kind=dice.one(KINDS), weight=weight, created_at=at
            )
            later.append(Link(edge=edge))
    gone: list[Change] = [
        Forget(memory_id=memory.id, at=NOW, reason="generated") for memory in memories[::10]
    ]
    changes = [*added, *later, *gone]
    return [changes[start : start + 100] for start in range(0, len(changes), 100)]


def vectors_for(dice: Dice, memory: Memory) -> Embedded | None:
    if dice.often(0.2):
        return None
    pieces = 1 + int(dice.rng.integers(3))
    tokens = [generated_tokens(dice) for _ in range(pieces)]
    return embedded(memory, *(dice.unit() for _ in range(pieces)), tokens=tokens)


@pytest.fixture(scope="module")
def filled(pair: Pair) -> Pair:
    for changes in generated_life(Dice(1)):
        for store in pair:
            store.commit(changes, access=EVERYTHING)
    return pair


def all_ids() -> Sequence[str]:
    return [memory_id(number) for number in range(MEMORIES)]


def test_memories_counts_edges_and_events_are_the_same(filled: Pair) -> None:
    one, other = filled
    dice = Dice(2)
    assert_same_records(flat(one.stream(access=EVERYTHING)), flat(other.stream(access=EVERYTHING, batch=77)))
    assert_same_records(
        one.get_many(all_ids(), access=EVERYTHING), other.get_many(all_ids(), access=EVERYTHING)
    )
    assert_same_log(one.log(access=EVERYTHING, limit=9_999), other.log(access=EVERYTHING, limit=9_999))
    for access in (EVERYTHING, *(generated_access(dice) for _ in range(10))):
        assert_same_stats(one, other, access, NOW)
        assert one.tag_counts(access=access) == other.tag_counts(access=access)
        assert one.edges(all_ids(), access=access) == other.edges(all_ids(), access=access)
        assert_same_log(one.log(access=access), other.log(access=access))
        check_each_memory(one, other, dice.some(all_ids(), 40), access)


def check_each_memory(one: MemoryStore, other: MemoryStore, names: Sequence[str], access: Access) -> None:
    for record in one.get_many(names, access=access):
        memory = record.memory
        assert one.history(memory.id, access=access) == other.history(memory.id, access=access)
        assert_same_log(
            one.log(access=access, memory_id=memory.id), other.log(access=access, memory_id=memory.id)
        )
        prints, when = [fingerprint(memory.content)], memory.created_at
        known = one.same_text(prints, scope=memory.scope, valid_at=when, access=access)
        assert known == other.same_text(prints, scope=memory.scope, valid_at=when, access=access)
    for name in names:
        assert one.tombstone(name, access=access) == other.tombstone(name, access=access)


def test_a_hundred_filters_let_the_same_through_in_the_same_order(filled: Pair) -> None:
    one, other = filled
    dice = Dice(3)
    matched = 0
    for number in range(100):
        where, access = generated_filter(dice), generated_access(dice)
        count = one.count(where, access=access)
        matched += count > 0
        assert count == other.count(where, access=access)
        order = list(Order)[number % len(Order)]
        first = one.find(where, access=access, order=order, limit=30, offset=count // 3)
        second = other.find(where, access=access, order=order, limit=30, offset=count // 3)
        assert_same_records(first, second)
        if number % 5 == 0:
            streamed = flat(one.stream(where, access=access))
            assert_same_records(streamed, flat(other.stream(where, access=access, batch=10)))
    assert matched > 30  # filters that let nothing through prove little


def test_word_scores_are_the_same(filled: Pair) -> None:
    one, other = filled
    dice = Dice(4)
    for number in range(60):
        terms = query_terms(dice.text(6)) if number % 3 else [f"{dice.one(WORDS)[:2].lower()}*", "zinc"]
        where, access = generated_filter(dice), generated_access(dice)
        limit, postings = dice.one((5, 50, MEMORIES)), dice.one((None, 100, 1_000, POSTINGS_BUDGET))
        assert_same_words(
            one.lexical(terms, where, access=access, limit=limit, postings=postings),
            other.lexical(terms, where, access=access, limit=limit, postings=postings),
        )


def test_what_is_gathered_is_the_same(filled: Pair) -> None:
    one, other = filled
    dice = Dice(6)
    gathered = 0
    for number in range(30):
        probe = Probe(
            terms=(*query_terms(dice.text(4)), *dice.some(("zinc", "co*"), 2)),
            date_terms=dice.some(("zinc", "16", "the"), 2),
            names=frozenset(name_hash(name) for name in dice.some(("Ada", "Bob"), 2)),
            literals=dice.some((*WORDS[:30], "snake_case", "chat", memory_id(number)), 3),
            vector=dice.unit() if number % 4 else None,
            signature=SIGNATURE,
            where=generated_filter(dice) if number % 3 else ANYTHING,
            per_arm=dice.one((3, 30, MEMORIES)),
            least_cosine=dice.one((-1.0, 0.3)),
            postings=dice.one((None, 500)),
        )
        access = generated_access(dice)
        first = one.gather(probe, access=access)
        gathered += len(first.ids)
        assert_same_pool(first, other.gather(probe, access=access))
    assert gathered > 1_000


def test_cosines_are_the_same(filled: Pair) -> None:
    one, other = filled
    dice = Dice(5)
    assert one.signature() == other.signature() == SIGNATURE
    assert one.unembedded(SIGNATURE, limit=MEMORIES) == other.unembedded(SIGNATURE, limit=MEMORIES)
    for _ in range(20):
        queries = rows(*(dice.unit() for _ in range(3)))
        where, access, limit = generated_filter(dice), generated_access(dice), dice.one((5, 50, MEMORIES))
        first = one.nearest(queries, SIGNATURE, where, access=access, limit=limit)
        second = other.nearest(queries, SIGNATURE, where, access=access, limit=limit)
        for mine, theirs in zip(first, second, strict=True):
            assert_same_ranking(mine, theirs)

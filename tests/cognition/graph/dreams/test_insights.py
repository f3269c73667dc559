"""Insights: each names what its sources have in common, cites them, and is not said twice."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vestige.cognition.gate.conflict import StatementConflict
from vestige.cognition.graph.dreams.insights import (
    MOST_INSIGHTS,
    DreamMaterial,
    Insight,
    InsightKind,
    digest,
    draw,
    fresh,
)
from vestige.cognition.text.vocabulary import Vocabulary, named_in, vocabulary_of
from vestige.core.models import Memory

AT = datetime(2026, 3, 1, tzinfo=UTC)
FILLER = tuple(f"Something number {word} happened." for word in ("one", "two", "three", "four"))


def memory(name: str, content: str, *, days: float = 0, **fields: Any) -> Memory:
    at = AT + timedelta(days=days)
    return Memory(id=name, content=content, created_at=at, updated_at=at, **fields)


def words_of(memories: Mapping[str, Memory]) -> Vocabulary:
    return vocabulary_of({name: named_in(one) for name, one in memories.items()})


def material(*members: Memory, group: bool = True, **fields: Any) -> DreamMaterial:
    others = [memory(f"z{at}", text) for at, text in enumerate(FILLER)]
    memories = {one.id: one for one in (*members, *others)}
    names = [one.id for one in members]
    near = {(a, b): 0.7 for a in names for b in names if a < b}
    given: dict[str, Any] = {
        "memories": memories,
        "replayed": list(memories),
        "groups": [names] if group else [],
        "near": near,
        "linked": frozenset(),
        "conflicts": {},
        "vocabulary": words_of(memories),
    }
    return DreamMaterial(**{**given, **fields})


def violins(*days: float, **fields: Any) -> list[Memory]:
    return [
        memory(f"v{at}", f"The violin concert number {at} sounded lovely.", days=day, **fields)
        for at, day in enumerate(days)
    ]


@pytest.mark.parametrize(
    ("days", "kind"),
    [
        ((0, 20, 40), InsightKind.TEMPORAL_TREND),
        ((0, 1, 2), InsightKind.RECURRING_PATTERN),
        ((0, 0.1, 0.2), InsightKind.SYNTHESIS),
    ],
)
def test_a_group_is_told_by_how_it_lies_in_time(days: tuple[float, ...], kind: InsightKind) -> None:
    (insight,) = draw(material(*violins(*days)))

    assert insight.kind is kind
    assert insight.sources == ("v0", "v1", "v2")
    assert "violin" in insight.text
    assert all(f"[{name}]" in insight.text for name in insight.sources)
    assert 0 < insight.confidence <= 0.95
    assert 0.3 <= insight.novelty <= 1


def test_two_alike_memories_are_an_insight_only_when_they_come_from_different_places() -> None:
    one, other = violins(0, 1)
    assert draw(material(one, other)) == []
    apart = [memory(m.id, m.content, source=f"file{at}") for at, m in enumerate((one, other))]
    (insight,) = draw(material(*apart))
    assert insight.kind is InsightKind.HIDDEN_CONNECTION


def test_the_same_text_counts_once_however_often_it_was_told() -> None:
    said = "The violin concert sounded lovely."
    again = [memory(f"a{at}", said if at else said.upper(), source=f"source {at}") for at in range(3)]
    assert draw(material(*again)) == []

    (insight,) = draw(material(*again, *violins(0, 0.1)))

    assert insight.kind is InsightKind.SYNTHESIS
    assert insight.sources == ("a0", "v0", "v1")
    assert insight.text.startswith("3 memories")


def test_a_group_without_a_word_in_common_says_nothing() -> None:
    texts = ("Alpha beta.", "Gamma delta.", "Epsilon zeta.")
    assert draw(material(*(memory(f"m{at}", text) for at, text in enumerate(texts)))) == []


def test_what_everybody_says_is_no_topic() -> None:
    members = violins(0, 1, 2)
    everywhere = {f"w{at}": memory(f"w{at}", "The violin concert sounded lovely again.") for at in range(20)}
    given = material(*members)
    memories = {**given.memories, **everywhere}
    crowded = material(*members, memories=memories, vocabulary=words_of(memories))
    assert draw(crowded) == []


def test_an_insight_stays_inside_one_scope() -> None:
    here, there = violins(0, 1, 2, scope="/project/a"), violins(0, 1, 2, scope="/project/b")
    elsewhere = [memory(f"x{at}", one.content, scope=one.scope) for at, one in enumerate(there)]
    found = draw(material(*here, *elsewhere))
    assert sorted(one.sources for one in found) == [("v0", "v1", "v2"), ("x0", "x1", "x2")]


def test_two_memories_that_cannot_both_hold_are_a_contradiction_and_no_pattern() -> None:
    members = violins(0, 1, 2)
    conflict = StatementConflict(kind="value", detail="3 became 4", corrects=False, exact=True)
    found = draw(material(*members, conflicts={("v2", "v0"): conflict}))
    (insight,) = found
    assert insight.kind is InsightKind.CONTRADICTION
    assert insight.sources == ("v2", "v0")
    assert "3 became 4" in insight.text


def test_a_noted_question_that_nothing_is_near_to_is_a_gap_and_one_in_a_talk_is_not() -> None:
    note = memory("q", "Which database does billing use?")
    (insight,) = draw(material(note, group=False))
    assert (insight.kind, insight.sources) == (InsightKind.KNOWLEDGE_GAP, ("q",))
    turn = memory("q", "Which database does billing use?", thread="t", position=1)
    assert draw(material(turn, group=False)) == []
    answer = memory("r", "Billing uses PostgreSQL.")
    assert draw(material(note, answer, group=False, near={("q", "r"): 0.7})) == []


def test_what_was_linked_before_is_less_new() -> None:
    members = violins(0, 1, 2)
    (new,) = draw(material(*members))
    (old,) = draw(material(*members, linked=frozenset({("v0", "v1"), ("v0", "v2"), ("v1", "v2")})))
    assert old.novelty < new.novelty


def test_an_insight_into_mostly_the_same_memories_is_not_made_again() -> None:
    def insight(*sources: str) -> Insight:
        return Insight(kind=InsightKind.SYNTHESIS, text="…", sources=sources, confidence=0.5, novelty=0.5)

    found = [insight("a", "b", "c"), insight("a", "b", "d"), insight("x", "y", "z")]
    known = [("Synthesis", frozenset("xyz"))]
    assert [one.sources for one in fresh(found, known)] == [("a", "b", "c"), ("a", "b", "d")]
    assert fresh([insight("a", "b", "c"), insight("a", "b", "c", "d")], []) == [insight("a", "b", "c")]
    assert fresh([insight("x", "y", "z")], [("TemporalTrend", frozenset("xyz"))]) != []
    assert len(fresh([insight(f"m{at}") for at in range(30)], [])) == MOST_INSIGHTS


def test_the_id_of_an_insight_follows_from_its_kind_and_its_sources_texts() -> None:
    members = {one.id: one for one in violins(0, 1)}
    told = Insight(kind=InsightKind.SYNTHESIS, text="…", sources=tuple(members), confidence=0.5, novelty=0.5)
    edited = {**members, "v0": memory("v0", "Something else.")}
    assert digest(told, members) == digest(told, members)
    assert digest(told, members) != digest(told, edited)

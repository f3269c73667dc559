"""What several memories say together."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from vestige.cognition.evidence.evidence import (
    UNCONFIRMED,
    AnswerStatus,
    Exhibit,
    Findings,
    Role,
    evolution,
    exhibit,
    judge,
    settled_by,
    status_of,
    weighed,
)
from vestige.cognition.fsrs.strength import after, encode
from vestige.cognition.gate.relation import conflict_between
from vestige.cognition.text.analyser import query_terms
from vestige.core.models import MOST_SURE, Evidence, Memory, Record, Revision

AT = datetime(2026, 3, 1, tzinfo=UTC)
NOW = AT + timedelta(days=30)
_numbers = count(1)


def told(content: str, *, day: int = 0, relevance: float = 1.0, votes: int = 0, **facts: Any) -> Exhibit:
    at = AT + timedelta(days=day)
    strength = encode(at)
    for _ in range(abs(votes)):
        strength = after(strength, Evidence.USEFUL if votes > 0 else Evidence.DEMOTED, at)
    name = facts.pop("id", f"m{next(_numbers):03}")
    memory = Memory(id=name, content=content, created_at=at, updated_at=at, **facts)
    return exhibit(Record(memory=memory, strength=strength), relevance, NOW)


def found(*exhibits: Exhibit, sure: float = 0.6) -> Findings:
    return judge(exhibits, sure, NOW)


def test_relevance_chooses_the_answer_however_trusted_something_else_is() -> None:
    findings = found(
        told("The proxy listens on port 8080.", relevance=0.9),
        told("Ada is allergic to peanuts.", relevance=0.3, votes=20, pinned=True, source="doctor"),
    )

    assert findings.primary == 0
    assert findings.roles == {0: Role.PRIMARY}
    assert findings.trusts[1] > findings.trusts[0]


def test_of_two_that_contradict_each_other_the_trusted_one_answers_and_both_are_kept() -> None:
    findings = found(
        told("The proxy listens on port 8080.", day=2, relevance=0.9, votes=-2),
        told("The proxy listens on port 9090.", day=1, relevance=0.85, votes=2),
    )

    assert findings.primary == 1
    assert findings.roles == {1: Role.PRIMARY, 0: Role.CONTRADICTING}
    [(stronger, weaker, clash)] = findings.contradictions
    assert (stronger, weaker) == (1, 0)
    assert (clash.newer, clash.older, clash.kind) == (0, 1, "value")
    assert settled_by(findings.trusts[stronger], findings.trusts[weaker]) == "trust"
    assert status_of(findings) is AnswerStatus.PARTIAL_EVIDENCE
    assert findings.confidence < 0.6


@pytest.mark.parametrize(
    ("fitting", "stronger", "question"),
    [
        (
            "The rate limit for paid accounts is 500 requests a minute.",
            "The rate limit for free accounts is 100 requests a minute.",
            "What is the rate limit for paid accounts?",
        ),
        ("Ada's desk is in room 4.", "Bob's desk is in room 5.", "Which room is Ada's desk in?"),
        ("Hotfixes are released on any day.", "Releases happen on Mondays.", "When are hotfixes released?"),
    ],
)
def test_of_two_marked_memories_the_one_that_fits_the_question_answers(
    fitting: str, stronger: str, question: str
) -> None:
    pair = told(fitting, relevance=0.9, votes=-1), told(stronger, relevance=0.85, votes=3, pinned=True)

    findings = judge(pair, 0.8, NOW, {frozenset((0, 1))}, frozenset(query_terms(question)))

    assert findings.trusts[1] > findings.trusts[0]
    assert findings.roles == {0: Role.PRIMARY, 1: Role.CONTRADICTING}


def test_a_contradiction_without_a_clear_margin_of_trust_is_not_settled() -> None:
    findings = found(
        told("The proxy listens on port 8080.", day=2, relevance=0.9, votes=-1),
        told("The proxy listens on port 9090.", day=1, relevance=0.85, source="wiki"),
        sure=0.99,
    )

    assert status_of(findings) is AnswerStatus.CONTRADICTIONS_FOUND
    assert findings.confirmed_by == ()


def test_marked_memories_contradict_each_other_whatever_they_say() -> None:
    answer = told("Packages are installed with yarn.", relevance=0.9)
    other = told("The registry moved to another building.", relevance=0.2)

    [alone, marked] = [judge((answer, other), 0.99, NOW, marks) for marks in ((), {frozenset((0, 1))})]

    assert status_of(alone) is AnswerStatus.RESOLVED
    assert status_of(marked) is AnswerStatus.CONTRADICTIONS_FOUND
    assert marked.roles == {0: Role.PRIMARY, 1: Role.CONTRADICTING}
    assert [clash.kind for _, _, clash in marked.contradictions] == ["marked"]
    assert marked.confidence < 0.6 < alone.confidence


def test_what_contradicts_a_supporting_memory_contradicts_the_answer() -> None:
    findings = judge(
        (
            told("Harbour deploys on Tuesday.", relevance=0.9),
            told("All Harbour deploys happen on Tuesday.", relevance=0.9),
            told("The release train stands still this week.", relevance=0.1),
        ),
        0.9,
        NOW,
        {frozenset((1, 2))},
    )

    assert findings.roles[2] is Role.CONTRADICTING
    assert findings.confidence < 0.6


def test_more_than_nine_tenths_needs_evidence_and_nothing_is_certain() -> None:
    alone = found(told("The proxy listens on port 8080."), sure=1.0)
    pinned = found(told("The proxy listens on port 8080.", pinned=True), sure=1.0)

    assert (alone.confidence, alone.confirmed_by) == (UNCONFIRMED, ())
    assert (pinned.confidence, pinned.confirmed_by) == (MOST_SURE, ("it is pinned",))


def test_between_equally_trusted_ones_the_later_is_the_stronger() -> None:
    findings = found(
        told("The switch is enabled in the panel.", day=1, relevance=0.9),
        told("The switch is disabled in the panel.", day=2, relevance=0.9),
    )

    [(stronger, weaker, _)] = findings.contradictions
    assert (stronger, weaker) == (1, 0)
    assert findings.primary == 1


def test_a_later_correction_supersedes_what_it_corrects_even_if_less_relevant() -> None:
    findings = found(
        told("The standup is at 9:30.", day=1, relevance=0.9),
        told("Correction: the standup is at 10:00.", day=2, relevance=0.6),
    )

    assert findings.primary == 1
    assert [(one.older, one.by) for one in findings.superseded] == [(0, 1)]
    assert findings.contradictions == ()


def test_a_correction_that_was_voted_down_takes_nothing_back() -> None:
    findings = found(
        told("The standup is at 9:30.", day=1, relevance=0.9),
        told("Correction: the standup is at 10:00.", day=2, relevance=0.8, votes=-2),
    )

    assert findings.primary == 0
    assert findings.superseded == ()
    assert len(findings.contradictions) == 1


def test_what_its_record_ends_is_superseded_by_what_it_names() -> None:
    findings = found(
        told("Harbour runs on PostgreSQL 16.", day=5, id="new"),
        told("Harbour runs on PostgreSQL 14.", valid_until=AT + timedelta(days=5), superseded_by="new"),
    )

    assert findings.primary == 0
    [over] = findings.superseded
    assert (over.older, over.by) == (1, 0)
    assert findings.roles[1] is Role.SUPERSEDED
    assert findings.trusts[1] < findings.trusts[0] / 1.5


def test_only_what_is_over_leaves_no_answer() -> None:
    findings = found(told("The freeze is on.", valid_until=AT + timedelta(days=5)))

    assert findings.primary is None
    assert findings.confidence == 0.0
    assert status_of(findings) is AnswerStatus.NO_EVIDENCE
    assert [one.older for one in findings.superseded] == [0]


def test_independent_sources_raise_trust_and_confidence_and_the_same_source_does_not() -> None:
    statement = "Deploys of Harbour happen on Tuesday."
    alone = found(told(statement, source="wiki"))
    repeated = found(
        told(statement, source="wiki"), told("Harbour deploys happen each Tuesday.", source="wiki")
    )
    confirmed = found(
        told(statement, source="wiki"), told("Harbour deploys happen each Tuesday.", source="chat")
    )

    assert (alone.corroborations, repeated.corroborations, confirmed.corroborations) == (0, 0, 1)
    assert confirmed.confidence > alone.confidence == repeated.confidence
    assert confirmed.trusts[0] > alone.trusts[0]


def test_another_value_in_one_place_confirms_nothing() -> None:
    findings = found(
        told("Server alpha has 16 GB of memory.", source="a"),
        told("Server beta has 16 GB of memory.", source="b"),
    )

    assert findings.corroborations == 0


def test_only_who_says_the_same_supports_and_the_others_are_related() -> None:
    findings = found(
        told("Harbour was named after a pub.", relevance=0.9),
        told("Harbour now runs on PostgreSQL 16.", relevance=1.0),
        told("Harbour now runs on PostgreSQL 16 with two replicas.", relevance=0.8),
    )

    assert list(findings.roles.items()) == [(1, Role.PRIMARY), (2, Role.SUPPORTING), (0, Role.RELATED)]


def test_what_is_far_from_the_question_is_no_evidence() -> None:
    findings = found(
        told("The proxy listens on port 8080.", relevance=0.9), told("Ada likes tea.", relevance=0.1)
    )

    assert set(findings.roles) == {0}


def test_questions_and_what_others_say_of_themselves_contradict_nothing() -> None:
    ada = told("I like tea with milk.", author="Ada").memory
    bob = told("I don't like tea with milk.", author="Bob").memory
    later = told("I don't like tea with milk.", author="Ada").memory
    asking = told("I don't like tea with milk?", author="Ada").memory

    assert conflict_between(later, ada) is not None
    assert conflict_between(bob, ada) is None
    assert conflict_between(asking, ada) is None


@pytest.mark.parametrize("sure", [0.05, 0.5, 0.95])
def test_confidence_rises_with_sources_and_falls_with_what_opposes_it(sure: float) -> None:
    levels = [
        weighed(sure, 0, 0.5, 0.9),
        weighed(sure, 0, 0.5, 0.5),
        weighed(sure, 0, 0.5, 0.0),
        weighed(sure, 1, 0.5, 0.0),
        weighed(sure, 3, 0.5, 0.0),
    ]

    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels)
    assert levels[0] > 0
    assert levels[-1] < 1
    assert weighed(sure, 3, 0.0, 0.0) == 0.0


def test_an_answer_that_is_sure_and_uncontested_is_resolved() -> None:
    one = told("The proxy listens on port 8080.")

    assert status_of(found(one, sure=0.9)) is AnswerStatus.RESOLVED
    assert status_of(found(one, sure=0.4)) is AnswerStatus.PARTIAL_EVIDENCE


def test_the_history_tells_every_text_in_the_order_of_time() -> None:
    new = told("Harbour runs on PostgreSQL 16.", day=5, id="new", revision=2)
    old = told(
        "Harbour runs on PostgreSQL 14.", id="old", valid_until=AT + timedelta(days=5), superseded_by="new"
    )
    first = Memory(id="new", content="Harbour runs on PostgreSQL 15.", created_at=AT, updated_at=AT)
    revision = Revision(memory=first, recorded_at=AT, ended_at=NOW, reason="edit")
    exhibits = (new, old)
    findings = found(*exhibits)

    steps = evolution(exhibits, findings, {"new": [revision]}, NOW)

    assert [step.memory.content[-3:-1] for step in steps] == ["15", "14", "16"]
    assert [step.change.split(" ")[0] for step in steps] == ["replaces", "stated", "revised"]

"""What a query names in particular, and which memories tell of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from testbed.failures import each
from vestige.cognition.query.literals import LONG_CHARS, MOST, Name, NamedDay, Numbered, particulars
from vestige.core.models import Memory

AT = datetime(2026, 11, 1, tzinfo=UTC)


def named(query: str) -> list[str]:
    return [one.text for one in particulars(query)]


def told(query: str, content: str, **facts: Any) -> bool:
    [one] = [one for one in particulars(query) if not isinstance(one, Name)] or particulars(query)
    return one.mentioned_in(Memory(id="m", content=content, created_at=AT, updated_at=AT, **facts))


@each(
    ("query", "names"),
    [
        ("Which database does Lighthouse run on?", ["Lighthouse"]),
        ("Who is Ada Lovelace's boss?", ["Ada Lovelace"]),
        ("what does the Lord of the Rings say of friendship and courage", ["Lord of the Rings"]),
        ("Which PostgreSQL does Lighthouse run on?", ["PostgreSQL", "Lighthouse"]),
        ("Did Harbour replace Lighthouse?", ["Harbour", "Lighthouse"]),
        ("When was Harbour 3.0 released?", ["Harbour 3.0", "Harbour"]),
        ("Is PostgreSQL 15 supported?", ["PostgreSQL 15", "PostgreSQL"]),
        ("the notes of Harbour version 3", ["Harbour version 3", "Harbour"]),
        ("what is in room 12", ["room 12"]),
        ("When was version 3.0 released?", ["version 3.0"]),
        ("What happened on 2026-03-13?", ["2026-03-13"]),
        ("What happened on March 13th, 2026?", ["March 13th, 2026"]),
    ],
)
def test_names_numbered_things_and_days_are_particular(query: str, names: list[str]) -> None:
    assert named(query) == names


@each(
    "query",
    [
        "Describe the deployment",
        "Which tests fail on Monday in May?",
        "Does the German version of the API use HTTP?",
        "What Did The Harbour Team Decide About Testing?",
        "Harbour Team Meeting Notes",
        "Would Caroline enjoy Paris?",
        "Add 3 servers",
        "It took 3.5 hours and cost 20 dollars",
        "What changed since 2026-03-01 and before 13 March 2026?",
        "was the meeting on 31 June 2026 long",
        "which database do we use",
    ],
)
def test_ordinary_words_amounts_and_open_times_are_not(query: str) -> None:
    assert named(query) == []


def test_only_so_many_are_looked_for() -> None:
    assert (
        len(named("did " + " or even the other ".join(f"Lighthouse{letter}" for letter in "abcdefghijkl")))
        == MOST
    )


@each(
    ("query", "content"),
    [
        ("Which version of Postgres is it?", "Harbour runs on PostgreSQL."),
        ("is PostgreSQL in use", "Harbour runs on Postgres."),
        ("which Harbor is it", "The harbour runs."),
        ("who comes from Germany", "Ada is German."),
        ("is Sally here", "Sally's desk is free."),
        ("When was Harbour 3.0 released?", "Harbour 3.0.1 is out."),
        ("When was Harbour 3.0 released?", "We shipped v3.0 of Harbour."),
        ("When was Harbour 3.0 released?", "Harbour 3 is out."),
        ("is Harbour 3 out", "Harbour 3.1 is out."),
        ("what is in room 12", "Room twelve is empty."),
        ("did PostgreSQL 16 work", "PostgreSQL16 works."),
        ("What happened on 2026-03-13?", "The freeze began on March 13."),
        ("What happened on 2026-03-13?", "The freeze began on 13.03.2026."),
        ("What happened on 2026-03-13?", "The freeze was in March 2026."),
    ],
)
def test_other_forms_of_it_count(query: str, content: str) -> None:
    assert told(query, content)


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("Which database does Lighthouse run on?", "Harbour runs on PostgreSQL."),
        ("who is Ada", "The adapter is broken."),
        ("When was Harbour 3.0 released?", "The release of Harbour 2.0 happened on 2026-03-12."),
        ("When was Harbour 3.0 released?", "Harbour has 3 servers."),
        ("When was Harbour 3.1 released?", "Harbour 3 and 3.10 are out."),
        ("Is PostgreSQL 15 supported?", "PostgreSQL 16 has 150 tables."),
        ("What happened on 2026-03-13?", "The release happened on 2026-03-12."),
    ],
)
def test_something_else_does_not(query: str, content: str) -> None:
    assert not told(query, content)


def test_where_a_memory_comes_from_names_it_too() -> None:
    query = "Which database does Lighthouse run on?"

    assert told(query, "It runs on MySQL.", scope="/code/lighthouse")
    assert told(query, "It runs on MySQL.", source="lighthouse/README.md")
    assert told(query, "It runs on MySQL.", tags=("lighthouse",))


def test_of_a_day_tells_what_is_dated_within_the_week_after_it() -> None:
    query = "What happened on 2026-03-13?"

    for day, tells in ((12, False), (13, True), (20, True), (21, False)):
        assert told(query, "We won yesterday.", occurred_at=datetime(2026, 3, day, 12, tzinfo=UTC)) is tells


def test_a_short_form_counts_when_it_is_written_as_a_name() -> None:
    [one] = particulars("where does Melanie live")
    assert isinstance(one, Name)

    made = {text: Memory(id="m", content=text, created_at=AT, updated_at=AT) for text in ("Mel: hi", "a mel")}

    assert [one.shortened_in(memory) for memory in made.values()] == [True, False]


def test_each_kind_is_its_own() -> None:
    kinds = [type(one) for one in particulars("did Lighthouse 3.0 fail on 2026-03-13")]

    assert kinds == [NamedDay, Numbered, Name]


def test_a_long_text_counts_as_telling_of_figures_that_occur_in_it() -> None:
    filler = "lorem ipsum " * (LONG_CHARS // 10)

    for query, content, tells in (
        ("When was Harbour 3.0 released?", f"Harbour {filler} 3.0", True),
        ("When was Harbour 3.0 released?", f"Harbour {filler} 2.0", False),
        ("What happened on 2026-03-13?", f"{filler} 2026", True),
        ("What happened on 2026-03-13?", f"{filler} 2025", False),
    ):
        assert told(query, content) is tells

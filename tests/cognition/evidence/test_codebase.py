"""Notes about codebases: the text says everything, and patterns that several codebases share are found."""

from datetime import UTC, datetime, timedelta

import pytest

from vestige.cognition.evidence.codebase import (
    CodebaseDecision,
    Pattern,
    codebase_at,
    codebase_of,
    files_of,
    shared_patterns,
    strongest,
    tags_of,
    text_of,
    title_of,
)
from vestige.cognition.fsrs.strength import encode
from vestige.core.models import Memory, Record

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def noted(
    note: Pattern | CodebaseDecision, codebase: str | None = "shop", *, name: str = "n", days: int = 0
) -> Record:
    at = NOW - timedelta(days=days)
    memory = Memory(
        id=name, content=text_of(note), created_at=at, updated_at=at, tags=tags_of(note, codebase)
    )
    return Record(memory=memory, strength=encode(at))


def pattern(title: str, codebase: str, name: str, *, days: int = 0) -> Record:
    return noted(Pattern(name=title, description="As it says."), codebase, name=name, days=days)


def test_a_pattern_is_written_as_other_tools_write_it() -> None:
    note = Pattern(name="Thin  handlers\n", description=" They parse. ", files=("a.py", "b.py"))

    assert text_of(note) == "# Code Pattern: Thin handlers\n\nThey parse.\n\n## Files:\n- a.py\n- b.py"
    assert tags_of(note, "shop") == ("pattern", "codebase", "codebase:shop")


def test_a_decision_is_written_as_other_tools_write_it() -> None:
    note = CodebaseDecision(
        decision="Use SQLite. " * 6, rationale="One file.", alternatives=("PG",), files=("db.py",)
    )

    assert text_of(note) == (
        "# Decision: Use SQLite. Use SQLite. Use SQLite. Use SQLite. Us\n\n## Context\n\nOne file.\n\n"
        f"## Decision\n\n{('Use SQLite. ' * 6).strip()}\n\n## Alternatives Considered:\n- PG\n\n"
        "## Affected Files:\n- db.py"
    )
    assert tags_of(note, None) == ("decision", "architecture", "codebase")


@pytest.mark.parametrize(
    "note",
    [
        Pattern(
            name="Thin handlers", description="See\n\n## Files:\n- not this\n\nand go on.", files=("a.py",)
        ),
        CodebaseDecision(
            decision="Thin handlers", rationale="- no list", alternatives=("fat",), files=("a.py", "a.py")
        ),
    ],
)
def test_title_files_and_codebase_are_read_back_from_the_note(note: Pattern | CodebaseDecision) -> None:
    memory = noted(note).memory

    assert (title_of(memory), files_of(memory), codebase_of(memory)) == ("Thin handlers", ("a.py",), "shop")


def test_a_note_without_files_names_none() -> None:
    assert files_of(noted(Pattern(name="A", description="b")).memory) == ()


def test_the_codebase_of_a_scope_is_its_last_part_and_the_root_has_none() -> None:
    assert codebase_at("/project/acme/shop") == "shop"
    assert codebase_at("/") is None


def test_notes_go_by_retention_then_the_newest_first() -> None:
    old, new, twin = (pattern("P", "shop", name, days=days) for name, days in (("a", 9), ("b", 0), ("c", 0)))

    assert [one.memory.id for one in strongest([old, new, twin], NOW)] == ["c", "b", "a"]


def test_a_pattern_of_another_codebase_with_our_name_matters_here() -> None:
    own, other = pattern("Thin handlers", "shop", "own"), pattern("thin handlers.", "web", "other")
    (found,) = shared_patterns([own], [other, pattern("Fat models", "web", "fat")], {}, NOW)

    assert (found.record, found.codebases, found.similarity) == (other, ("web",), 1.0)


def test_a_pattern_that_two_others_have_matters_here_and_is_told_once() -> None:
    others = [pattern("Retry", "web", "old", days=3), pattern("Retry", "app", "new")]
    (found,) = shared_patterns([], others, {}, NOW)

    assert (found.record.memory.id, found.codebases, found.similarity) == ("new", ("app", "web"), None)
    assert shared_patterns([], [others[0], pattern("Retry", "web", "again")], {}, NOW) == []


def test_what_is_like_ours_in_other_words_matters_by_how_much() -> None:
    own = pattern("Retry", "shop", "own")
    others = [pattern(title, "web", title) for title in ("Backoff", "Wait", "Flags")]
    found = shared_patterns([own], others, {"Wait": 0.6, "Backoff": 0.7}, NOW)

    assert [(one.record.memory.id, one.similarity) for one in found] == [("Backoff", 0.7), ("Wait", 0.6)]

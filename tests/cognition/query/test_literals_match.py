"""What it means that a memory holds a text as it is."""

import pytest

from tests.store.support.generators import a_memory
from vestige.cognition.query.literals import count_held, folded
from vestige.cognition.text.analyser import memory_terms


def holds(content: str, literal: str) -> bool:
    kept = a_memory("m1", content)
    return count_held([literal], kept, memory_terms(kept)) == 1


@pytest.mark.parametrize(
    ("content", "literal"),
    [
        ("Don’t panic", "don't panic"),
        ("Don't panic", "don’t PANIC"),
        ("set ＥＲＲ_42 first", "ERR_42"),
        ("the oﬃce door", "office  door"),
        ("48,213 units", "48213"),
        ("ticket 48213.", "48213"),
    ],
)
def test_case_width_ligatures_apostrophes_and_groups_of_digits_do_not_count(
    content: str, literal: str
) -> None:
    assert holds(content, literal)


@pytest.mark.parametrize(
    ("content", "literal"),
    [
        ("ticket 482130", "48213"),
        ("tickets 48 and 213", "48213"),
        ("JIRA-124 in room 123", "JIRA-123"),
        ("panic, don't", "don't panic"),
        ("a word", "…"),
    ],
)
def test_what_only_looks_alike_is_not_held(content: str, literal: str) -> None:
    assert not holds(content, literal)


def test_a_folded_text_has_single_spaces_and_no_case() -> None:
    assert folded(" A\t\nBig  ’ß’ ") == "a big 'ss'"

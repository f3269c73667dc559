"""What it means that a memory holds a text as it is."""

import pytest

from testbed.failures import each
from tests.store.support.generators import a_memory
from vestige.cognition.query.literals import count_held, folded, inside_compound
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


@each(
    ("word", "text", "held"),
    [
        ("username", "calls getUserName() first", True),
        ("UserName", "calls getUserName() first", True),
        ("user", "calls getUserName() first", True),
        ("red", "the line is 31mRED now", True),
        ("RED", "the line is 31mRED now", True),
        ("error", "see parse_error_log", True),
        ("red", "it was rendered", False),
        ("name", "he renamed it", False),
        ("user", "usernames are short", False),
        ("at", "see at_home", False),
        ("", "anything", False),
        ("two words", "two words", False),
    ],
)
def test_a_part_of_a_compound_is_a_word_as_people_see_it(word: str, text: str, held: bool) -> None:
    assert inside_compound(word, text) is held

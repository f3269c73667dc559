"""Folding what says the same, and keeping the top few apart."""

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.ranking.stages import TOP_FEW, ComparedText, fold_duplicates, spread_out


def note(text: str) -> ComparedText:
    return ComparedText(terms=frozenset(text.split()), is_turn=False)


def turn(text: str) -> ComparedText:
    return ComparedText(terms=frozenset(text.split()), is_turn=True)


def test_what_says_the_same_is_folded_into_the_best_of_it() -> None:
    assert fold_duplicates(["a", "b", "a", "a"]) == [(0, 2, 3), (1,)]


def test_what_has_no_fingerprint_is_never_folded() -> None:
    assert fold_duplicates([None, None, "yes"]) == [(0,), (1,), (2,)]


def test_among_the_top_few_what_is_much_like_a_better_one_waits_behind_the_rest() -> None:
    alike = [note("one two three four five"), note("one two three four five six")]
    others = [note(f"other {letter} {letter}x") for letter in "abcdef"]

    shown = spread_out([*alike, *others])

    assert shown[0] == 0
    assert 1 not in shown[:TOP_FEW]
    assert shown[TOP_FEW] == 1


def test_likeness_moves_nothing_when_there_is_nothing_else_to_show() -> None:
    alike = note("a b c d e")
    assert spread_out([alike, alike, turn("a b c d e")]) == [0, 2, 1]


@given(st.lists(st.tuples(st.lists(st.sampled_from("abcd"), max_size=4), st.booleans()), max_size=20))
def test_nothing_is_lost_or_repeated(found: list[tuple[list[str], bool]]) -> None:
    worded = [ComparedText(terms=frozenset(terms), is_turn=is_turn) for terms, is_turn in found]
    marks = [None if is_turn else "".join(terms) for terms, is_turn in found]

    assert sorted(spread_out(worded)) == list(range(len(worded)))
    assert sorted(at for group in fold_duplicates(marks) for at in group) == list(range(len(marks)))

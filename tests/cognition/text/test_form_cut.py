"""How a long text is cut."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from vestige.cognition.text.form import MAX_CHARS, MAX_TOKENS, OVERLAP_CHARS, cut, estimate_tokens

LAW = settings(deadline=None, max_examples=effort(50, nightly=1000))

# Long enough to be cut: a few kinds of passages, many times over.
passages = st.lists(
    st.tuples(
        st.sampled_from(
            ["A short sentence. ", "word ", "東京都は首都。", "x9Z", "\n\n", "  \n", "🎉", "a.b/c ", "\t"]
        )
        | st.text(min_size=1, max_size=5),
        st.integers(1, 200),
    ).map(lambda pair: pair[0] * pair[1]),
    max_size=8,
).map("".join)

PROSE = "The quick brown fox jumps over the lazy dog near the old river bank. "


def test_a_short_text_is_one_piece() -> None:
    assert cut("We deploy on Fridays.") == [(0, 21)]


def test_a_blank_text_has_no_pieces() -> None:
    assert cut("") == cut(" \n\t ") == []


def test_space_around_a_text_is_in_no_piece() -> None:
    assert cut("\n  hello  \n") == [(3, 8)]


def test_a_piece_ends_with_a_paragraph_when_one_is_near_its_end() -> None:
    text = PROSE * 8 + "\n\n" + PROSE * 8
    start, end = cut(text)[0]
    assert text[start:end] == (PROSE * 8).strip()


def test_a_piece_ends_with_a_sentence_when_no_paragraph_is_near() -> None:
    text = PROSE * 40
    assert {text[start:end][-1] for start, end in cut(text)} == {"."}


def test_a_piece_ends_with_a_word_when_no_sentence_is_near() -> None:
    text = "word " * 1000
    assert {text[start:end][-5:] for start, end in cut(text)} == {" word"}
    assert {text[start:end][:5] for start, end in cut(text)} == {"word "}


def test_pieces_of_prose_overlap() -> None:
    spans = cut(PROSE * 40)
    assert len(spans) > 3
    for (_, end), (start, _) in pairwise(spans):
        assert 0 < end - start <= OVERLAP_CHARS


def test_an_unbroken_string_is_cut_anyway() -> None:
    spans = cut("x" * 5000)
    assert spans[0][0] == 0
    assert spans[-1][1] == 5000
    assert max(end - start for start, end in spans) < MAX_CHARS / 2


def test_dense_scripts_are_cut_into_fewer_characters() -> None:
    text = "東京都は日本の首都です。" * 100
    assert max(end - start for start, end in cut(text)) <= MAX_TOKENS


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("   ", 0), ("the cat sat", 3), ("東京都", 3), ("a - b", 3), ("x" * 100, 65)],
)
def test_tokens_are_estimated_by_kind_of_text(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == pytest.approx(tokens, abs=1)


def test_an_overlap_as_long_as_a_piece_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        cut("text", max_chars=10, overlap=10)


@LAW
@given(passages, st.integers(10, 1000), st.integers(0, 9))
def test_spans_cover_everything_but_space_within_their_limits(text: str, max_chars: int, tenths: int) -> None:
    spans = cut(text, max_chars=max_chars, overlap=max_chars * tenths // 10)
    covered = bytearray(len(text))
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert end - start <= max_chars
        assert estimate_tokens(text[start:end]) <= MAX_TOKENS
        assert text[start:end].strip() == text[start:end]
        covered[start:end] = b"\1" * (end - start)
    assert all(covered[i] or text[i].isspace() for i in range(len(text)))


@LAW
@given(passages)
def test_spans_move_forward_at_both_ends(text: str) -> None:
    spans = cut(text)
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start
        assert end < next_end

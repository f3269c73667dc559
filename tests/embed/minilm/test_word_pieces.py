"""Word pieces without the tokenizer: the same as the tokenizer's, or none."""

import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embed.minilm import tiny_bert
from vestige.embed.minilm.word_pieces import PLAIN_CHARS, WordPieces, sorted_pieces
from vestige.embed.onnx import PieceReader

TOKENIZER = tiny_bert.make_tokenizer()
FILE = TOKENIZER.to_str().encode()
WORDS = [piece.removeprefix("##") for piece in tiny_bert.VOCABULARY]
PLAIN = string.ascii_letters + string.digits + string.punctuation.replace("[", "") + " \t\r\n"


@given(
    st.text(PLAIN, max_size=60)
    | st.lists(st.sampled_from([*WORDS, " ", "-", "'", "zz", "x" * 100, "x" * 101])).map("".join)
)
def test_a_plain_text_has_the_pieces_of_the_tokenizer(text: str) -> None:
    pieces = WordPieces(sorted_pieces(FILE)).read(text)
    expected = TOKENIZER.encode(text, add_special_tokens=False)
    assert pieces == (None if "[" in text else (expected.ids, expected.offsets))


@pytest.mark.parametrize("text", ["naïve", "a [MASK] here", "“quoted”", "a\x00b", "a\x7fb", "ﬁne"])
def test_any_other_text_is_left_to_the_tokenizer(text: str) -> None:
    assert WordPieces(sorted_pieces(FILE)).read(text) is None


def test_every_piece_is_found_and_no_other() -> None:
    pieces = WordPieces(sorted_pieces(FILE))
    assert [pieces.id_of(one) for one in tiny_bert.VOCABULARY] == [*range(len(tiny_bert.VOCABULARY))]
    assert [pieces.id_of(one) for one in ("", "zzz", "!", "~", "##")] == [None] * 5


def test_many_texts_are_left_to_the_tokenizer_which_is_faster() -> None:
    pieces = WordPieces(sorted_pieces(FILE))
    assert pieces.read("the cat " * (PLAIN_CHARS // 8)) is not None
    assert pieces.read("the cat") is None


@pytest.mark.parametrize("rule", ["normalizer", "pre_tokenizer", "model"])
def test_a_tokenizer_with_other_rules_has_no_list(rule: str) -> None:
    content = json.loads(FILE)
    content[rule]["type"] = "Another"
    assert sorted_pieces(json.dumps(content).encode()) == b""


def test_a_reader_gives_the_same_pieces_before_and_after_it_loads_the_tokenizer(tiny_model: Path) -> None:
    reader = PieceReader(tiny_model)
    before = reader.of("the user prefers coffee!")
    assert reader._tokenizer is None
    reader.of("naïve")
    assert reader._tokenizer is not None
    assert reader.of("the user prefers coffee!") == before

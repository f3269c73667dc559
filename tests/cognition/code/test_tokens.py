"""The words of source code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.code.tokens import parts_of, references_of, tokens_of
from vestige.cognition.text.analyser import stem


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("parseHTTPResponse", ["parse", "http", "response"]),
        ("MAX_SIZE", ["max", "size"]),
        ("utf8Decode", ["utf", "8", "decode"]),
        ("__init__", ["init"]),
        ("XMLParser2", ["xml", "parser", "2"]),
        ("straße_Nr", ["straße", "nr"]),
        ("", []),
    ],
)
def test_an_identifier_is_split_at_case_underscore_acronym_and_digit(
    identifier: str, parts: list[str]
) -> None:
    assert parts_of(identifier) == parts


def test_an_identifier_counts_whole_and_in_parts() -> None:
    assert tokens_of("joinSet") == ["joinset", "join", "set"]
    assert tokens_of("routes") == tokens_of("route")


@given(st.text(max_size=300))
def test_tokens_of_two_texts_are_those_of_both(text: str) -> None:
    assert tokens_of(f"{text} {text}") == tokens_of(text) * 2


def test_references_are_what_is_called_imported_or_capitalised() -> None:
    text = (
        "from shop.cart import Cart\n\ndef open():\n    if ready(1):\n        return Cart(LIMIT).add(item)\n"
    )
    assert references_of(text, ("open",)) == ("shop", "cart", "Cart", "ready", "add")


def test_a_long_run_of_letters_counts_by_its_start_only() -> None:
    assert max(map(len, tokens_of("a" * 10_000))) <= 80


def test_a_document_refers_to_what_it_sets_as_code() -> None:
    text = "See `total_price` and ``Cart.add_line()``, not plain words.\n"
    assert {"total_price", "add_line"} <= set(references_of(text, is_document=True))
    assert "total_price" not in references_of(text)


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("coloured", "colored"),
        ("behaviours", "behavior"),
        ("neighbouring", "neighboring"),
        ("favourites", "favorites"),
        ("serialise", "serialize"),
        ("normalisation", "normalization"),
        ("initialisers", "initializers"),
        ("analysed", "analyzed"),
        ("coloured_output", "colored_output"),
    ],
)
def test_spellings_of_a_word_are_one_word(british: str, american: str) -> None:
    assert set(tokens_of(british)) & set(tokens_of(american))
    assert tokens_of(british)[-1] == tokens_of(american)[-1]


@pytest.mark.parametrize("word", ["source", "journal", "missed", "analysis", "issues", "visiting", "courses"])
def test_a_word_with_one_spelling_keeps_its_stem(word: str) -> None:
    assert tokens_of(word) == [stem(word)]

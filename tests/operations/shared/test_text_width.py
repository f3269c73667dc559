"""Text for people: widths, cutting, wrapping, and marks."""

import pytest

from vestige.operations.shared.text import (
    fit,
    padded,
    page_of,
    short_id,
    strength,
    styled,
    table,
    unmarked,
    width_of,
    with_short_ids,
    wrapped,
)

UUID = "0190f3a2-1111-7222-8333-4444aabbccdd"


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("東京", 4), ("e\u0301", 1), (styled("id", "ab"), 2), ("…", 1), ("👍", 2)],
)
def test_columns_are_counted_as_a_terminal_does(text: str, columns: int) -> None:
    assert width_of(text) == columns
    assert width_of(padded(text, 9)) == 9


@pytest.mark.parametrize("width", range(1, 12))
def test_a_text_is_cut_to_its_width_with_marks_closed(width: int) -> None:
    text = fit(f"a{styled('good', '東京タワー')}b", width)
    assert width_of(text) <= width
    assert text.count("\uf8d1") == text.count("\uf8df")


@pytest.mark.parametrize("width", [8, 20, 80])
def test_no_wrapped_line_is_too_wide_and_no_word_is_lost(width: int) -> None:
    text = f"  {styled('quiet', 'one two three four 東京 seven')} " + "x" * 30
    lines = wrapped(text, width).split("\n")
    assert max(map(width_of, lines)) <= width
    assert "".join(unmarked(line).strip().replace(" ", "") for line in lines) == unmarked(text).replace(
        " ", ""
    )


def test_a_table_fits_its_page_and_never_cuts_ids_and_dates() -> None:
    rows = [(short_id(UUID), "2026-03-01 09:00", "a long text " * 20, "another long text " * 20)]
    for width in (80, 140):
        with page_of(width):
            lines = table(("id", "at", "text", "more"), rows).split("\n")
        assert max(map(width_of, lines)) <= width
        assert "aabbccdd" in lines[-1]
        assert "2026-03-01 09:00" in lines[-1]


def test_a_long_number_after_a_colon_is_no_place() -> None:
    text = table(["thread", "source"], [["x:" + "1" * 150, "s:" + "2" * 60]])
    assert max(map(width_of, text.splitlines())) <= 80


def test_a_place_in_a_table_keeps_its_lines() -> None:
    places = ("src/shop/billing/invoices.py:1200-1345", "src/shop/billing/totals/taxes.py:8")
    rows = [("changed", *places, "2026-03-01", "a long text " * 4, short_id(UUID))]
    text = table(("verdict", "cited", "now", "verified", "memory", "id"), rows)
    assert max(map(width_of, text.split("\n"))) <= 80
    assert ".py:1200-1345" in text
    assert "es.py:8" in text
    with page_of(200):
        assert places[0] in table(("verdict", "cited", "now"), [row[:3] for row in rows])


def test_a_column_without_values_is_left_out() -> None:
    assert "expires" not in table(("label", "expires"), [("a", None), ("b", "")])


def test_ids_are_shortened_to_their_random_end() -> None:
    assert unmarked(short_id(UUID)) == "aabbccdd"
    assert unmarked(short_id("my-own-id")) == "my-own-id"
    assert unmarked(with_short_ids(f"Deleted {UUID}.")) == "Deleted aabbccdd."


def test_a_new_memory_has_its_full_strength_and_a_fading_one_less() -> None:
    assert unmarked(strength(0.73)) == "100 %"
    assert unmarked(strength(0.9)) == "100 %"
    assert unmarked(strength(0.365)) == "50 %"
    assert unmarked(strength(None)) == ""

"""The sections of a file cover it exactly once, whatever the file is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.code.languages import _BY_EXTENSION
from vestige.cognition.code.sections import MOST_CHARS, MOST_LINES, CodeSection, lines_of, sections_of

NAMES = [*sorted(f"src/file.{ending}" for ending in _BY_EXTENSION), "Makefile", "Dockerfile", "LICENSE"]
PIECES = (
    "def f(a, b):\n", "    return a\n", "class A:\n", "  def m(self):\r\n", "}\n", "{\n", "function g() {\n",
    "\n", "\r\n", "\r", "# Title\n", "## Part\n", "```\n", "~~~\n", '{"a": 1,\n', ' "b": {\n', "]\n",
    "key: value\n", "[table]\n", "x = [\n", "CREATE TABLE t (a int);\n", "SELECT ';\n", "$$\n", "-- note\n",
    "/* ", "*/\n", "@decorator\n", "// note\n", "\t\tend\n", "Title\n=====\n", "defmodule A do\n",
    "pub fn f() void {\n", '"cells": [\n', '{"cell_type": "code",\n', "日本語\n", "\x0c", "\u2028", "\x00",
    "\x85", "a" * 300 + "\n", "const x = () => {\n", "'", '"', "<?php\n",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=60).map("".join)


def assert_covers(text: str, sections: list[CodeSection]) -> None:
    assert "".join(section.text for section in sections) == text
    line, lines = 1, lines_of(text)
    for section in sections:
        assert section.start_line == line
        assert section.end_line >= section.start_line
        assert section.text == "".join(lines[section.start_line - 1 : section.end_line])
        line = section.end_line + 1
    assert line == len(lines) + 1


@given(path=st.sampled_from(NAMES), text=texts)
def test_the_sections_of_any_text_cover_it_exactly_once(path: str, text: str) -> None:
    assert_covers(text, sections_of(path, text))


@given(path=st.sampled_from(NAMES), text=st.text(max_size=400))
def test_random_characters_are_covered_too(path: str, text: str) -> None:
    assert_covers(text, sections_of(path, text))


@given(path=st.sampled_from(NAMES), text=texts)
def test_a_section_is_short_unless_it_is_one_line(path: str, text: str) -> None:
    for section in sections_of(path, text):
        count = section.end_line - section.start_line + 1
        assert count <= MOST_LINES
        assert count == 1 or len(section.text) <= MOST_CHARS


def test_an_empty_file_has_no_sections() -> None:
    assert sections_of("a.py", "") == []


@pytest.mark.parametrize("text", ["a", "a\n", "\n", "a\r\nb", "a\rb\n", "\n\n\n"])
def test_the_end_of_the_last_line_may_be_missing(text: str) -> None:
    assert_covers(text, sections_of("a.py", text))

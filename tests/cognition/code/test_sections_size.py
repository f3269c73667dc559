"""Large and hostile files: time is linear in the length, whatever the language."""

import pytest

from tests.cognition.code.test_sections import assert_covers
from tests.system.growth.cost import Growth, growth
from vestige.cognition.code.grammars import LANGUAGES
from vestige.cognition.code.languages import _BY_EXTENSION
from vestige.cognition.code.sections import sections_of

MEBIBYTE = 1 << 20
ENDINGS = {language: ending for ending, language in _BY_EXTENSION.items()}
SHAPES = {
    "functions": "def f(a):\n    return a\n\n",
    "braces": "function f(a) {\n  return a;\n}\n",
    "open brackets": "((((\n",
    "nested keys": ' "a": {\n',
    "headings": "## a\n",
    "fences": "```\n",
    "quotes": "'\n",
    "one line": "a(b, ",
    "deeper": "  " * 3 + "class A:\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.py", "a.json", "a.md", "a.sql", "a.ipynb", "a.yaml", "a.toml", "a.txt"])
@pytest.mark.parametrize("piece", ["a", "x = 1; ", '{"a":[', "'", "`", "aB"])
def test_a_line_of_nine_mebibytes_is_one_section(name: str, piece: str) -> None:
    text = piece * (9 * MEBIBYTE // len(piece))
    sections = sections_of(name, text)
    assert [(one.start_line, one.end_line) for one in sections] == [(1, 1)]
    assert sections[0].text == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "language", sorted({*LANGUAGES, "json", "yaml", "toml", "markdown", "sql", "notebook", ""})
)
def test_time_is_linear_in_the_length_of_a_file(language: str) -> None:
    name = f"a.{ENDINGS.get(language, 'unknown')}"

    def slow(piece: str) -> Growth | None:
        return growth(lambda text: sections_of(name, text), lambda n: piece * (n // len(piece)), 4096, 32_768)

    assert {shape: found for shape, piece in SHAPES.items() if (found := slow(piece))} == {}


@pytest.mark.parametrize("mark", "*&~<:-=#/")
def test_a_frame_of_one_character_is_read_at_once(mark: str) -> None:
    """A real `configure.ac` has such lines; one of them kept an index from ever being finished."""
    text = f"{mark * 65}\n{mark}  Documents will not be built.  {mark}\n{mark * 65}])\n"
    assert (
        growth(lambda text: sections_of("configure.ac", text), lambda n: text * (n // len(text)), 512, 4096)
        is None
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("static int *find(int a) {", "find"),
        ("char **split_words (const char *text) {", "split_words"),
        ("void*grow(size_t n) {", "grow"),
        ("std::map<int, Foo> Shop::total(int a) {", "Shop::total"),
        ("const char * const name_of(int a) {", "name_of"),
    ],
)
def test_a_function_without_a_keyword_is_found_by_its_outline(line: str, name: str) -> None:
    sections = sections_of("a.unknown", f"{line}\n  return {'x' * 800};\n}}\n")
    assert [one.name for one in sections] == [name]


def test_a_ladder_of_indentation_is_covered() -> None:
    text = "".join(f"{' ' * depth}class A{depth}:\n" for depth in range(3000))
    assert_covers(text, sections_of("a.py", text))
    assert_covers(text, sections_of("a.unknown", text))


def test_a_file_of_many_small_symbols_has_no_section_for_each() -> None:
    text = "".join(f"A{n} = {n}\n" for n in range(1000))
    sections = sections_of("a.py", text)
    assert len(sections) < 50
    assert sum(len(one.definitions) for one in sections) == 1000


def test_the_pieces_of_a_long_function_repeat_its_signature() -> None:
    body = "".join(f"    total += step_{n}(total)\n" for n in range(300))
    sections = sections_of("a.py", f"def work(total: int) -> int:\n{body}    return total\n")
    assert len(sections) > 3
    assert {(one.name, one.kind, one.signature) for one in sections} == {
        ("work", "function", "def work(total: int) -> int")
    }
    assert [one.definitions for one in sections] == [("work",)] + [()] * (len(sections) - 1)

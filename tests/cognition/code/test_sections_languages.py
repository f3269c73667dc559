"""The symbols of a sample of every language. Grammars rename their nodes between versions, and this list
shows it; `VESTIGE_TEST_SNAPSHOTS=write` writes it again."""

import os
from pathlib import Path

import pytest

from tests.cognition.code.test_sections import assert_covers
from vestige.cognition.code import formats, outline, syntax
from vestige.cognition.code.blocks import CodeBlock
from vestige.cognition.code.grammars import LANGUAGES
from vestige.cognition.code.languages import language_of
from vestige.cognition.code.sections import lines_of, sections_of

DATA = Path(__file__).parent / "data"
SAMPLES = sorted(path.stem for path in (DATA / "samples").iterdir())
"""Names of files; on disk they end with `.txt`, so that no tool takes them for source of ours."""


def read(name: str) -> str:
    return (DATA / "samples" / f"{name}.txt").read_text(encoding="utf-8")


def outlined(blocks: list[CodeBlock], depth: int = 0) -> list[str]:
    """Blocks as lines: kind, names, lines and signature, indented by depth."""
    found = []
    for block in blocks:
        names = " ".join((block.name, *block.others))
        found.append(f"{'  ' * depth}{block.kind} {names} {block.start + 1}-{block.end} | {block.signature}")
        found += outlined(block.members, depth + 1)
    return found


def blocks_of(name: str) -> list[CodeBlock]:
    text, language = read(name), language_of(name)
    if language in formats.READERS:
        return formats.READERS[language](lines_of(text))
    found = syntax.blocks_of(language, text)
    return outline.blocks_of(lines_of(text)) if found is None else found


@pytest.mark.parametrize("name", SAMPLES)
def test_the_symbols_of_a_sample_are_those_of_the_list(name: str) -> None:
    golden = DATA / "symbols" / f"{name}.txt"
    now = "\n".join(outlined(blocks_of(name))) + "\n"
    if os.environ.get("VESTIGE_TEST_SNAPSHOTS") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(now, encoding="utf-8")
    assert now == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sections_of_a_sample_cover_it(name: str) -> None:
    assert_covers(read(name), sections_of(name, read(name)))


@pytest.mark.parametrize("name", SAMPLES)
def test_without_a_grammar_the_outline_covers_a_sample_too(name: str) -> None:
    text = read(name)
    assert_covers(text, sections_of("sample.unknown", text))


def test_every_language_with_a_grammar_has_a_sample_and_the_grammar_is_installed() -> None:
    assert set(LANGUAGES) <= {language_of(name) for name in SAMPLES}
    assert [language for language in LANGUAGES if not syntax.has_grammar(language)] == []


@pytest.mark.parametrize("name", [name for name in SAMPLES if language_of(name) in LANGUAGES])
def test_the_outline_finds_most_of_the_symbols_that_the_grammar_finds(name: str) -> None:
    by_grammar = {word for one in sections_of(name, read(name)) for word in one.definitions}
    assert by_grammar
    by_outline = {word for one in sections_of("sample.unknown", read(name)) for word in one.definitions}
    assert by_outline & by_grammar or language_of(name) in ("haskell", "zig")


@pytest.mark.parametrize(
    ("path", "head", "expected"),
    [
        ("a.go", "func (mx *Mux) Route(p string) {", "Mux.Route"),
        ("a.go", "func (m Map[K, V]) Get(k K) V {", "Map.Get"),
        ("a.cpp", "int n::Foo::bar(int a) {", "Foo.bar"),
        ("a.cpp", "std::string plain(int a) {", "plain"),
        ("a.js", "Foo.prototype.bar = function () {", "Foo.bar"),
        ("a.js", "exports.bar = () => {", "bar"),
    ],
)
def test_a_function_outside_of_its_type_has_it_in_its_path(path: str, head: str, expected: str) -> None:
    body = "".join(f"  // {number} {'word ' * 12}\n" for number in range(12))
    sections = sections_of(path, f"{head}\n{body}}}\n")
    assert expected in {one.symbol_path for one in sections}

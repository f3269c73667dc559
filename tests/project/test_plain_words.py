"""Prose in the source and in the docs avoids the words of docs/contributing/plain-words.md."""

from collections.abc import Collection
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.project.plain_words import Use, constants, forbidden, in_page, in_source

pytestmark = pytest.mark.slow  # reads every file; `make check` runs it too

LIST = PROJECT / "docs" / "contributing" / "plain-words.md"
PATTERN = forbidden(LIST.read_text(encoding="utf-8"))
SOURCE = PROJECT / "src" / "vestige"
WORD_LISTS = {
    "cognition/english/polarity.py": {"NEGATORS"},
    "cognition/english/words.py": {"OWNERS", "PRONOUNS", "_IS"},
    "cognition/gate/change_words.py": {"_ADJUNCT", "_ATTRIBUTION", "_UNDER_WAY"},
    "cognition/query/analyse.py": {"_SELF", "_VAGUE"},
    "cognition/secrets/assignments.py": {"_PHRASE"},
    "cognition/secrets/find.py": {"_PROSE"},
    "cognition/time/query_window.py": {"_DETERMINERS"},
    "cognition/time/validity.py": {"_LINKS"},
}
"""Constants that name words of English because rules look for them, by module."""
HISTORY = ("adr",)
"""Sentences of decision records are history and may stay."""
OTHER_PAGES = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "AGENTS.md", "benchmarks/README.md",
    "deploy/README.md", "integrations/openclaw/README.md", "training/pair_model/README.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
)  # fmt: skip
"""Pages outside docs/."""


def in_module(path: Path, lists: Collection[str]) -> list[Use]:
    return list(in_source(path, PATTERN, lists))


def pages() -> list[Path]:
    docs = PROJECT / "docs"
    found = [path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in HISTORY]
    return [path for path in found if path != LIST] + [PROJECT / name for name in OTHER_PAGES]


def test_the_source_uses_plain_words() -> None:
    lists = {SOURCE / module: names for module, names in WORD_LISTS.items()}
    uses = [use for path in SOURCE.rglob("*.py") for use in in_module(path, lists.get(path, ()))]
    assert not uses, "\n".join(map(str, uses))


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in WORD_LISTS.items() for name in sorted(names)]
)
def test_a_list_of_words_is_there_and_names_words_that_prose_may_not_use(module: str, name: str) -> None:
    path, others = SOURCE / module, WORD_LISTS[module] - {name}
    assert name in constants(path)
    assert in_module(path, others)


@pytest.mark.parametrize("suffix", ["html", "js", "toml"])
def test_the_files_beside_the_source_use_plain_words(suffix: str) -> None:
    uses = [use for path in SOURCE.rglob(f"*.{suffix}") for use in in_page(path, PATTERN)]
    assert not uses, "\n".join(map(str, uses))


def test_the_pages_use_plain_words() -> None:
    uses = [use for path in pages() for use in in_page(path, PATTERN)]
    assert not uses, "\n".join(map(str, uses))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('def f():\n    """What is told.\n    """', "told"),
        ("raise ValueError('Nobody is here')", "Nobody"),
        ("x = 'he said'", "he"),
        ("x = 'the reply tells: no'", "tells"),
        ("x = f'{y} told'", "told"),
        ("x = f'{y} told {z}'", "told"),
        ("x = f'{y(\"he said\")}'", "he"),
        ("x = 'Nobody.'", "Nobody"),
        ('def f():\n    """Told."""', "Told"),
        ('"""Told"""', "Told"),
        ('x = 1\n"""Nobody"""', "Nobody"),
    ],
)
def test_a_forbidden_word_is_found(text: str, word: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(text, encoding="utf-8")
    assert [use.word for use in in_source(file, PATTERN)] == [word]


@pytest.mark.parametrize(
    "text",
    [
        "told = 1", "x = 'told'", "x = 'the `told` column'", "x = 'they hold'", "x = f'{y}told'",
        "x = f'told{y}'", "x = f'{told} is'",
    ],
)  # fmt: skip
def test_names_and_words_inside_others_are_left_alone(text: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(text, encoding="utf-8")
    assert list(in_source(file, PATTERN)) == []

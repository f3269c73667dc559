"""Prose in the source and in the docs avoids the words of docs/contributing/plain-words.md."""

from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.project.plain_words import forbidden, in_page, in_source

pytestmark = pytest.mark.slow  # reads every file; `make check` runs it too

LIST = PROJECT / "docs" / "contributing" / "plain-words.md"
PATTERN = forbidden(LIST.read_text(encoding="utf-8"))
SOURCE = PROJECT / "src" / "vestige"
DATA = (
    "cognition/english", "cognition/secrets", "cognition/gate/change_words.py", "cognition/time/validity.py",
    "cognition/time/query_window.py",
)  # fmt: skip
"""Rules about English name the words they look for."""
HISTORY = ("adr",)
"""Sentences of decision records are history and may stay."""
OTHER_PAGES = (
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "AGENTS.md", "benchmarks/README.md",
    "deploy/README.md", "integrations/openclaw/README.md", "training/relation/README.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
)  # fmt: skip
"""Pages outside docs/."""


def modules() -> list[Path]:
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return [path for path in paths if not path.as_posix().startswith(DATA)]


def pages() -> list[Path]:
    docs = PROJECT / "docs"
    found = [path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in HISTORY]
    return [path for path in found if path != LIST] + [PROJECT / name for name in OTHER_PAGES]


def test_the_source_uses_plain_words() -> None:
    uses = [use for path in modules() for use in in_source(SOURCE / path, PATTERN)]
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
    ],
)
def test_a_forbidden_word_is_found(text: str, word: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(text, encoding="utf-8")
    assert [use.word for use in in_source(file, PATTERN)] == [word]


@pytest.mark.parametrize("text", ["told = 1", "x = 'told'", "x = 'the `told` column'", "x = 'they hold'"])
def test_names_and_words_inside_others_are_left_alone(text: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(text, encoding="utf-8")
    assert list(in_source(file, PATTERN)) == []

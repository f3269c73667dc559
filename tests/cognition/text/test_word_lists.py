"""Word lists are text files with comments and sections."""

from importlib.resources import files
from pathlib import Path

import pytest

from vestige.cognition.text.word_lists import sections, words


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"words_of_{tmp_path.name}"  # a name of its own, because imports are cached
    folder = tmp_path / name / "data"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    text = "# A comment.\nbare one\n\n[first]\nfür  etwas\n[a-z]+ # not a comment\n# One more.\n[second]\n"
    (folder / "words.txt").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_entries_are_in_their_sections_and_comments_are_left_out(package: str) -> None:
    assert sections(package, "words") == {
        "": ["bare one"],
        "first": ["für  etwas", "[a-z]+ # not a comment"],
        "second": [],
    }


def test_the_words_of_entries_are_apart_at_spaces(package: str) -> None:
    assert words(sections(package, "words")[""]) == {"bare", "one"}


@pytest.mark.parametrize("part", ["english", "gate", "query", "secrets", "text", "time"])
def test_every_list_has_a_comment_and_no_empty_section(part: str) -> None:
    package = f"vestige.cognition.{part}"
    for file in files(package).joinpath("data").iterdir():
        assert file.read_text(encoding="utf-8").startswith("# "), file
        found = sections(package, file.name.removesuffix(".txt"))
        assert all(lines for name, lines in found.items() if name or len(found) == 1), file

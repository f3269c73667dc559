"""The tree of files keeps its limits (rules: tree_rules.py)."""

from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.project import tree_rules as rules
from tests.project.architecture_rules import Module, read_once, read_tree

pytestmark = pytest.mark.slow  # reads every file; `make check` runs it too

SOURCE = PROJECT / "src" / "vestige"
TESTS = PROJECT / "tests"

APART: dict[str, str] = {
    "cognition.secrets.provider_keys": "the shapes of providers' keys, beside their data file"
}
"""Small modules with one importer that stay apart, each with the reason."""


def source() -> list[Module]:
    return read_once(SOURCE)


@pytest.mark.parametrize("root", [SOURCE, TESTS], ids=["src", "tests"])
def test_a_folder_has_at_most_15_entries(root: Path) -> None:
    assert list(rules.crowded_folders(root)) == []


def test_files_are_named_by_nouns() -> None:
    names = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")]
    assert list(rules.participles(names)) == []


def test_the_name_of_a_class_exists_once() -> None:
    assert list(rules.repeated_classes(source())) == []


def test_small_modules_with_one_importer_are_merged_into_it() -> None:
    assert list(rules.lonely_modules(source(), APART)) == []


def test_modules_that_stay_apart_are_small_and_there() -> None:
    lonely = {line.split(" ")[0] for line in rules.lonely_modules(source(), {})}
    assert set(APART) <= lonely


def test_a_folder_with_16_entries_is_reported(tmp_path: Path) -> None:
    for number in range(16):
        (tmp_path / f"m{number}.py").touch()
    assert list(rules.crowded_folders(tmp_path)) == [f"{tmp_path.name}/ has 16 entries; at most 15"]


@pytest.mark.parametrize("name", ["engine/deciding.py", "store/merged.py", "x/left_pending.py"])
def test_a_participle_is_reported(name: str) -> None:
    assert list(rules.participles([name]))


@pytest.mark.parametrize("name", ["engine/embedding.py", "ranking/ranking.py", "x/feed.py", "x/seed.py"])
def test_a_noun_is_not_taken_for_a_participle(name: str) -> None:
    assert list(rules.participles([name])) == []


def test_a_class_with_two_homes_and_a_lonely_module_are_reported(tmp_path: Path) -> None:
    package = tmp_path / "vestige"
    package.mkdir()
    (package / "one.py").write_text("from vestige.two import Same\nclass Same: ...\n", encoding="utf-8")
    (package / "two.py").write_text("class Same: ...\n", encoding="utf-8")
    modules = read_tree(package)
    assert list(rules.repeated_classes(modules)) == ["Same: one, two"]
    assert list(rules.lonely_modules(modules, {})) == [
        "two is only imported by one; merge them, or say why not"
    ]
    assert list(rules.lonely_modules(modules, {"two": "a contract"})) == []

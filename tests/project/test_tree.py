"""The tree of files keeps its limits (rules: tree_rules.py)."""

import warnings
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.project import tree_rules as rules
from tests.project.architecture_rules import Module, read_once, read_tree

pytestmark = pytest.mark.slow  # reads every file; `make check` runs it too

SOURCE = PROJECT / "src" / "vestige"
TESTS = PROJECT / "tests"

APART: dict[str, str] = {
    "cognition.native.platforms": "the build of the package reads it too, where numpy is not installed",
    "exchange.transcripts.amp": "one reader for each client, so that a format is found by its name",
    "store.sqlite.sessions.schema": "the tables of the file, to be read on their own",
}
"""Small modules with one importer that stay apart, each with the reason."""


class LongModuleWarning(UserWarning):
    """A module is so long that it may be two."""


def source() -> list[Module]:
    return read_once(SOURCE)


@pytest.mark.parametrize("root", [SOURCE, TESTS], ids=["src", "tests"])
def test_a_folder_has_at_most_15_entries(root: Path) -> None:
    assert list(rules.crowded_folders(root)) == []


def names() -> list[str]:
    """Modules of the source, and support modules of the tests. A test file is named after what it tests."""
    found = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]
    for path in (path.relative_to(TESTS) for path in TESTS.rglob("*.py")):
        found.append(path.parent if path.name.startswith("test_") else path)
    return [path.as_posix() for path in found]


def test_files_and_folders_are_named_by_nouns() -> None:
    assert list(rules.participles(names())) == []


def test_every_noun_that_looks_like_a_participle_names_a_file() -> None:
    assert rules.unused_nouns(names()) == set()


@pytest.mark.filterwarnings("always::tests.project.test_tree.LongModuleWarning")
def test_modules_over_500_lines_are_reported_in_the_summary() -> None:
    for line in rules.long_modules(source()):
        warnings.warn(line, LongModuleWarning, stacklevel=1)


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


def test_only_a_folder_without_modules_is_data(tmp_path: Path) -> None:
    for folder in ("data", "static"):
        (tmp_path / folder).mkdir()
        for number in range(16):
            (tmp_path / folder / f"{number}.txt").touch()
    (tmp_path / "static" / "code.py").touch()
    assert list(rules.crowded_folders(tmp_path)) == ["static/ has 17 entries; at most 15"]


def test_a_module_over_500_lines_is_reported_and_one_of_500_is_not(tmp_path: Path) -> None:
    package = tmp_path / "vestige"
    package.mkdir()
    (package / "short.py").write_text("x = 1\n" * 500, encoding="utf-8")
    (package / "long.py").write_text("x = 1\n" * 501, encoding="utf-8")
    assert [line.split(" ")[0] for line in rules.long_modules(read_tree(package))] == ["vestige/long.py"]


@pytest.mark.parametrize(
    "name",
    [
        "engine/deciding.py", "store/merged.py", "x/left_pending.py", "engine/arriving/x.py", "x/told.py",
        "x/found.py", "x/kept/__init__.py",
    ],
)  # fmt: skip
def test_a_participle_is_reported(name: str) -> None:
    assert list(rules.participles([name]))


@pytest.mark.parametrize(
    "name", ["engine/embedding.py", "ranking/ranking.py", "x/feed.py", "x/seed.py", "x/foundation.py"]
)
def test_a_noun_is_not_taken_for_a_participle(name: str) -> None:
    assert list(rules.participles([name])) == []


@pytest.mark.parametrize(
    "line", ["import vestige.a.two", "from vestige.a import two", "from vestige.a.two import x"]
)
def test_a_lonely_module_is_reported_however_it_is_imported(line: str, tmp_path: Path) -> None:
    package = tmp_path / "vestige"
    (package / "a").mkdir(parents=True)
    (package / "a" / "one.py").write_text(f"{line}\n", encoding="utf-8")
    (package / "a" / "two.py").write_text("x = 1\n", encoding="utf-8")
    assert list(rules.lonely_modules(read_tree(package), {})) == [
        "a.two is only imported by a.one; merge them, or say why not"
    ]


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

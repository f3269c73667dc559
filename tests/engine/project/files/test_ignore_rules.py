"""Ignore rules decide as git does."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vestige.engine.project.files.ignore_rules import ignore_rules, verdict

NAMES = ["a", "b", "ab", "a.py", "b.txt", "build", "x-1", "é", "A", "[a]", "#c", "a b"]
PIECES = [
    "a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "[a-c]", "[[:alpha:]]", "*.py", "a*b", "*a*", "build",
    "x-?", "\\*", "é", "[]a]", "[", "a\\ ", "**a", "[z-a]",
]  # fmt: skip


def ignored(text: str, path: str, *, is_folder: bool = False) -> bool | None:
    return verdict([ignore_rules(text)[::-1]], path, is_folder=is_folder)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.log", "deep/er/x.log", True),
        ("/x.log", "deep/x.log", None),
        ("/x.log", "x.log", True),
        ("doc/*.txt", "doc/a.txt", True),
        ("doc/*.txt", "doc/in/a.txt", None),
        ("doc/**/a.txt", "doc/a.txt", True),
        ("doc/**/a.txt", "doc/in/side/a.txt", True),
        ("**/bar", "a/b/bar", True),
        ("**/**/bar", "bar", True),
        ("abc/**", "abc/d/e", True),
        ("abc/**", "abc", None),
        ("a[b-d]e", "ace", True),
        ("a[!b-d]e", "ace", None),
        ("*.log\n!keep.log", "keep.log", False),
        ("!keep.log\n*.log", "keep.log", True),
        ("# not a rule", "# not a rule", None),
        ("\\#yes", "#yes", True),
        ("\\!yes", "!yes", True),
        ("trailing   ", "trailing", True),
        ("blank\\ ", "blank ", True),
        ("ab*b", "ab", None),
        ("[unclosed", "[unclosed", None),
        ("[/[]a]", "[a]", True),
    ],
)
def test_a_pattern_decides_as_gitignore_says(pattern: str, path: str, expected: bool | None) -> None:
    assert ignored(pattern, path) is expected


def test_a_rule_for_folders_is_not_about_files() -> None:
    assert ignored("build/", "build") is None
    assert ignored("build/", "build", is_folder=True) is True


def test_a_nested_file_is_about_its_folder_and_stronger() -> None:
    outer, inner = ignore_rules("*.py")[::-1], ignore_rules("!/keep.py", "in/")[::-1]
    assert verdict([outer, inner], "in/keep.py", is_folder=False) is False
    assert verdict([outer], "in/keep.py", is_folder=False) is True
    assert verdict([outer, inner], "in/deep/keep.py", is_folder=False) is True


patterns = st.builds(
    lambda negated, start, pieces, end: negated + start + "/".join(pieces) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " "]),
)
files = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("oracle")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(patterns, min_size=1, max_size=4), paths=st.lists(files, min_size=1, unique=True))
def test_rules_decide_as_git_does(repository: Path, lines: list[str], paths: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=repository, input="\0".join(paths).encode(), capture_output=True, check=False,
    )  # fmt: skip
    assert asked.returncode in (0, 1)
    by_git = {one.decode() for one in asked.stdout.split(b"\0") if one}
    rules = [ignore_rules("\n".join(lines))[::-1]]

    def is_ignored(path: str) -> bool:
        parts = path.split("/")
        above = ("/".join(parts[:number]) for number in range(1, len(parts)))
        if any(verdict(rules, folder, is_folder=True) for folder in above):
            return True
        return bool(verdict(rules, path, is_folder=False))

    assert {path for path in paths if is_ignored(path)} == by_git

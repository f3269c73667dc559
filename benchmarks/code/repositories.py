"""Repositories at a commit, read from git without a work tree, and the questions about them."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vestige.cognition.code.languages import is_code

MOST_BYTES = 1_000_000
"""A larger file was made by a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A file that answers a question, with the lines where the set names them."""

    path: str
    start_line: int = 0
    end_line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuestion:
    """A question about one repository. `category` is semantic, architecture or symbol."""

    text: str
    category: str
    goals: tuple[Goal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Files of a repository by path, and the questions about them."""

    name: str
    commit: str
    files: Mapping[str, str]
    questions: tuple[CodeQuestion, ...]


def development_set(data: Path, repositories: Path) -> Iterator[Repository]:
    """The repositories of the set that are in a folder of git directories named OWNER+NAME or NAME."""
    rows = json.loads((data / "annotations_dev.json").read_text(encoding="utf-8"))
    for one in json.loads((data / "repos_dev.json").read_text(encoding="utf-8")):
        git = git_directory(repositories, one["owner"], one["name"])
        if git is None:
            continue
        commit = one["commit"] if has_commit(git, one["commit"]) else "HEAD"
        lines = commit == one["commit"] and "benchmark_commit" not in one
        yield Repository(
            name=one["id"],
            commit=commit,
            files=files_at(git, commit, one["root"]),
            questions=tuple(_question(row, lines) for row in rows if row["repo"] == one["id"]),
        )


def _question(row: dict[str, object], lines: bool) -> CodeQuestion:
    targets = [*_listed(row["relevant"]), *_listed(row["secondary"])]
    return CodeQuestion(
        text=str(row["query"]),
        category=str(row["category"]),
        goals=tuple(_goal(target, lines) for target in targets),
    )


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _goal(target: object, lines: bool) -> Goal:
    if not isinstance(target, dict):
        return Goal(path=str(target))
    if not lines:
        return Goal(path=target["path"])
    return Goal(path=target["path"], start_line=target["start_line"], end_line=target["end_line"])


def git_directory(repositories: Path, owner: str, name: str) -> Path | None:
    """The git directory of a repository, with or without a work tree; None when it is not there."""
    for folder in (
        f"{owner}+{name}/repo/.git",
        f"{owner}+{name}/repo",
        f"{owner}+{name}",
        f"{name}/.git",
        name,
    ):
        if (repositories / folder / "objects").is_dir():
            return repositories / folder
    return None


def has_commit(git: Path, commit: str) -> bool:
    return _git(git, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def files_at(git: Path, commit: str, root: str = "") -> dict[str, str]:
    """The code files of a commit below a folder, as text; what is missing from the clone is left out."""
    listed = _git(git, "ls-tree", "-r", "-z", commit, *([root] if root else []))
    listed.check_returncode()
    blobs: dict[str, str] = {}
    for row in listed.stdout.decode("utf-8", "replace").split("\0"):
        head, _, path = row.partition("\t")
        if head and head.split()[1] == "blob" and is_code(path):
            blobs[path] = head.split()[2]
    wanted = "".join(f"{blob}\n" for blob in blobs.values()).encode()
    answer = _git(git, "cat-file", "--batch", given=wanted).stdout
    texts = dict(zip(blobs, _contents(answer), strict=True))
    return {path: text for path, text in texts.items() if text is not None}


def _contents(answer: bytes) -> Iterator[str | None]:
    """The texts of `git cat-file --batch`, None for what is missing, too large or not text."""
    place = 0
    while place < len(answer):
        end = answer.index(b"\n", place)
        head = answer[place:end].split()
        place = end + 1
        if head[-1] == b"missing":
            yield None
            continue
        size = int(head[2])
        content = answer[place : place + size]
        place += size + 1
        yield None if size > MOST_BYTES or b"\0" in content[:8000] else content.decode("utf-8", "replace")


def _git(git: Path, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "--git-dir", str(git), *words], input=given, capture_output=True, check=False
    )

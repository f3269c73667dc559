"""Issues of SWE-bench: are the files that the repair changed among the first ones found?"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.code.repositories import files_at, git_directory, has_commit

NAME = "swebench_lite.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """The text of an issue, the files of its repository at that time, and those that the repair changed."""

    name: str
    text: str
    files: Mapping[str, str]
    changed: frozenset[str]


def issues(data: Path, repositories: Path) -> list[Issue]:
    """The issues whose repository and commit are there; none without the file."""
    if not (data / NAME).is_file():
        return []
    found = []
    for one in json.loads((data / NAME).read_text(encoding="utf-8")):
        owner, name = one["repo"].split("/")
        git = git_directory(repositories, owner, name)
        if git is None or not has_commit(git, one["base_commit"]):
            continue
        changed = frozenset(
            line.removeprefix("--- a/") for line in one["patch"].split("\n") if line.startswith("--- a/")
        )
        found.append(
            Issue(
                name=one["instance_id"],
                text=one["problem_statement"],
                files=files_at(git, one["base_commit"]),
                changed=changed,
            )
        )
    return found

"""Issues of SWE-bench: are the files that the repair changed among the first ones found?

    python -m benchmarks.code.issues --data DIR --repos DIR [--out FILE]

`--data` has `swebench_lite.json`, `--repos` the git directories of the repositories, named OWNER+NAME. An
issue whose repository or commit is not there is left out. The server is asked as a user does: `vestige
project init` in a repository, and `vestige project refresh` when the files of the next issue are there.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.code import arms
from benchmarks.code.arms import Arm
from benchmarks.code.repositories import files_at, git_directory, has_commit
from benchmarks.code.server import ProjectServer
from benchmarks.quality.corpus import DEFAULT_DATA
from benchmarks.report import Cell, Report, Target, publish

NAME = "swebench_lite.json"
SERVED = "Vestige, through MCP"
BM25 = "BM25"
LEAST_GAIN = 0.1
"""By how much hit@k must be above BM25."""
NOTES = (
    "hit@k: `any`, at least one of the files that the repair changed is among the first k files; `all`, all "
    "of them are.",
    "BM25 has chunks of 1,500 characters, identifiers also split, and the words of the path. ripgrep: files "
    "by the number of lines with a word of the issue, counted by code of the benchmark, not by the program.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """The text of an issue, the files of its repository at that time, and those that the repair changed."""

    name: str
    repository: str
    text: str
    files: Mapping[str, str]
    changed: frozenset[str]


def issues(data: Path, repositories: Path) -> Iterator[Issue]:
    """The issues whose repository and commit are there, those of a repository one after the other."""
    rows = json.loads((data / NAME).read_text(encoding="utf-8"))
    for one in sorted(rows, key=lambda row: (row["repo"], _number(row["instance_id"]))):
        owner, name = one["repo"].split("/")
        git = git_directory(repositories, owner, name)
        if git is None or not has_commit(git, one["base_commit"]):
            continue
        changed = frozenset(
            line.removeprefix("--- a/") for line in one["patch"].split("\n") if line.startswith("--- a/")
        )
        yield Issue(
            name=one["instance_id"],
            repository=name,
            text=one["problem_statement"],
            files=files_at(git, one["base_commit"]),
            changed=changed,
        )


def _number(name: str) -> int:
    """The number of an issue; neighbours have most files in common."""
    last = name.rpartition("-")[2]
    return int(last) if last.isdigit() else 0


def run(data: Path, repositories: Path, server: ProjectServer) -> Report:
    hits: dict[str, list[dict[str, float]]] = defaultdict(list)
    several = 0
    for issue in issues(data, repositories):
        several += len(issue.changed) > 1
        answers: dict[str, Arm] = {
            "ripgrep": arms.grep(issue.files),
            BM25: arms.plain_bm25(issue.files),
            SERVED: server.arm(issue.repository, issue.files),
        }
        for name, arm in answers.items():
            files = list(dict.fromkeys(one.path for one in arm(issue.text)))
            hits[name].append(
                {f"any@{k}": float(bool(issue.changed & set(files[:k]))) for k in (1, 5, 10)}
                | {f"all@{k}": float(issue.changed <= set(files[:k])) for k in (5, 10)}
            )
    rows = [_row(name, found) for name, found in hits.items()]
    return Report(
        benchmark="issues",
        settings={
            "issues": len(hits[BM25]),
            "of": len(json.loads((data / NAME).read_text(encoding="utf-8"))),
            "whose repair changed several files": several,
        },
        tables={"Issues (SWE-bench lite)": rows},
        targets=list(_targets(rows)),
        notes=NOTES,
    )


def _row(name: str, hits: Sequence[Mapping[str, float]]) -> dict[str, Cell]:
    means = {key: sum(one[key] for one in hits) / len(hits) for key in hits[0]}
    return {"arm": name, "issues": len(hits), **means}


def _targets(rows: Sequence[Mapping[str, Cell]]) -> Iterator[Target]:
    """What the server finds, above BM25."""
    by_arm = {row["arm"]: row for row in rows}
    for name in ("any@5", "any@10", "all@5", "all@10") if rows else ():
        gain = float(by_arm[SERVED][name] or 0.0) - float(by_arm[BM25][name] or 0.0)
        yield Target(name=f"above BM25: {name}", value=gain, limit=LEAST_GAIN, at_least=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code.issues", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help=f"folder with {NAME}")
    parser.add_argument("--repos", type=Path, required=True, help="folder of git directories")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    with ProjectServer() as server:
        publish(run(given.data, given.repos, server), given.out, page=True)


if __name__ == "__main__":
    main()

"""Packages of `project_recall` for real tasks: their size, and the lines in them that the task changed.

    python -m benchmarks.code.packages --repos DIR [--tasks N] [--only NAME,NAME] [--out FILE]

A task is the message of a commit. The repository is indexed as it was some commits before; gold are the lines
that the commit changed, where the older files have them. The server answers as it is shipped, each time
with another budget; every package is counted again with the tokenizer of the embedding model. Beside it:
the five best files of `project search`, whole.
"""

import argparse
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.code.repositories import files_at, git_directory
from benchmarks.code.server import ProjectServer
from benchmarks.report import Cell, Report, Target, publish
from benchmarks.simulate.embedding import local_model
from vestige.cognition.code.languages import is_code
from vestige.cognition.code.roles import role_of

TASKS = 1_000
COMMITS = 250
"""How many commits after the indexed one are looked through in each repository."""
MOST_FILES = 10
"""A commit that changed more files is no single task."""
WHOLE_FILES = 5
BUDGETS = (200, 8_000)
LEAST_CHARS = 4
"""A changed line with less, such as a bracket, is not gold."""
NOTES = (
    "A task is the message of a commit, gold the lines that it changed, as they are in files of up to "
    f"{COMMITS} commits before. Tokens are those of the tokenizer of all-MiniLM-L6-v2, without a limit of "
    "length. Budgets are random.",
    "gold lines: of all that the commit changed, the share in the package. Whole files: the five files that "
    "search puts first.",
)

Count = Callable[[str], int]
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)
_EXCERPT = re.compile(r"^(\S[^\n]*?):(\d+)-(\d+)\n(`{3,})\n(.*?)\n\4$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTask:
    """The message of a commit, and the lines that it changed, by file."""

    text: str
    gold: Mapping[str, frozenset[int]]

    @property
    def lines(self) -> int:
        return sum(map(len, self.gold.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRow:
    """One task: its budget, the tokens of its package as counted here, and gold lines in it and in whole
    files."""

    budget: int
    tokens: int
    stated: int
    tokenizer: str
    gold: int
    shown: int
    whole_tokens: int
    whole_shown: int


def tasks_of(git: Path, *, commits: int = COMMITS) -> tuple[str, dict[str, str], list[CommitTask]]:
    """A commit of a repository, its code, and tasks from the commits after it."""
    listed = _git(git, "rev-list", "--first-parent", f"--max-count={commits + 1}", "HEAD").split()
    base = listed[-1]
    files = files_at(git, base)
    found = [_task(git, commit, files) for commit in listed[:-1]]
    return base, files, [one for one in found if one is not None]


def _task(git: Path, commit: str, files: Mapping[str, str]) -> CommitTask | None:
    """A commit as a task; None where it changed nothing that was there, or too much."""
    changed = _git(git, "diff", "--unified=0", "--no-color", "--no-renames", f"{commit}^1", commit, "--")
    gold: dict[str, frozenset[int]] = {}
    parts = re.split(r"^diff --git .*$", changed, flags=re.MULTILINE)[1:]
    if len(parts) > MOST_FILES:
        return None
    for part in parts:
        name = re.search(r"^--- a/(.+)$", part, re.MULTILINE)
        path = name[1] if name else ""
        if path in files and is_code(path) and role_of(path) != "test":
            lines = frozenset(_placed(part, files[path].split("\n")))
            if lines:
                gold[path] = lines
    message = _git(git, "log", "-1", "--format=%B", commit).strip()
    return CommitTask(text=message[:8_000], gold=gold) if gold and message else None


def _placed(part: str, lines: Sequence[str]) -> Iterator[int]:
    """The places of the removed lines of a diff in an older text, nearest to where the diff has them."""
    where: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        where.setdefault(line.strip(), []).append(number)
    at = 0
    for row in part.split("\n"):
        hunk = _HUNK.match(row)
        if hunk:
            at = int(hunk[1])
        elif row.startswith("-") and not row.startswith("---"):
            plain = row[1:].strip()
            if len(plain) >= LEAST_CHARS and plain in where:
                yield min(where[plain], key=lambda number: abs(number - at))
            at += 1


def shown_lines(package: str) -> dict[str, set[int]]:
    """The lines that the excerpts of a package have, by file."""
    found: dict[str, set[int]] = {}
    for path, start, end, _, text in _EXCERPT.findall(package):
        lines = text.split("\n")
        whole = len(lines) if lines[-1] != "…" else len(lines) - 1
        found.setdefault(path, set()).update(range(int(start), min(int(end), int(start) + whole - 1) + 1))
    return found


def measured(server: ProjectServer, folder: Path, files: Mapping[str, str], task: CommitTask, budget: int,
             count: Count) -> PackageRow:  # fmt: skip
    """One task, asked of the server."""
    made = server.package(folder, task.text, budget)
    shown = shown_lines(made["text"])
    best = list(dict.fromkeys(server.places(folder, task.text)))[:WHOLE_FILES]
    return PackageRow(
        budget=budget,
        tokens=count(made["text"]),
        stated=made["tokens"],
        tokenizer=made["tokenizer"],
        gold=task.lines,
        shown=sum(len(lines & shown.get(path, set())) for path, lines in task.gold.items()),
        whole_tokens=sum(count(files[path]) for path in best if path in files),
        whole_shown=sum(len(lines) for path, lines in task.gold.items() if path in best),
    )


def report(rows: Mapping[str, Sequence[PackageRow]]) -> Report:
    """The numbers of all repositories, and of each."""
    every = [row for several in rows.values() for row in several]
    ratio = _rate(every) / (_whole_rate(every) or 1.0)
    over = sum(row.tokens > row.budget for row in every)
    return Report(
        benchmark="packages",
        settings={
            "tasks": len(every),
            "repositories": len(rows),
            "budgets": f"{BUDGETS[0]} to {BUDGETS[1]}",
            "stated tokenizers": ", ".join(sorted({row.tokenizer for row in every})),
        },
        tables={"Packages": [_row("all", every), *(_row(name, several) for name, several in rows.items())]},
        targets=[
            Target(name="packages over their budget", value=over, limit=0, at_least=False),
            Target(name="gold lines per token, times whole files", value=ratio, limit=2, at_least=True),
        ],
        notes=NOTES,
    )


def _row(name: str, rows: Sequence[PackageRow]) -> dict[str, Cell]:
    gold = sum(row.gold for row in rows) or 1
    return {
        "repository": name,
        "tasks": len(rows),
        "over budget": sum(row.tokens > row.budget for row in rows),
        "share of budget, most": max((row.tokens / row.budget for row in rows), default=0.0),
        "gold lines": sum(row.shown for row in rows) / gold,
        "per 1,000 tokens": _rate(rows),
        "whole files: gold lines": sum(row.whole_shown for row in rows) / gold,
        "whole files: per 1,000 tokens": _whole_rate(rows),
    }


def _rate(rows: Sequence[PackageRow]) -> float:
    return 1_000 * sum(row.shown for row in rows) / (sum(row.tokens for row in rows) or 1)


def _whole_rate(rows: Sequence[PackageRow]) -> float:
    return 1_000 * sum(row.whole_shown for row in rows) / (sum(row.whole_tokens for row in rows) or 1)


def run(repositories: Path, tasks: int, only: Sequence[str], count: Count) -> Report:
    """As many tasks as are wanted, from all repositories alike."""
    names = sorted(one.name for one in repositories.iterdir() if "+" in one.name or (one / ".git").is_dir())
    kept = [name for name in names if not only or name.split("+")[-1] in only]
    chance = random.Random(24)
    rows: dict[str, list[PackageRow]] = {}
    counted: dict[str, int] = {}

    def remembered(text: str) -> int:
        if text not in counted:
            counted[text] = count(text)
        return counted[text]

    with ProjectServer() as server:
        left = tasks
        for place, name in enumerate(kept):
            git = (
                git_directory(repositories, *name.split("+")) if "+" in name else repositories / name / ".git"
            )
            if git is None:
                continue
            _, files, found = tasks_of(git)
            chance.shuffle(found)
            chosen = found[: -(-left // (len(kept) - place))]
            left -= len(chosen)
            folder = server.indexed(name, files)
            rows[name.split("+")[-1]] = [
                measured(server, folder, files, task, chance.randint(*BUDGETS), remembered) for task in chosen
            ]
    return report(rows)


def _git(git: Path, *words: str) -> str:
    done = subprocess.run(["git", "--git-dir", str(git), *words], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code.packages", description=__doc__)
    parser.add_argument("--repos", type=Path, required=True, help="folder of git directories with history")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--only", default="", help="names of repositories, with commas")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    model = local_model()
    only = [name for name in given.only.split(",") if name]
    publish(run(given.repos, given.tasks, only, lambda text: model.count_tokens([text])[0]), given.out)


if __name__ == "__main__":
    main()

"""Packages of `project recall` on public repositories: `python -m benchmarks.project_recall DATA FOLDER`.

For every question of the development set a package is made under a budget. It must never be longer, counted
by the tokenizer of the model. Where the set names lines, the gold lines per 1,000 tokens are compared with
those of the five best whole files, which is what an agent reads that opens files.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.code.repositories import CodeQuestion, Repository, development_set
from benchmarks.report import Report, Target, publish
from vestige.app.app import open_app
from vestige.engine.context import Call
from vestige.engine.project.package import TaskPackage, TokenCounter, task_package, tokens_of_call
from vestige.engine.project.place import Project, new_project
from vestige.engine.project.refresh import refresh
from vestige.engine.project.search import search_code

BUDGETS = (500, 2_000, 8_000)
WHOLE_FILES = 5
LEAST_GAIN = 2.0
LEAST_CHARS = 4
"""A shorter line, such as a brace, is found anywhere."""

SUMS = ("questions", "over", "gold", "shown", "tokens", "whole", "whole tokens")
Row = dict[str, str | int | float | None]


def gold_lines(repository: Repository, question: CodeQuestion) -> set[str]:
    """The lines that answer a question, without indentation."""
    found: set[str] = set()
    for goal in question.goals:
        if goal.start_line and goal.path in repository.files:
            lines = repository.files[goal.path].split("\n")[goal.start_line - 1 : goal.end_line]
            found |= {line.strip() for line in lines if len(line.strip()) >= LEAST_CHARS}
    return found


def covered(gold: set[str], text: str) -> int:
    return len(gold & {line.strip() for line in text.split("\n")})


def packages(
    call: Call, project: Project, repository: Repository, most: int
) -> Iterator[tuple[CodeQuestion, int, TaskPackage, list[str]]]:
    """Each question with each budget, its package, and the five best files."""
    with call.engine.code_indexes.reading(project.index) as index:
        for question in repository.questions[:most]:
            hits = search_code(call, project, index, question.text, limit=50)
            files = list(dict.fromkeys(hit.path for hit in hits))[:WHOLE_FILES]
            for budget in BUDGETS:
                made, _ = task_package(call, project, index, question.text, budget=budget)
                yield question, budget, made, files


def measure(call: Call, repository: Repository, folder: Path, most: int, tokens: TokenCounter) -> list[Row]:
    for path, text in repository.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    project = new_project(call, str(folder))
    refresh(call, project)
    rows: dict[int, Row] = {}
    for question, budget, made, files in packages(call, project, repository, most):
        row = rows.setdefault(
            budget, {"repository": repository.name, "budget": budget, **dict.fromkeys(SUMS, 0)}
        )
        size = tokens.count(made.text)
        _add(row, "questions", 1)
        _add(row, "over", int(size > budget or size != made.tokens))
        gold = gold_lines(repository, question)
        if gold:
            whole = "\n".join(repository.files.get(path, "") for path in files)
            _add(row, "gold", len(gold))
            _add(row, "shown", covered(gold, made.text))
            _add(row, "tokens", size)
            _add(row, "whole", covered(gold, whole))
            _add(row, "whole tokens", tokens.count(whole))
    return list(rows.values())


def _add(row: Row, name: str, number: int) -> None:
    row[name] = int(row[name] or 0) + number


def total(rows: list[Row], budget: int) -> Row:
    some = [row for row in rows if row["budget"] == budget]
    made: Row = {"repository": "all", "budget": budget}
    for name in SUMS:
        made[name] = sum(int(row[name] or 0) for row in some)
    made["lines per 1,000 tokens"] = _density(made, "shown", "tokens")
    made["of whole files"] = _density(made, "whole", "whole tokens")
    return made


def _density(row: Row, lines: str, tokens: str) -> float:
    return 1_000 * int(row[lines] or 0) / max(1, int(row[tokens] or 0))


def _ratio(row: Row) -> float:
    return float(row["lines per 1,000 tokens"] or 0) / max(0.001, float(row["of whole files"] or 0))


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of annotations_dev.json and repos_dev.json")
    parser.add_argument("repositories", type=Path, help="folder of git directories named OWNER+NAME or NAME")
    parser.add_argument("--only", nargs="*", default=[], help="names of repositories")
    parser.add_argument("--most", type=int, default=1_000, help="questions of each repository")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(words)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, open_app({"data_dir": f"{scratch}/data"}) as app:
        app.engine.embedders.get(60.0)
        call = Call(engine=app.engine, local=True)
        tokens = tokens_of_call(call)
        for repository in development_set(asked.data, asked.repositories):
            if not asked.only or repository.name in asked.only:
                folder = Path(scratch) / "code" / repository.name
                folder.mkdir(parents=True)
                rows += measure(call, repository, folder, asked.most, tokens)
    totals = [total(rows, budget) for budget in BUDGETS]
    gains = [_ratio(row) for row in totals]
    over = sum(int(row["over"] or 0) for row in totals)
    report = Report(
        benchmark="project_recall",
        settings={"tokenizer": tokens.tokenizer, "budgets": str(BUDGETS), "most": asked.most},
        tables={"all": totals, "repositories": rows},
        targets=[
            Target(name="packages over their budget", value=over, limit=0, at_least=False),
            Target(name=f"gold lines per token, times whole files, at {BUDGETS[1]}", value=gains[1],
                   limit=LEAST_GAIN, at_least=True),
        ],
    )  # fmt: skip
    publish(report, asked.out)


if __name__ == "__main__":
    main(sys.argv[1:])

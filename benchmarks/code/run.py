"""All arms on all questions, as a report."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.code import arms
from benchmarks.code.arms import Arm, Embed, FileVectors
from benchmarks.code.index import SectionIndex
from benchmarks.code.measures import ndcg_of_files, ndcg_of_sections
from benchmarks.code.repositories import Repository, development_set
from benchmarks.code.server import ProjectServer
from benchmarks.code.tuning import left_out, tried_weights
from benchmarks.plot import bars
from benchmarks.report import Cell, Report, Target
from vestige.cognition.code.ranking import RankingWeights

OURS = "Vestige"
SERVED = "Vestige, through MCP"
WITH_VECTORS = "Vestige, vectors of files"
BM25 = "BM25"
NOTES = (
    "NDCG@10, gain 1: mean over the questions of a repository, then over repositories; categories over "
    "questions. chunks: ten sections, a file may come several times; files: ten distinct files.",
    "BM25 has chunks of 1,500 characters, identifiers also split, and the words of the path. Dense: one "
    "vector for a file (path, beginning, signatures) by the local model. ripgrep: files by the number of "
    "lines with a word of the question, counted by code of the benchmark, not by the program.",
    "Vestige: the ranking in this process. Through MCP: `vestige project init` indexes each repository, and "
    "`vestige-mcp` is asked.",
)

Scores = dict[str, list[tuple[str, str, float, float]]]
"""For each arm a row for each question: repository, category, chunks, files."""


def run(
    data: Path, repositories: Path, embed: Embed | None, tune: int = 0, server: ProjectServer | None = None
) -> Report:
    """The report of a run; `embed` makes vectors of texts, `tune` is how many weights are tried, and a server
    answers as Vestige is shipped."""
    scores: Scores = defaultdict(list)
    held: list[tuple[Repository, SectionIndex]] = []
    for repository in development_set(data / "code", repositories):
        index = SectionIndex(repository.files)
        for name, arm in _arms(repository, index, embed).items():
            scores[name] += _scored(repository, arm)
        if server is not None:
            scores[SERVED] += _scored(repository, server.arm(repository.name, repository.files))
        held.append((repository, index))
    tables: dict[str, Sequence[Mapping[str, Cell]]] = {"Code search": list(_rows(scores))}
    tables["By repository (chunks)"] = _by_repository(scores)
    if tune:
        tables["Weights chosen on other repositories (chunks, words only)"] = _tuned(held, tune)
    return Report(
        benchmark="code",
        settings={
            "repositories": len(held),
            "at their pinned commit": sum(one.commit != "HEAD" for one, _ in held),
            "questions": sum(len(one.questions) for one, _ in held),
        },
        tables=tables,
        targets=list(_targets(scores)),
        notes=NOTES,
        plots={"ndcg": _plot(tables["Code search"])},
    )


def _arms(repository: Repository, index: SectionIndex, embed: Embed | None) -> dict[str, Arm]:
    found: dict[str, Arm] = {
        "no memory": lambda _: [],
        "chance": arms.chance(index),
        "ripgrep": arms.grep(repository.files),
        BM25: arms.plain_bm25(repository.files),
        OURS: arms.vestige(index),
    }
    if embed is not None:
        vectors = FileVectors(index, embed)
        found |= {"dense": vectors.answer, WITH_VECTORS: arms.vestige(index, vectors)}
    return found


def _scored(repository: Repository, arm: Arm) -> list[tuple[str, str, float, float]]:
    rows = []
    for question in repository.questions:
        found = arm(question.text)
        rows.append(
            (
                repository.name,
                question.category,
                ndcg_of_sections(found, question.goals),
                ndcg_of_files(found, question.goals),
            )
        )
    return rows


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _over_repositories(rows: Sequence[tuple[str, str, float, float]], column: int) -> float:
    grouped: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        grouped[row[0]].append(float(row[column]))
    return _mean([_mean(values) for values in grouped.values()])


def _category(rows: Sequence[tuple[str, str, float, float]], category: str, column: int) -> float:
    return _mean([float(row[column]) for row in rows if row[1] == category])


def _rows(scores: Scores) -> Iterator[dict[str, Cell]]:
    for arm, rows in scores.items():
        yield {
            "arm": arm,
            "chunks": _over_repositories(rows, 2),
            "files": _over_repositories(rows, 3),
            **{
                f"{category}, {kind}": _category(rows, category, column)
                for category in ("semantic", "architecture", "symbol")
                for kind, column in (("chunks", 2), ("files", 3))
            },
        }


def _by_repository(scores: Scores) -> list[dict[str, Cell]]:
    names = list(dict.fromkeys(row[0] for rows in scores.values() for row in rows))
    return [
        {"repository": name}
        | {arm: _mean([row[2] for row in rows if row[0] == name]) for arm, rows in scores.items()}
        for name in names
    ]


def _targets(scores: Scores) -> Iterator[Target]:
    for arm in (OURS, WITH_VECTORS, SERVED):
        rows = scores.get(arm)
        if rows:
            yield Target(name=f"{arm}: files", value=_over_repositories(rows, 3), limit=0.82, at_least=True)
            yield Target(name=f"{arm}: chunks", value=_over_repositories(rows, 2), limit=0.79, at_least=True)
            yield Target(
                name=f"{arm}: symbols, files", value=_category(rows, "symbol", 3), limit=0.9, at_least=True
            )


def _plot(rows: Sequence[Mapping[str, Cell]]) -> str:
    """NDCG@10 of each arm, by chunks, by files, and of symbols by files."""
    columns = {"chunks": "chunks", "files": "files", "symbols, files": "symbol, files"}
    shown = [row for row in rows if row["arm"] not in ("no memory", "chance")]
    series = {str(row["arm"]): [float(row[name] or 0.0) for name in columns.values()] for row in shown}
    return bars("NDCG@10 of code search", list(columns), series)


def _tuned(held: Sequence[tuple[Repository, SectionIndex]], count: int) -> list[dict[str, Cell]]:
    def scored(weights: RankingWeights) -> dict[str, float]:
        return {
            one.name: _mean([row[2] for row in _scored(one, arms.vestige(index, weights=weights))])
            for one, index in held
        }

    kept, best, fit = left_out(tried_weights(count), scored)
    return [
        {"weights": "in use", "chunks": _mean(list(scored(RankingWeights()).values()))},
        {"weights": f"best of {count} on the other repositories", "chunks": _mean(list(kept.values()))},
        {"weights": "best on all (a fit): " + _shown(best), "chunks": fit},
    ]


def _shown(weights: RankingWeights) -> str:
    usual = asdict(RankingWeights())
    changed = {name: value for name, value in asdict(weights).items() if value != usual[name]}
    return ", ".join(f"{name} {value:g}" for name, value in changed.items()) or "those in use"

"""The whole benchmark of notes: pairs and notebooks of one half, or of both."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.engine import InProcess
from benchmarks.notes import pairs, questions
from benchmarks.notes.cases import DATA, notebooks_of, pairs_of
from benchmarks.report import Cell, Report, Target

NOTES = (
    "Shares have their 95 % interval (Wilson). Pairs: both notes go through `smart_ingest` in a scope of "
    "their own. `newest wins` supersedes from a cosine of .75 on; `cosine only` also reinforces from .88 on. "
    "Notebooks: notes are stored on the days they were written, then every question is asked. The authors "
    "saw neither the code nor each other's cases; of the blind ones only totals are looked at.",
)


Tables = dict[str, list[dict[str, Cell]]]


def run(halves: Sequence[str], data: Path = DATA, settings: dict[str, object] | None = None) -> Report:
    tables: Tables = {}
    targets: list[Target] = []
    for half in halves:
        for measure in (_pairs, _notebooks):
            measured, wanted = measure(half, data, settings or {})
            tables |= measured
            targets += wanted
    changed = {name: str(value) for name, value in (settings or {}).items()}
    return Report(
        benchmark="notes",
        settings={"halves": ", ".join(halves), **changed},
        tables=tables,
        targets=targets,
        notes=NOTES,
    )


def _pairs(half: str, data: Path, settings: dict[str, object]) -> tuple[Tables, list[Target]]:
    cases = pairs_of(half, data)
    with (
        tempfile.TemporaryDirectory(prefix="vestige-notes-") as folder,
        InProcess(Path(folder), settings=settings) as engine,
    ):
        ours = list(pairs.by_gate(engine, cases))
        newest = list(pairs.by_cosine(engine, cases, pairs.newest_wins))
        bands = list(pairs.by_cosine(engine, cases, pairs.cosine_bands))
    tables: Tables = {
        f"{half}: pairs": [
            pairs.summary("newest wins", newest),
            pairs.summary("cosine only", bands),
            pairs.summary("ours", ours),
        ]
    }
    if not half.endswith("blind"):
        tables[f"{half}: pairs by kind"] = pairs.by_kind(ours)
    return tables, list(pairs.targets(half, ours))


def _notebooks(half: str, data: Path, settings: dict[str, object]) -> tuple[Tables, list[Target]]:
    books = notebooks_of(half, data)
    ours = [one for book in books for one in questions.ask_memory(book, settings)]
    tables: Tables = {
        f"{half}: questions": [
            questions.summary("no memory", [one for book in books for one in questions.ask_nothing(book)]),
            questions.summary("random", [one for book in books for one in questions.ask_random(book)]),
            questions.summary("BM25", [one for book in books for one in questions.ask_bm25(book)]),
            questions.summary("ours", ours),
        ],
        f"{half}: questions by class": questions.by_class(ours),
        f"{half}: stated confidence of hits": questions.reliability(ours),
    }
    return tables, list(questions.targets(half, ours))

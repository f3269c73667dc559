"""Whether a small store is silent about other topics, and still answers about its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import fmean

from benchmarks.bm25 import Bm25
from benchmarks.notes import questions
from benchmarks.notes.cases import Notebook
from benchmarks.notes.questions import Asked
from benchmarks.notes.shares import in_words, share
from benchmarks.report import Cell, Report, Target
from benchmarks.tail.stores import SEED, SIZES, SmallStore, stores_of
from testbed.postgres_server import server

LIMIT = 10
OURS, OURS_BY_WORDS = "ours", "ours, without the model"
NOTES = (
    "Stores of 1 to 50 notes of one author. Each is asked questions that its notes answer, and questions "
    "about the notebooks of three other authors (wrong topic). Shares have their 95 % interval (Wilson). "
    "`found`: the answer is among the results. `shown` is the mean number of results of an answerable "
    "question. Of the blind half only totals are looked at.",
)

Way = Callable[[Notebook], Iterator[Asked]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAnswers:
    """What one way of searching answered to the questions put to a store."""

    store: SmallStore
    answers: Sequence[Asked]

    @property
    def right(self) -> list[Asked]:
        return [one for one in self.answers if one.question.id not in self.store.wrong]

    @property
    def wrong(self) -> list[Asked]:
        return [one for one in self.answers if one.question.id in self.store.wrong]


def run(halves: Sequence[str], store: str = "sqlite") -> Report:
    tables: dict[str, list[dict[str, Cell]]] = {}
    targets: list[Target] = []
    with _settings(store) as settings:
        for half in halves:
            stores = list(stores_of(half))
            answered = {
                name: [StoreAnswers(store=one, answers=list(way(one.notebook))) for one in stores]
                for name, way in _ways(settings).items()
            }
            tables[half] = [_row(name, answers) for name, answers in answered.items()]
            for name in (OURS, OURS_BY_WORDS) if half != "blind" else ():
                tables[f"{half}: {name}, by size"] = [
                    _row(f"{size} notes", [one for one in answered[name] if one.store.size == size])
                    for size in SIZES
                ]
            targets += _targets(half, answered)
    return Report(
        benchmark="tail",
        settings={"halves": ", ".join(halves), "store": store},
        tables=tables,
        targets=targets,
        notes=NOTES,
    )


@contextmanager
def _settings(store: str) -> Iterator[Callable[[], dict[str, object]]]:
    """The settings of each new store."""
    if store != "postgres":
        yield lambda: {"storage.backend": store}
        return
    with server(durable=False) as running:
        yield lambda: {"storage.backend": store, "storage.postgres.url": running.new_database()}


def _ways(settings: Callable[[], dict[str, object]]) -> Mapping[str, Way]:
    rng = Random(SEED)

    def at_random(book: Notebook) -> Iterator[Asked]:
        for question in book.questions:
            found = rng.sample([note.id for note in book.notes], min(LIMIT, len(book.notes)))
            yield Asked(question=question, found=tuple(found))

    def by_bm25(book: Notebook) -> Iterator[Asked]:
        index = Bm25([note.text for note in book.notes])
        for question in book.questions:
            best = index.top(question.text, LIMIT)
            yield Asked(question=question, found=tuple(book.notes[at].id for at in best))

    return {
        "no memory": questions.ask_nothing,
        "random": at_random,
        "BM25": by_bm25,
        OURS_BY_WORDS: lambda book: questions.ask_memory(
            book, {**settings(), "embeddings.provider": "off"}, LIMIT
        ),
        OURS: lambda book: questions.ask_memory(book, settings(), LIMIT),
    }


def _figures(answered: Sequence[StoreAnswers]) -> dict[str, list[bool]]:
    right = [one for some in answered for one in some.right]
    return {
        "wrong topic: nothing shown": [one.refused for some in answered for one in some.wrong],
        "answerable refused": [one.refused for one in right],
        "found": [bool(one.question.answers & set(one.found)) for one in right],
    }


def _row(name: str, answered: Sequence[StoreAnswers]) -> dict[str, Cell]:
    shown = [len(one.found) for some in answered for one in some.right]
    figures = {title: in_words(hits) for title, hits in _figures(answered).items()}
    return {"way": name, **figures, "shown": fmean(shown) if shown else None}


def _targets(half: str, answered: Mapping[str, Sequence[StoreAnswers]]) -> Iterator[Target]:
    wanted = (
        (OURS, "wrong topic: nothing shown", 0.9, True),
        (OURS, "answerable refused", 0.05, False),
        (OURS_BY_WORDS, "wrong topic: nothing shown", 0.9, True),
    )
    for way, name, limit, at_least in wanted:
        value = share(_figures(answered[way])[name])
        if value is not None:
            yield Target(name=f"{half}: {way}: {name}", value=value, limit=limit, at_least=at_least)

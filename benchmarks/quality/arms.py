"""The ways to answer a question: without memory, at random, by plain baselines, and by Vestige."""

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

from benchmarks.bm25 import Bm25
from benchmarks.client import Json
from benchmarks.engine import InProcess, Service
from benchmarks.progress import track
from benchmarks.quality.corpus import Corpus, Document, Question
from benchmarks.quality.ranked import DEEP, TOP, Ranked
from vestige.core.models import ANYTHING, EVERYTHING

NO_MEMORY = "no memory"
RANDOM = "random"
BM25 = "BM25"
DENSE = "dense"
ENGINE = "Vestige, engine"
MCP = "Vestige, MCP"
DRAWS = 20
SEED = 20_260_101


class Ranker(Protocol):
    """Something that finds documents."""

    def rank(self, query: str, limit: int) -> list[str]:
        """Keys, best first."""


class Keywords:
    """BM25 over the documents, each alone, with its neighbours in the thread, or over whole threads."""

    def __init__(self, keys: Sequence[str], texts: Sequence[str]) -> None:
        self._keys = keys
        self._index = Bm25(texts)

    def rank(self, query: str, limit: int) -> list[str]:
        return [self._keys[place] for place in self._index.top(query, limit)]


def keywords(corpus: Corpus) -> dict[str, Ranker]:
    """BM25 in each form that fits the corpus. A text that has a date has it in words too: Vestige is told
    it as well."""
    keys = [document.key for document in corpus.documents]
    made: dict[str, Ranker] = {BM25: Keywords(keys, [_dated([one]) for one in corpus.documents])}
    if corpus.threads:
        held = _by_thread(corpus)
        near = {
            one.key: _dated([*parts[max(0, at - 1) : at], one, *parts[at + 1 : at + 2]], of=one)
            for parts in held.values()
            for at, one in enumerate(parts)
        }
        near |= {one.key: one.content for one in corpus.documents if one.key not in near}
        made = {
            f"{BM25} (turn)": made[BM25],
            f"{BM25} (turn ±1)": Keywords(keys, [near[key] for key in keys]),
        }
    return made


def whole_threads(corpus: Corpus) -> Ranker:
    """BM25 over threads, each one text."""
    held = _by_thread(corpus)
    return Keywords(list(held), [_dated(parts) for parts in held.values()])


class Dense:
    """Cosine alone, over the vectors that Vestige stored."""

    def __init__(self, opened: InProcess, keys: Mapping[str, str]) -> None:
        self._opened = opened
        self._keys = keys

    def rank(self, query: str, limit: int) -> list[str]:
        embedder = self._opened.embedder
        vectors = embedder.embed_query(query)[None, :]
        store = self._opened.engine.store
        (found,) = store.nearest(vectors, embedder.signature, ANYTHING, access=EVERYTHING, limit=limit)
        return [self._keys[one.memory_id] for one in found]


def answer(ranker: Ranker, questions: Sequence[Question], label: str) -> list[Ranked]:
    """What a baseline finds; its first 10 are those of its first 100."""
    made = []
    for question in track(questions, label):
        deep = ranker.rank(question.text, DEEP)
        made.append(Ranked(question=question, top=deep[:TOP], deep=deep))
    return made


def search(
    service: Service, keys: Mapping[str, str], questions: Sequence[Question], label: str
) -> list[Ranked]:
    """What the tool `search` finds, asked for 10 and for 100."""
    made = []
    for question in track(questions, label):
        top = ask(service, question.text, TOP)
        deep = ask(service, question.text, DEEP)
        made.append(
            Ranked(
                question=question,
                top=found_keys(top, keys),
                deep=found_keys(deep, keys),
                confidence=top.get("confidence"),
                abstained=top.get("abstained"),
            )
        )
    return made


def found_keys(answer: Json, keys: Mapping[str, str]) -> list[str]:
    """The keys of the hits; equal texts that were folded into one hit take the places after it."""
    ids = (one for hit in answer["results"] for one in (hit["id"], *hit.get("duplicateIds", ())))
    return [keys[one] for one in ids]


def ask(service: Service, query: str, limit: int, **more: object) -> Json:
    """One search that leaves no trace."""
    arguments = {"query": query, "limit": limit, "detail_level": "brief", "record": False, **more}
    return service.call("search", arguments)


def without_memory(questions: Sequence[Question]) -> list[Ranked]:
    """Nothing is found."""
    return [Ranked(question=question, top=(), deep=()) for question in questions]


def at_random(corpus: Corpus) -> list[Ranked]:
    """Several seeded draws for each question, so that their mean is near the expected value."""
    rng = random.Random(SEED)
    keys = [document.key for document in corpus.documents]
    made = []
    for question in corpus.questions:
        for _ in range(DRAWS):
            drawn = rng.sample(keys, min(DEEP, len(keys)))
            made.append(Ranked(question=question, top=drawn[:TOP], deep=drawn))
    return made


def _by_thread(corpus: Corpus) -> dict[str, list[Document]]:
    held: dict[str, list[Document]] = {}
    for one in corpus.documents:
        if one.thread is not None:
            held.setdefault(one.thread, []).append(one)
    return held


def _dated(parts: Sequence[Document], *, of: Document | None = None) -> str:
    at = (of or parts[0]).occurred_at
    texts = [part.content for part in parts]
    return "\n".join([*texts, f"{at:%d %B %Y}"] if at else texts)

"""Which session led to a commit with this subject? Ours beside no memory, chance, BM25 and dense vectors."""

import os
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.bm25 import Bm25
from benchmarks.engine import InProcess
from benchmarks.quality.corpus import Corpus, Question
from benchmarks.quality.transcripts import FOLDER, transcripts
from benchmarks.report import Cell, Target
from vestige.cognition.ranking.sessions import SHIPPED, SessionWeights
from vestige.engine.context import Call
from vestige.engine.recall.sessions.recall import family_postings, find_sessions, query_families, ranking
from vestige.engine.recall.sessions.refresh import refresh
from vestige.store.contract.sessions import SessionFilter, SessionIndex

Order = list[str]
Arm = Callable[[str], Order]
DEEP = 100
DATE_CHARS = len("2026-01-01-")
CHUNK_CHARS = 2_000
DRAWS, FOLDS, SEED = 20, 5, 20_260_101
GRID = [
    SessionWeights(passage=passage, second=second, prompts=prompts, work=work)
    for passage, second, prompts, work in product(
        (0.5, 1.0, 2.0), (0.0, 0.5, 1.0), (0.0, 0.3, 0.6), (0.05, 0.1, 0.2)
    )
]
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The rank of the best gold session of a question; 0 where none was found."""

    question: Question
    rank: int


def session_of(stem: str) -> str:
    """The session of a file, without the date before it: one that was saved on two days is one session."""
    return stem[DATE_CHARS:]


def measured(arm: Arm, questions: Sequence[Question]) -> list[Measured]:
    made = []
    for question in questions:
        gold = {session_of(key) for key in question.gold}
        order = dict.fromkeys(map(session_of, arm(question.text)))
        ranks = [at for at, key in enumerate(order, 1) if key in gold]
        made.append(Measured(question=question, rank=min(ranks, default=0)))
    return made


def mrr(ranks: Sequence[Measured]) -> float:
    return statistics.fmean(1 / one.rank if one.rank else 0.0 for one in ranks) if ranks else 0.0


def row(name: str, ranks: Sequence[Measured]) -> dict[str, Cell]:
    def hit(k: int) -> float:
        return statistics.fmean(0 < one.rank <= k for one in ranks)

    return {"arm": name, "hit@1": hit(1), "hit@5": hit(5), "hit@10": hit(10), "MRR": mrr(ranks)}


def home_of(data: Path, folder: Path) -> Path:
    """A home directory with the transcripts where their clients would have put them."""
    for number, path in enumerate(sorted((data / FOLDER).glob("*.jsonl"))):
        text = path.read_bytes()
        gemini = b'"projectHash"' in text[:400]
        place = ".gemini/tmp/project/chats" if gemini else ".claude/projects/project"
        target = folder / place / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
        os.utime(target, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


@contextmanager
def indexed(home: Path, folder: Path) -> Iterator[SessionIndex]:
    """The index of a home directory, through the shipped code."""
    given: dict[str, object] = {"sessions.home": str(home), "embeddings.provider": "hashing"}
    with InProcess(folder, settings=given) as opened:
        index = opened.engine.sessions()
        refresh(Call(engine=opened.engine), index)
        yield index


def ours(index: SessionIndex) -> Arm:
    def ask(query: str) -> Order:
        found = find_sessions(index, query, SessionFilter(), NOW, limit=DEEP, passages=1)
        return [Path(one.session.path).stem for one in found.sessions]

    return ask


def weighted(index: SessionIndex, weights: SessionWeights) -> Arm:
    """Ours with other weights, without what only people see."""
    names = {one.key: Path(one.path).stem for one in index.sessions(SessionFilter(), limit=10_000)}

    def ask(query: str) -> Order:
        held = family_postings(index, query_families(query), SessionFilter())
        return [names[one.session] for one in ranking(held, weights=weights)]

    return ask


def by_bm25(corpus: Corpus) -> dict[str, Arm]:
    """BM25 over whole sessions, chunks, and turns with neighbours; a session is found by its best text."""
    turns: dict[str, list[str]] = defaultdict(list)
    for document in corpus.documents:
        turns[str(document.thread)].append(document.content)
    near = [
        (key, "\n".join(texts[max(0, at - 1) : at + 2]))
        for key, texts in turns.items()
        for at in range(len(texts))
    ]
    whole = [(key, "\n".join(texts)) for key, texts in turns.items()]
    chunks = [(key, chunk) for key, texts in turns.items() for chunk in _chunks(texts)]
    forms = {"whole": whole, "chunk": chunks, "turn ±1": near}
    return {
        f"BM25 ({name})": _best_of([k for k, _ in rows], Bm25([t for _, t in rows]))
        for name, rows in forms.items()
    }


def _chunks(texts: Sequence[str]) -> Iterator[str]:
    held = ""
    for text in texts:
        if held and len(held) + len(text) > CHUNK_CHARS:
            yield held
            held = ""
        held += f"\n{text}"
    if held:
        yield held


def _best_of(keys: Sequence[str], index: Bm25) -> Arm:
    def ask(query: str) -> Order:
        return list(dict.fromkeys(keys[place] for place in index.top(query, len(keys))))

    return ask


def by_vectors(corpus: Corpus, folder: Path) -> Arm | None:
    """Cosine over chunks of the same text; None without the model."""
    with InProcess(folder) as opened:
        embedder = opened.embedder
        turns: dict[str, list[str]] = defaultdict(list)
        for document in corpus.documents:
            turns[str(document.thread)].append(document.content)
        rows = [(key, chunk) for key, texts in turns.items() for chunk in _chunks(texts)]
        vectors = np.asarray(embedder.embed_documents([text for _, text in rows]))
        asked = {one.text: np.asarray(embedder.embed_query(one.text)) for one in corpus.questions}

    def ask(query: str) -> Order:
        order = np.argsort(-(vectors @ asked[query]), kind="stable")
        return list(dict.fromkeys(rows[place][0] for place in order))

    return ask


def at_random(corpus: Corpus) -> list[Measured]:
    keys = sorted({str(document.thread) for document in corpus.documents})
    rng = random.Random(SEED)
    return [
        one for _ in range(DRAWS) for one in measured(lambda _: rng.sample(keys, len(keys)), corpus.questions)
    ]


def cross_validated(index: SessionIndex, questions: Sequence[Question]) -> list[Measured]:
    """Each question with the weights that are best for the questions about other sessions."""
    sessions = sorted({min(question.gold) for question in questions})
    rng = random.Random(SEED)
    rng.shuffle(sessions)
    fold = {key: number % FOLDS for number, key in enumerate(sessions)}
    by_weights = [measured(weighted(index, weights), questions) for weights in GRID]
    made = []
    for number in range(FOLDS):
        inside = [at for at, one in enumerate(questions) if fold[min(one.gold)] == number]
        outside = [at for at in range(len(questions)) if at not in inside]
        best = max(by_weights, key=lambda ranks: mrr([ranks[at] for at in outside]))
        made += [best[at] for at in inside]
    return made


def quality(data: Path, folder: Path) -> tuple[list[dict[str, Cell]], list[Target]]:
    corpus = transcripts(data)
    home = home_of(data, folder / "home")
    with indexed(home, folder / "ours") as index:
        shipped = measured(ours(index), corpus.questions)
        validated = cross_validated(index, corpus.questions)
        same = measured(weighted(index, SHIPPED), corpus.questions)
    if [one.rank for one in same] != [one.rank for one in shipped]:
        raise RuntimeError("The search and the benchmark rank differently.")
    rows = [row("no memory", measured(lambda _: [], corpus.questions)), row("random", at_random(corpus))]
    baselines = {name: measured(arm, corpus.questions) for name, arm in by_bm25(corpus).items()}
    dense = by_vectors(corpus, folder / "dense")
    if dense is not None:
        baselines["dense"] = measured(dense, corpus.questions)
    rows += [row(name, ranks) for name, ranks in baselines.items()]
    rows += [row("ours", shipped), row("ours, weights cross-validated over sessions", validated)]
    best = max(mrr(ranks) for ranks in baselines.values())
    deep = max(float(str(row("", ranks)["hit@10"])) for ranks in baselines.values())
    targets = [
        Target(name="MRR, cross-validated", value=mrr(validated), limit=0.68, at_least=True),
        Target(name="MRR above the best baseline", value=mrr(shipped) - best, limit=0.0, at_least=True),
        Target(
            name="hit@10 above the best baseline",
            value=float(str(row("", shipped)["hit@10"])) - deep,
            limit=0.0,
            at_least=True,
        ),
    ]
    return rows, targets

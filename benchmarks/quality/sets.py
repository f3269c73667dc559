"""Each set of data through every arm, as sections of the report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.engine import InProcess, OverStdio
from benchmarks.quality import arms
from benchmarks.quality.collections import cosqa, cranfield
from benchmarks.quality.corpus import Corpus
from benchmarks.quality.locomo import CATEGORIES, pooled
from benchmarks.quality.longmemeval import longmemeval
from benchmarks.quality.ranked import (
    FUNCTION,
    GRADED,
    HITS,
    RECALL,
    SESSIONS,
    Outcomes,
    Ranked,
    Scores,
    by_thread,
    mean,
    rows,
    strongest,
)
from benchmarks.quality.shelf import Ground, stock
from benchmarks.quality.transcripts import transcripts
from benchmarks.report import Cell

TURNS = "LoCoMo, turns"
OURS = (arms.ENGINE, arms.MCP)
SINGLE = (arms.BM25, arms.DENSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table: what every arm answered, and the measure that counts most."""

    title: str
    outcomes: Outcomes
    scores: Scores
    main: str
    categories: Sequence[str] = ()

    def tables(self) -> dict[str, list[dict[str, Cell]]]:
        """The table, and one by category where there are categories."""
        made = {self.title: rows(self.outcomes, self.scores)}
        if self.categories:
            told = {arm: one for arm, one in self.outcomes.items() if arm.startswith((*SINGLE, arms.MCP))}
            made[f"{self.title}, by category"] = rows(told, self.scores, categories=self.categories)
        return made

    def asks(self, category: str | None) -> bool:
        """Whether there are questions of the category (None: of any)."""
        return any(category in (None, one.question.category) for one in self.outcomes[arms.MCP])

    def value(self, arm: str, score: str | None = None, category: str | None = None) -> float:
        """One number of it; an arm is named by how its name begins."""
        name = next(name for name in self.outcomes if name.startswith(arm))
        answered = [one for one in self.outcomes[name] if category in (None, one.question.category)]
        return mean(answered, self.scores[score or self.main])

    def best_single(self) -> float:
        """The better of BM25 and dense."""
        return max(self.value(arm) for arm in SINGLE)


def measure(corpus: Corpus, ground: Ground) -> dict[str, list[Ranked]]:
    """What every arm answers to the questions of a corpus."""
    shelf, asked = stock(corpus, ground), corpus.questions
    outcomes = {arms.NO_MEMORY: arms.without_memory(asked), arms.RANDOM: arms.at_random(corpus)}
    for name, ranker in arms.keywords(corpus).items():
        outcomes[name] = arms.answer(ranker, asked, f"{corpus.name}: {name}")
    with InProcess(shelf.folder) as opened:
        dense = arms.Dense(opened, shelf.keys)
        outcomes[arms.DENSE] = arms.answer(dense, asked, f"{corpus.name}: {arms.DENSE}")
        outcomes[arms.ENGINE] = arms.search(
            ground.asking(opened), shelf.keys, asked, f"{corpus.name}: {arms.ENGINE}"
        )
    with OverStdio(shelf.folder) as server:
        outcomes[arms.MCP] = arms.search(
            ground.asking(server), shelf.keys, asked, f"{corpus.name}: {arms.MCP}"
        )
    return outcomes


def locomo_sections(talks: Sequence[Corpus], ground: Ground, *, pool: bool) -> list[Section]:
    """Turns and sessions within each conversation; then all conversations in one store."""
    turns: dict[str, list[Ranked]] = {}
    sessions: dict[str, list[Ranked]] = {}
    for talk in talks:
        outcomes = measure(talk, ground)
        for arm, answered in outcomes.items():
            turns.setdefault(arm, []).extend(answered)
        for arm, answered in threaded(talk, outcomes).items():
            sessions.setdefault(arm, []).extend(answered)
    made = [_recall(TURNS, turns), _recall("LoCoMo, sessions", sessions)]
    if pool:
        made.append(_recall(f"{TURNS}, pooled", measure(pooled(talks), ground)))
    return made


def threaded(corpus: Corpus, outcomes: Mapping[str, Sequence[Ranked]]) -> dict[str, list[Ranked]]:
    """The outcomes by thread, and BM25 over whole threads beside them."""
    threads = corpus.threads
    made = {arm: by_thread(answered, threads) for arm, answered in outcomes.items()}
    label = f"{corpus.name}: {arms.BM25} over threads"
    whole = arms.answer(arms.whole_threads(corpus), corpus.questions, label)
    # Rows are shown in this order, so what is plainest stays above what is ours.
    plain = {arm: made.pop(arm) for arm in (arms.NO_MEMORY, arms.RANDOM)}
    return {**plain, f"{arms.BM25} (whole session)": by_thread(whole, threads), **made}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A set besides LoCoMo: where it comes from, and what is measured."""

    title: str
    load: Callable[[Path], Corpus]
    scores: Scores
    main: str
    by_thread: bool = False

    def section(self, corpus: Corpus, outcomes: Outcomes, note: str = "") -> Section:
        """What the arms answered, as it is reported."""
        found = threaded(corpus, outcomes) if self.by_thread else outcomes
        return _section(self.title + note, found, self.scores, self.main)


KINDS = {
    "longmemeval": Kind(
        title="LongMemEval samples, sessions",
        load=lambda data: longmemeval(data)[0],
        scores=SESSIONS,
        main="recall@5",
        by_thread=True,
    ),
    "cranfield": Kind(title="Cranfield", load=cranfield, scores=GRADED, main="nDCG@10"),
    "cosqa": Kind(title="CoSQA", load=cosqa, scores=FUNCTION, main="MRR"),
    "transcripts": Kind(
        title="Transcripts, sessions", load=transcripts, scores=HITS, main="MRR", by_thread=True
    ),
}
MIXED = ("cranfield", "cosqa", "transcripts")


def other_section(data: Path, ground: Ground, name: str) -> Section:
    """The section of a set that is not LoCoMo."""
    kind = KINDS[name]
    corpus = kind.load(data)
    return kind.section(corpus, measure(corpus, ground))


def mixed_sections(data: Path, talks: Sequence[Corpus], ground: Ground) -> list[Section]:
    """Conversations, abstracts, functions and transcripts in one store, each asked about apart."""
    chats, others = pooled(talks), {name: KINDS[name].load(data) for name in MIXED}
    documents = [document for part in (chats, *others.values()) for document in part.documents]
    store = Corpus(name="mixed store", documents=documents, questions=chats.questions)
    note = ", in the mixed store"
    made = [_recall(TURNS + note, measure(store, ground))]
    for name, part in others.items():
        asked = replace(store, questions=part.questions)
        made.append(KINDS[name].section(asked, measure(asked, ground), note))
    return made


def _recall(title: str, outcomes: Outcomes) -> Section:
    return replace(
        _section(title, outcomes, RECALL, "frac@10"), categories=tuple(sorted(CATEGORIES.values()))
    )


def _section(title: str, outcomes: Outcomes, scores: Scores, main: str) -> Section:
    kept = strongest(outcomes, scores[main], arms.BM25)
    return Section(title=title, outcomes=kept, scores=scores, main=main)

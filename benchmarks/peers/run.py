"""LoCoMo and PersonaMem through every memory that is there, in one run on one machine."""

import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.engine import InProcess
from benchmarks.peers.contenders import Contender, Ours, Plain, Theirs
from benchmarks.peers.personas import personas
from benchmarks.peers.process import Embed, PeerProcess, Unavailable
from benchmarks.plot import bars
from benchmarks.progress import say, track
from benchmarks.quality.corpus import Corpus, Missing
from benchmarks.quality.locomo import DEVELOPMENT, conversations
from benchmarks.quality.ranked import DEEP, RECALL, TOP, Ranked, by_thread, mean
from benchmarks.report import Cell, Report
from vestige import __version__
from vestige.embed.protocol import Embedder

OURS = "Vestige, MCP"
BM25 = "BM25 (turn)"
PEERS = {"Chroma": "chroma", "mcp-memory-service": "memory_service", "MemPalace": "palace"}
REASON_CHARS = 160
LOCOMO, PERSONAS = "LoCoMo, in one run", "PersonaMem, never used in tuning, in one run"
NOTES = (
    "No peer fetches its own model: each gets the vectors of Vestige's (MiniLM, which all of them support) "
    "from the benchmark, so that what differs is what they do with them. Times include making the vector of "
    "the query. Memory is of the memory's own process: for a peer without the model, for Vestige with it.",
    "PersonaMem: what one of twelve people says later, without the name, asked of all sessions in one store; "
    "found ought to be the sessions of that person. A session is found by its best turn.",
)

Measurements = Mapping[str, "Measured"]
"""By memory."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """What a memory answered and needed."""

    version: str
    turns: list[Ranked] = field(default_factory=list)
    sessions: list[Ranked] = field(default_factory=list)
    stored: int = 0
    storing_seconds: float = 0.0
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    megabytes: float | None = None


def run(
    *,
    data: Path,
    pythons: Sequence[Path] = (),
    only: Sequence[str] = tuple(PEERS),
    talks: int | None = None,
    questions: int | None = None,
    development: bool = False,
) -> Report:
    """Measure Vestige, BM25 and every peer that one of the interpreters can run, on conversations that were
    not used in tuning, or on those that were (`development`), and on PersonaMem, which was not."""
    sets = {
        title: [replace(one, questions=one.questions[:questions]) for one in corpora]
        for title, corpora in _sets(data, talks, development=development).items()
    }
    measured: dict[str, dict[str, Measured]] = {title: {} for title in sets}
    skipped: dict[str, str] = {}
    with _vectors() as (embed, model):
        for name in (BM25, *only, OURS):
            try:
                for title, corpora in sets.items():
                    measured[title][name] = _measure(name, _contender(name, pythons, embed), corpora)
            except Unavailable as reason:
                skipped[name] = str(reason)
                say(f"{name} is skipped: {reason}")
    corpora = [one for each in sets.values() for one in each]
    asked = sum(len(corpus.questions) for corpus in corpora)
    held = sum(len(corpus.documents) for corpus in corpora)
    return Report(
        benchmark="peers",
        settings={
            "questions": asked,
            "turns": held,
            "conversations": ", ".join(corpus.name for corpus in corpora),
            "used in tuning": "LoCoMo" if development else "none",
            "model": model,
        },
        tables={
            title: [_row(name, one, turns=title == LOCOMO) for name, one in of.items()]
            for title, of in measured.items()
        },
        targets=[],
        notes=NOTES,
        skipped=skipped,
        plots={"found": _chart(measured)},
    )


def _sets(data: Path, talks: int | None, *, development: bool) -> dict[str, Sequence[Corpus]]:
    """What there is to ask, by the title of its table."""
    found: dict[str, Sequence[Corpus]] = {}
    chosen = [one for one, _ in conversations(data) if (one.name in DEVELOPMENT) is development]
    if chosen:
        found[LOCOMO] = chosen[:talks]
    with suppress(Missing):
        found[PERSONAS] = [personas(data)]
    if not found:
        kind = "of the development part" if development else "outside the development part"
        raise Missing(f"no conversation {kind}")
    return found


def _contender(name: str, pythons: Sequence[Path], embed: Embed) -> Contender:
    if name == OURS:
        return Ours(__version__)
    if name == BM25:
        return Plain()
    reasons = []
    for python in pythons or [Path(sys.executable)]:
        try:
            return _started(python, PEERS[name], embed)
        except Unavailable as reason:
            reasons.append(textwrap.shorten(str(reason), REASON_CHARS, placeholder="…"))
    raise Unavailable("; ".join(dict.fromkeys(reasons)))


def _started(python: Path, adapter: str, embed: Embed) -> Contender:
    """A peer that has shown that it can open a store."""
    process = PeerProcess(python, adapter, embed)
    try:
        with tempfile.TemporaryDirectory(prefix="vestige-peers-", ignore_cleanup_errors=True) as folder:
            process.open(Path(folder))
    except Unavailable:
        process.close()
        raise
    return Theirs(process)


def _measure(name: str, contender: Contender, corpora: Sequence[Corpus]) -> Measured:
    measured = Measured(version=contender.version)
    try:
        for corpus in corpora:
            with tempfile.TemporaryDirectory(prefix="vestige-peers-", ignore_cleanup_errors=True) as folder:
                _ask(name, contender, corpus, Path(folder), measured)
        memory = contender.memory()
        measured.megabytes = memory.megabytes if memory else None
    finally:
        contender.close()
    return measured


def _ask(name: str, contender: Contender, corpus: Corpus, folder: Path, measured: Measured) -> None:
    contender.open(folder)
    began = time.perf_counter()
    contender.add(corpus.documents)
    measured.storing_seconds += time.perf_counter() - began
    measured.stored += len(corpus.documents)
    answered = []
    for question in track(corpus.questions, f"{corpus.name}: {name}"):
        began, used = time.perf_counter(), contender.cpu_seconds()
        top = contender.search(question.text, TOP)
        measured.wall.append(time.perf_counter() - began)
        if used is not None:
            measured.cpu.append((contender.cpu_seconds() or 0.0) - used)
        answered.append(Ranked(question=question, top=top, deep=contender.search(question.text, DEEP)))
    measured.turns += answered
    measured.sessions += by_thread(answered, corpus.threads)


def _row(name: str, one: Measured, *, turns: bool) -> dict[str, Cell]:
    return {
        "memory": name,
        "version": one.version,
        **(
            {score: mean(one.turns, RECALL[score]) for score in ("frac@5", "frac@10", "MRR")} if turns else {}
        ),
        "session frac@5": mean(one.sessions, RECALL["frac@5"]),
        "session frac@10": mean(one.sessions, RECALL["frac@10"]),
        "stored per s": one.stored / one.storing_seconds,
        "search ms p50": 1000 * float(np.median(one.wall)),
        "CPU ms p50": 1000 * float(np.median(one.cpu)) if one.cpu else None,
        "own memory MB": one.megabytes,
    }


def _chart(measured: Mapping[str, Measurements]) -> str:
    groups = {LOCOMO: ("LoCoMo turns", "LoCoMo sessions"), PERSONAS: ("PersonaMem sessions",)}
    series: dict[str, list[float]] = {}
    for title, of in measured.items():
        for name, one in of.items():
            parts = [one.turns, one.sessions] if title == LOCOMO else [one.sessions]
            series.setdefault(name, []).extend(mean(part, RECALL["frac@10"]) for part in parts)
    titles = [group for title in measured for group in groups[title]]
    return bars("Share of the gold found in the first 10", titles, series)


class Vectors:
    """The model of Vestige, lent to peers."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.cpu_seconds = 0.0

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        began = time.process_time()
        made = self._embedder.embed_documents(list(texts))
        self.cpu_seconds += time.process_time() - began
        vectors: list[list[float]] = made.tolist()
        return vectors


@contextmanager
def _vectors() -> Iterator[tuple[Vectors, str]]:
    with tempfile.TemporaryDirectory(prefix="vestige-peers-") as folder, InProcess(Path(folder)) as opened:
        yield Vectors(opened.embedder), opened.embedder.signature.name

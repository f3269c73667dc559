"""A search taken apart: each of its necessary parts timed alone in its best form, beside the whole.

The sum of the parts is the limit: what a search would cost if everything around them were free.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.client import Json
from benchmarks.engine import InProcess
from benchmarks.progress import track
from benchmarks.report import Cell
from benchmarks.speed.stores import PROJECT
from vestige.cognition.native.kernel import allow
from vestige.cognition.query.analyse import Asked, analyse, content_words
from vestige.cognition.ranking.maxsim import match, weigh
from vestige.core.candidates import CandidatePool
from vestige.core.models import EVERYTHING, Filter
from vestige.embed.protocol import Encoded
from vestige.engine.context import Call
from vestige.engine.recall.candidates import Mode, gather
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.store.contract.search import Probe

PER_ARM = Mode.BALANCED.depth.per_arm
LIMIT = 10
RUN = 20
"""Cases that a work takes in a row."""
SEED = 5
EMBEDDING, SCAN, LEXICAL, MAXSIM = "query embedding", "scan", "lexical queries", "MaxSim"
GATHER = "all arms"
PROBE = "query embedding, all arms, MaxSim"
RECALL = "… and ranking, stages, answer"
UNRECORDED = "search: … and its views"
SEARCH = "search: … its trace and the reactions to it"
STARTED = "session_context"
IN_NUMPY = "search: … and its views, without the compiled library"
LIMIT_PARTS = (EMBEDDING, SCAN, LEXICAL, MAXSIM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A query with all that its parts need, so that each can be run alone."""

    query: str
    asked: Asked
    encoded: Encoded
    weights: NDArray[np.float64]
    pool: CandidatePool


Work = Callable[[Case], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds per query, one number for each query."""

    wall: NDArray[np.float64]
    cpu: NDArray[np.float64]

    def row(self, name: str) -> dict[str, Cell]:
        """Milliseconds, as a line of a table."""
        return {
            "part": name,
            "CPU p50": 1000 * float(np.percentile(self.cpu, 50)),
            "CPU p95": 1000 * float(np.percentile(self.cpu, 95)),
            "wall p50": 1000 * float(np.percentile(self.wall, 50)),
            "wall p95": 1000 * float(np.percentile(self.wall, 95)),
        }


def timed(works: Mapping[str, Work], cases: Sequence[Case], label: str) -> dict[str, Took]:
    """How long every work takes for every case.

    All works take the first few cases, then all take the next few, so that what else the machine does falls
    on all of them alike; in a run of cases a work has the caches to itself. A first case warms each up.
    """
    wall: dict[str, list[float]] = {name: [] for name in works}
    cpu: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work(cases[0])
    for at in track(range(0, len(cases), RUN), label):
        for name, work in works.items():
            for case in cases[at : at + RUN]:
                began, used = time.perf_counter(), time.process_time()
                work(case)
                cpu[name].append(time.process_time() - used)
                wall[name].append(time.perf_counter() - began)
    return {name: Took(wall=np.array(wall[name]), cpu=np.array(cpu[name])) for name in works}


def measure(opened: InProcess, queries: Sequence[str], memories: int) -> dict[str, Took]:
    """Every part and the whole, for the same queries."""
    embedder, store = opened.embedder, opened.engine.store
    call, where = Call(engine=opened.engine), Filter(valid_at=opened.engine.now(), scope=PROJECT)
    shape = (memories, embedder.signature.dimension)
    matrix = np.random.default_rng(SEED).standard_normal(shape, dtype=np.float32)

    def search(case: Case, *, record: bool) -> object:
        return opened.call("search", request(case.query, record=record))

    def reacted(case: Case) -> None:
        search(case, record=True)
        opened.settle()

    def search_in_numpy(case: Case) -> object:
        allow(False)
        try:
            return search(case, record=False)
        finally:
            allow(True)

    works: dict[str, Work] = {
        EMBEDDING: lambda case: embedder.encode_query(case.query),
        SCAN: lambda case: _scan(matrix, case.encoded),
        LEXICAL: lambda case: store.lexical(case.asked.terms, where, access=EVERYTHING, limit=PER_ARM),
        MAXSIM: _maxsim,
        GATHER: lambda case: _gather(opened, case.asked, case.encoded),
        PROBE: lambda case: gather(call, case.asked, where, Mode.BALANCED.depth),
        RECALL: lambda case: recall(call, RecallQuery(text=case.query, where=where, limit=LIMIT)),
        UNRECORDED: partial(search, record=False),
        IN_NUMPY: search_in_numpy,
        # Each query once: only what was not shown before leaves a trace.
        SEARCH: reacted,
        STARTED: lambda case: opened.call("session_context", {"queries": [case.query], "scope": PROJECT}),
    }
    opened.settle()
    return timed(works, [_case(opened, query) for query in queries], f"{memories:,}: parts and searches")


def request(query: str, *, record: bool) -> Json:
    """A search that is never refused: a refusal would save the work of an answer."""
    return {"query": query, "limit": LIMIT, "record": record, "min_confidence": 0, "scope": PROJECT}


def limit_of(took: dict[str, Took]) -> float:
    """The median CPU seconds of all necessary parts together."""
    return float(np.median(sum((took[part].cpu for part in LIMIT_PARTS), np.zeros(1))))


def _case(opened: InProcess, query: str) -> Case:
    asked, encoded = analyse(query), opened.embedder.encode_query(query)
    pool = _gather(opened, asked, encoded)
    weights = np.zeros(0)
    if encoded.tokens is not None:
        weights = weigh(encoded.tokens.spans, content_words(query), pool.frequencies, pool.memories)
    return Case(query=query, asked=asked, encoded=encoded, weights=weights, pool=pool)


def _gather(opened: InProcess, asked: Asked, encoded: Encoded) -> CandidatePool:
    wanted = Probe(
        terms=asked.terms,
        literals=asked.literals,
        vector=encoded.vector,
        signature=opened.embedder.signature,
        where=Filter(valid_at=opened.engine.now(), scope=PROJECT),
        per_arm=PER_ARM,
    )
    return opened.engine.store.gather(wanted, access=EVERYTHING)


def _scan(matrix: NDArray[np.float32], encoded: Encoded) -> object:
    scores = matrix @ encoded.vector
    return np.argpartition(-scores, min(PER_ARM, len(scores) - 1))[:PER_ARM]


def _maxsim(case: Case) -> object:
    if case.encoded.tokens is None or case.pool.sketch is None:
        return None
    return match(case.encoded.tokens.states, [case.weights], case.pool.sketch)

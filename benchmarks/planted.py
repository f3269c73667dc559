"""How many planted contradictions are found, and how often there is a false alarm.

    python -m benchmarks.planted [--data DIR] [--only SET …] [--memories 2000] [--out FILE]

For each set of pairs a store is filled with ordinary memories (turns of LoCoMo, kept as plain notes), with
the old texts of all pairs and then with the new ones, each as a memory of its own (`force_create`). Then
`contradictions` looks through the whole store. Pairs that contradict each other should be listed; pairs that
say the same, say more, or are about something else should not, nor should anything else in the store.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.client import Json
from benchmarks.engine import InProcess
from benchmarks.gate.pairs import MEMORY_LIKE, Pair, load
from benchmarks.plot import bars
from benchmarks.progress import say, track
from benchmarks.quality.corpus import DEFAULT_DATA, Missing
from benchmarks.quality.locomo import conversations
from benchmarks.report import Cell, Report, Target, publish

PLANTED = ("negation", "value_change", "correction")
CONTROLS = ("paraphrase", "elaboration", "multi_valued", "unrelated")
MEMORIES = 2_000
PORTION = 100
MOST_LISTED = 1_000
ASKED = 30
FOUND, FALSE_ALARMS, SLOWER = 0.6, 0.05, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A set of pairs with what was listed: of them, and of everything else."""

    pairs: Sequence[Pair]
    kinds: Sequence[str | None]
    ordinary: int
    elsewhere: int
    looked_at: int
    seconds: float
    search_ms: float
    reference_ms: float

    def share(self, relations: Sequence[str]) -> float:
        """How many of the pairs with these relations were listed."""
        listed = [
            kind is not None
            for pair, kind in zip(self.pairs, self.kinds, strict=True)
            if pair.relation in relations
        ]
        return sum(listed) / max(1, len(listed))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.planted", description="Planted contradictions."
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with locomo.json")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="SET",
        choices=MEMORY_LIKE,
        default=list(MEMORY_LIKE),
        help=f"of {', '.join(MEMORY_LIKE)}",
    )
    parser.add_argument("--memories", type=int, default=MEMORIES, help=f"ordinary ones (default {MEMORIES})")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    publish(run(data=given.data, only=given.only, memories=given.memories), given.out)


def run(*, data: Path, only: Sequence[str] = MEMORY_LIKE, memories: int = MEMORIES) -> Report:
    """Plant every set asked for. What is missing is skipped, and the report says so."""
    outcomes: dict[str, Outcome] = {}
    skipped: dict[str, str] = {}
    ordinary = _ordinary(data, memories)
    for name in only:
        try:
            pairs = [pair for pair in load(name, data, 0) if pair.relation in PLANTED + CONTROLS]
        except Missing as missing:
            skipped[name] = str(missing)
            say(f"{name} is skipped: {missing}")
            continue
        outcomes[name] = _planted(name, pairs, ordinary)
    return Report(
        benchmark="planted",
        settings={"ordinary memories": len(ordinary)},
        tables={
            "Pairs listed": [row for name, one in outcomes.items() for row in _rows(name, one)],
            "Everything else, and time": [_summary(name, one) for name, one in outcomes.items()],
        },
        targets=[target for name, one in outcomes.items() for target in _targets(name, one)],
        notes=NOTES,
        skipped=skipped,
        plots={"listed": _chart(outcomes)} if outcomes else {},
    )


NOTES = (
    "`elsewhere` are listed pairs that were not planted: of ordinary memories or of texts of other pairs; "
    "they need not be wrong, but count as false alarms. `ours` was written beside the code, `blind` by "
    "somebody who had not seen it. Search and deep_reference are medians over the same questions, without a "
    "trace.",
)


def _ordinary(data: Path, count: int) -> list[str]:
    """Different turns of conversations. (Turns from a grammar would contradict each other.)"""
    try:
        talks = [talk for talk, _ in conversations(data)]
    except Missing as missing:
        raise SystemExit(f"The ordinary memories are turns of LoCoMo: {missing}.") from None
    return list(dict.fromkeys(one.content for talk in talks for one in talk.documents))[:count]


def _planted(name: str, pairs: Sequence[Pair], ordinary: Sequence[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="vestige-planted-") as folder, InProcess(Path(folder)) as engine:
        _tell(engine, ordinary, f"{name}: ordinary memories")
        olds = _tell(engine, [pair.old for pair in pairs], f"{name}: old texts")
        news = _tell(engine, [pair.new for pair in pairs], f"{name}: new texts")
        started = time.perf_counter()
        answer = engine.call("contradictions", {"limit": MOST_LISTED})
        seconds = time.perf_counter() - started
        questions = [pair.old for pair in pairs][:: max(1, len(pairs) // ASKED)]
        search_ms, reference_ms = (
            median(_times(engine, tool, questions)) for tool in ("search", "deep_reference")
        )
    if answer["total"] > answer["shown"]:
        raise RuntimeError(f"{answer['total']} pairs were found, more than the {MOST_LISTED} that are shown")
    listed = {
        frozenset((one["stronger"]["id"], one["weaker"]["id"])): str(one["kind"])
        for one in answer["contradictions"]
    }
    kinds = [listed.get(frozenset(ids)) for ids in zip(olds, news, strict=True)]
    return Outcome(
        pairs=pairs,
        kinds=kinds,
        ordinary=len(ordinary),
        elsewhere=len(listed) - sum(kind is not None for kind in kinds),
        looked_at=answer["pairsChecked"],
        seconds=seconds,
        search_ms=search_ms,
        reference_ms=reference_ms,
    )


def _tell(engine: InProcess, texts: Sequence[str], label: str) -> list[str]:
    """Remember each text for itself; the ids."""
    ids: list[str] = []
    for portion in track([texts[at : at + PORTION] for at in range(0, len(texts), PORTION)], label):
        items = [{"content": text, "force_create": True} for text in portion]
        results: list[Json] = engine.call("smart_ingest", {"items": items})["results"]
        ids += [str(result["nodeId"]) for result in results]
    return ids


def _times(engine: InProcess, tool: str, questions: Sequence[str]) -> Iterator[float]:
    for question in questions:
        started = time.perf_counter()
        engine.call(tool, {"query": question, "record": False})
        yield 1000 * (time.perf_counter() - started)


def _rows(name: str, one: Outcome) -> Iterator[dict[str, Cell]]:
    for relation in (*PLANTED, *CONTROLS):
        kinds = [kind for pair, kind in zip(one.pairs, one.kinds, strict=True) if pair.relation == relation]
        listed = [kind for kind in kinds if kind is not None]
        yield {
            "set": name,
            "relation": relation,
            "should be listed": "yes" if relation in PLANTED else "no",
            "pairs": len(kinds),
            "listed": len(listed),
            "share": len(listed) / max(1, len(kinds)),
            "kinds": ", ".join(f"{listed.count(kind)} {kind}" for kind in sorted(set(listed))) or None,
        }


def _chart(outcomes: Mapping[str, Outcome]) -> str:
    relations = (*PLANTED, *CONTROLS)
    return bars(
        "Share of the pairs that are listed as contradictions (the first three should be)",
        [relation.replace("_", " ") for relation in relations],
        {name: [one.share((relation,)) for relation in relations] for name, one in outcomes.items()},
    )


def _summary(name: str, one: Outcome) -> dict[str, Cell]:
    return {
        "set": name,
        "found": one.share(PLANTED),
        "false alarms among controls": one.share(CONTROLS),
        "elsewhere per 1,000 memories": _elsewhere(one),
        "pairs looked at": one.looked_at,
        "contradictions s": one.seconds,
        "search ms": one.search_ms,
        "deep_reference ms": one.reference_ms,
    }


def _elsewhere(one: Outcome) -> float:
    return 1000 * one.elsewhere / (one.ordinary + 2 * len(one.pairs))


def _targets(name: str, one: Outcome) -> Iterator[Target]:
    yield Target(name=f"{name}: planted found", value=one.share(PLANTED), limit=FOUND, at_least=True)
    alarms = one.share(CONTROLS)
    yield Target(name=f"{name}: controls listed", value=alarms, limit=FALSE_ALARMS, at_least=False)
    others = _elsewhere(one) / 1000
    yield Target(
        name=f"{name}: listed elsewhere per memory", value=others, limit=FALSE_ALARMS, at_least=False
    )
    ratio = one.reference_ms / one.search_ms
    yield Target(name=f"{name}: deep_reference ÷ search", value=ratio, limit=SLOWER, at_least=False)


if __name__ == "__main__":
    main()

"""The whole benchmark: every pair through `smart_ingest`, and what became of it."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import Json
from benchmarks.engine import InProcess, decisions_in
from benchmarks.gate.after import TITLE, after_rows, after_targets, ask_after
from benchmarks.gate.pairs import CONTRADICTED, MEMORY_LIKE, REPLACED, RESTATED, SETS, Pair, load
from benchmarks.plot import bars
from benchmarks.progress import say, track
from benchmarks.quality.corpus import Missing
from benchmarks.report import Cell, Report, Target

MOST = 500
PORTION = 100
DECISIONS = ("create", "merge", "supersede", "update", "reinforce")
KEPT = frozenset({"reinforce", "update"})
"""What a restatement should become: no record of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A pair with what the gate made of its new text, and the conflict it saw, if any."""

    pair: Pair
    decision: str
    conflict: str | None


def run(*, data: Path, only: Sequence[str] = SETS, most: int = MOST) -> Report:
    """Judge the sets asked for. What is missing is skipped, and the report says so."""
    judged: dict[str, list[Judged]] = {}
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="vestige-gate-") as folder, InProcess(Path(folder)) as engine:
        for origin in (name for name in SETS if name in only):
            try:
                pairs = load(origin, data, most)
            except Missing as missing:
                skipped[origin] = str(missing)
                say(f"{origin} is skipped: {missing}")
                continue
            judged[origin] = list(_judge(engine, pairs))
        model = engine.embedder.signature.name
    after = ask_after({origin: [case.pair for case in cases] for origin, cases in judged.items()})
    return Report(
        benchmark="gate",
        settings={"model": model, "pairs of a kind, at most": most or "all"},
        tables=dict(_tables(judged)) | ({TITLE: after_rows(after)} if after else {}),
        targets=[*_targets(judged), *after_targets(after)],
        notes=NOTES,
        skipped=skipped,
        plots={"decisions": _chart(judged)} if judged else {},
    )


NOTES = (
    "Each pair has a scope of its own: the old text is told to `smart_ingest`, then the new one, and the "
    "answer is what counts. `ours` was written beside the code (ids o…) or by another author for tuning "
    "(f…), `blind` by somebody who had not seen the code, before the gate was tuned; a few old texts occur "
    "in both by chance. `conflict seen`: the answer names a conflict that is more than one other value which "
    "may stand beside the old one (`slot`).",
)


def _judge(engine: InProcess, pairs: Sequence[Pair]) -> Iterator[Judged]:
    portions = [pairs[at : at + PORTION] for at in range(0, len(pairs), PORTION)]
    told = 0
    for portion in track(portions, f"{pairs[0].origin}, portions of {PORTION}"):
        scopes = [f"/pair/{portion[0].origin}-{told + at}" for at in range(len(portion))]
        told += len(portion)
        _tell(engine, [pair.old for pair in portion], scopes)
        answers = _tell(engine, [pair.new for pair in portion], scopes)
        for pair, answer in zip(portion, answers, strict=True):
            yield Judged(pair=pair, decision=answer["decision"], conflict=answer.get("conflict"))


def _tell(engine: InProcess, texts: Sequence[str], scopes: Sequence[str]) -> list[Json]:
    items = [{"content": text, "scope": scope} for text, scope in zip(texts, scopes, strict=True)]
    answer = engine.call("smart_ingest", {"items": items})
    decisions_in(answer)  # refuses what was stored without a vector
    results: list[Json] = answer["results"]
    return results


def _tables(judged: dict[str, list[Judged]]) -> Iterator[tuple[str, list[dict[str, Cell]]]]:
    for origin, cases in judged.items():
        rows: list[dict[str, Cell]] = []
        for relation in dict.fromkeys(case.pair.relation for case in cases):
            of_kind = [case for case in cases if case.pair.relation == relation]
            tally = Counter(case.decision for case in of_kind)
            rows.append(
                {
                    "relation": relation,
                    "pairs": len(of_kind),
                    **{decision: tally[decision] for decision in DECISIONS},
                    "conflict seen": sum(_seen(case) for case in of_kind),
                }
            )
        yield f"{origin}: what became of the new text", rows
    yield "In short", [summary(origin, cases) for origin, cases in [*judged.items(), (ALL, _pooled(judged))]]


def summary(origin: str, cases: Sequence[Judged]) -> dict[str, Cell]:
    """The shares the targets are about; None where a set has no such pairs."""
    memories = origin in MEMORY_LIKE
    superseded = [case for case in cases if case.decision == "supersede"]
    replaced = [case for case in cases if case.pair.relation in REPLACED]
    contradicted = [case for case in cases if case.pair.relation in CONTRADICTED]
    others = [case for case in cases if case.pair.relation not in CONTRADICTED | REPLACED]
    return {
        "set": origin,
        "restated: reinforce or update": _share(
            [case.decision in KEPT for case in cases if case.pair.relation in RESTATED]
        ),
        "identical: reinforce": _share(
            [case.decision == "reinforce" for case in cases if case.pair.relation == "duplicate"]
        ),
        "contradicted: reinforce": _share([case.decision == "reinforce" for case in contradicted]),
        "supersede, precision": _share([case.pair.relation in REPLACED for case in superseded])
        if memories
        else None,
        "supersede, recall": _share([case.decision == "supersede" for case in replaced])
        if memories
        else None,
        "contradicted: conflict seen": _share([_seen(case) for case in contradicted]),
        "others: conflict seen": _share([_seen(case) for case in others]),
    }


def _seen(case: Judged) -> bool:
    return case.conflict not in (None, "slot")


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


ALL = "all"
WANTED: dict[str, tuple[tuple[str, float, bool], ...]] = {
    ALL: (
        ("contradicted: reinforce", 0.02, False),
        ("restated: reinforce or update", 0.6, True),
        ("identical: reinforce", 1.0, True),
        ("contradicted: conflict seen", 0.6, True),
        ("others: conflict seen", 0.05, False),
    ),
    "blind": (("supersede, precision", 0.9, True), ("supersede, recall", 0.7, True)),
}
"""What must hold, of all pairs together and of those written without sight of the code; True: at least."""


def _pooled(judged: dict[str, list[Judged]]) -> list[Judged]:
    return [case for cases in judged.values() for case in cases]


def _targets(judged: dict[str, list[Judged]]) -> Iterator[Target]:
    for origin, wanted in WANTED.items():
        shares = summary(origin, _pooled(judged) if origin == ALL else judged.get(origin, []))
        for name, limit, at_least in wanted:
            value = shares[name]
            if isinstance(value, float):
                yield Target(name=f"{origin}: {name}", value=value, limit=limit, at_least=at_least)


def _chart(judged: dict[str, list[Judged]]) -> str:
    """The shares of what became of the memory-like pairs, by what they are."""
    cases = [case for origin in MEMORY_LIKE for case in judged.get(origin, ())] or [
        case for found in judged.values() for case in found
    ]
    relations = list(dict.fromkeys(case.pair.relation for case in cases))
    return bars(
        "What became of the new text",
        [relation.replace("_", " ") for relation in relations],
        {
            decision: [
                _share([case.decision == decision for case in cases if case.pair.relation == relation])
                for relation in relations
            ]
            for decision in DECISIONS
        },
    )

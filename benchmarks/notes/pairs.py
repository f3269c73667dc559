"""What becomes of the second note of a pair: through `smart_ingest`, and by two rules of thumb."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.engine import InProcess, decisions_in
from benchmarks.notes.cases import NotePair
from benchmarks.notes.shares import in_words, share
from benchmarks.progress import track
from benchmarks.report import Cell, Target

CLOSE, SAME = 0.75, 0.88
"""The cosines from which the rules of thumb take two notes for notes about one thing, and for the same."""

STANDING = frozenset({"other", "elaborates", "unclear"})
"""Labels whose first note still stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOutcome:
    """A pair, and what one way of deciding made of its second note."""

    pair: NotePair
    decision: str
    contradicts: bool = False


def by_gate(engine: InProcess, pairs: Sequence[NotePair]) -> Iterator[PairOutcome]:
    """Both notes through `smart_ingest`, each pair in a scope of its own."""
    for pair in track(pairs, "pairs"):
        answers = []
        for text in (pair.first, pair.second):
            answer = engine.call("smart_ingest", {"content": text, "scope": f"/pair/{pair.id}"})
            decisions_in(answer)  # refuses what was stored without a vector
            answers.append(answer)
        decided = answers[1]
        conflict = decided.get("conflict")
        yield PairOutcome(pair=pair, decision=decided["decision"], contradicts=conflict not in (None, "slot"))


def by_cosine(
    engine: InProcess, pairs: Sequence[NotePair], decide: Callable[[float], str]
) -> Iterator[PairOutcome]:
    first = engine.embedder.embed_documents([pair.first for pair in pairs])
    second = engine.embedder.embed_documents([pair.second for pair in pairs])
    cosines = np.einsum("ij,ij->i", np.asarray(first), np.asarray(second))
    for pair, cosine in zip(pairs, cosines.tolist(), strict=True):
        yield PairOutcome(pair=pair, decision=decide(cosine))


def newest_wins(cosine: float) -> str:
    return "supersede" if cosine >= CLOSE else "create"


def cosine_bands(cosine: float) -> str:
    return "reinforce" if cosine >= SAME else newest_wins(cosine)


def summary(way: str, outcomes: Sequence[PairOutcome]) -> dict[str, Cell]:
    """The figures of one way of deciding, with their intervals."""
    return {"way": way, **{name: in_words(hits) for name, hits in figures(outcomes).items()}}


def figures(outcomes: Sequence[PairOutcome]) -> dict[str, list[bool]]:
    by_label = {
        label: [one.decision for one in outcomes if one.pair.label == label] for label in ("corrects", "same")
    }
    standing = [one.decision for one in outcomes if one.pair.label in STANDING]
    return {
        "corrections superseded": [one == "supersede" for one in by_label["corrects"]],
        "corrections swallowed": [one in ("reinforce", "update") for one in by_label["corrects"]],
        "standing facts superseded": [one == "supersede" for one in standing],
        "paraphrases reinforced": [one in ("reinforce", "update") for one in by_label["same"]],
        "conflicts kept and marked": [
            one.decision == "create" and one.contradicts for one in outcomes if one.pair.label == "unclear"
        ],
    }


def by_kind(outcomes: Sequence[PairOutcome]) -> list[dict[str, Cell]]:
    """What became of the pairs of each kind."""
    kinds = sorted({(one.pair.label, one.pair.kind) for one in outcomes})
    rows: list[dict[str, Cell]] = []
    for label, kind in kinds:
        found = [one for one in outcomes if (one.pair.label, one.pair.kind) == (label, kind)]
        tally = {
            name: sum(one.decision == name for one in found)
            for name in ("create", "merge", "supersede", "update", "reinforce")
        }
        marked = sum(one.contradicts and one.decision == "create" for one in found)
        rows.append({"label": label, "kind": kind, "pairs": len(found), **tally, "marked": marked})
    return rows


WANTED = (
    ("corrections superseded", 0.80, True),
    ("corrections swallowed", 0.0, False),
    ("standing facts superseded", 1 / 60, False),
)


def targets(half: str, outcomes: Sequence[PairOutcome]) -> Iterator[Target]:
    found = figures(outcomes)
    for name, limit, at_least in WANTED:
        value = share(found[name])
        if value is not None:
            yield Target(name=f"{half}: {name}", value=value, limit=limit, at_least=at_least)

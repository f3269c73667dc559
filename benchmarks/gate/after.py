"""What a search finds after a text was corrected: the new one first, the old one at its time."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.engine import InProcess
from benchmarks.gate.pairs import MEMORY_LIKE, REPLACED, Pair
from benchmarks.progress import track
from benchmarks.report import Cell, Target
from vestige.app.app import Clock, system_clock
from vestige.cognition.text.analyser import query_terms

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
BETWEEN, LATER, NOW = (FIRST + timedelta(days=days) for days in (10, 20, 30))
TITLE = "After the new text, searched for by the words that both have"


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """Whether the new text came first, and the old one alone at its own time by either clock."""

    pair: Pair
    new_first: bool
    old_then: bool
    old_known: bool
    both_kept: bool


def ask_after(judged: dict[str, Sequence[Pair]]) -> dict[str, list[After]]:
    """Every pair whose new text replaces the old, told ten days apart, then asked about."""
    hand = [FIRST]
    clock = system_clock()
    moved = Clock(
        now=lambda: hand[0], monotonic=clock.monotonic, sleep=clock.sleep, new_id=clock.new_id, rng=clock.rng
    )
    made: dict[str, list[After]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="vestige-after-") as folder,
        InProcess(Path(folder), clock=moved) as engine,
    ):
        for origin in (name for name in MEMORY_LIKE if name in judged):
            pairs = [pair for pair in judged[origin] if pair.relation in REPLACED]
            scopes = [f"/after/{origin}-{at}" for at in range(len(pairs))]
            for moment, field in ((FIRST, "old"), (LATER, "new")):
                hand[0] = moment
                for at in range(0, len(pairs), 100):
                    items = [
                        {"content": getattr(pair, field), "scope": scope}
                        for pair, scope in zip(pairs[at : at + 100], scopes[at : at + 100], strict=True)
                    ]
                    engine.call("smart_ingest", {"items": items})
            hand[0] = NOW
            asked = track(list(zip(pairs, scopes, strict=True)), f"{origin}, asked after the new text")
            made[origin] = [_asked(engine, pair, scope) for pair, scope in asked]
    return made


def _asked(engine: InProcess, pair: Pair, scope: str) -> After:
    query = " ".join(_shared(pair)) or pair.new
    now = _found(engine, query, scope)
    then = _found(engine, query, scope, as_of=BETWEEN.isoformat())
    known = _found(engine, query, scope, known_at=BETWEEN.isoformat())
    everything = engine.call("memory", {"action": "list", "scope": scope, "detail_level": "full"})
    texts = [text for one in everything["results"] for text in (one["content"], *one.get("phrasings", ()))]
    return After(
        pair=pair,
        new_first=now[:1] == [pair.new],
        old_then=then == [pair.old],
        old_known=known == [pair.old],
        both_kept=pair.old in texts and pair.new in texts,
    )


def _shared(pair: Pair) -> Iterator[str]:
    """The words of the old text that the new one has too, as a person would ask for the thing."""
    new = set(query_terms(pair.new))
    return (word for word in pair.old.split() if set(query_terms(word)) & new)


def _found(engine: InProcess, query: str, scope: str, **more: str) -> list[str]:
    asked = {"query": query, "scope": scope, "min_confidence": 0, "record": False, **more}
    return [hit["content"] for hit in engine.call("search", asked)["results"]]


def after_rows(made: dict[str, list[After]]) -> list[dict[str, Cell]]:
    """The shares, by set."""
    return [
        {
            "set": origin,
            "pairs": len(cases),
            "now: new first": _share([case.new_first for case in cases]),
            "as of before: the old alone": _share([case.old_then for case in cases]),
            "known before: the old alone": _share([case.old_known for case in cases]),
            "both texts kept": _share([case.both_kept for case in cases]),
        }
        for origin, cases in made.items()
    ]


def after_targets(made: dict[str, list[After]]) -> Iterator[Target]:
    """The new above the old in 95 of 100 cases, and nothing lost."""
    for row in after_rows(made):
        for name, limit in (
            ("now: new first", 0.95),
            ("known before: the old alone", 1.0),
            ("both texts kept", 1.0),
        ):
            value = row[name]
            if isinstance(value, float):
                yield Target(name=f"{row['set']}: {name}", value=value, limit=limit, at_least=True)


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))

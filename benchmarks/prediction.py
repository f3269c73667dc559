"""How often what is needed next is among the five memories that `predict` names.

    python -m benchmarks.prediction [--seeds 5] [--days 60] [--out FILE]

A made-up user works for some weeks under a virtual clock. He has habits: a round of three notes every
morning, notes of a topic that he needs one after the other, favourites within a topic; and a share of his
searches has no pattern at all. Before every search `predict` is asked, then he searches for the note; in half
of the sessions he tells the topic with both. The same five places are given to chance, to what he
needed last, and to what he needs most often; none of them names what he found already in the session. The
first third of the days is for learning and not counted.
"""

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import mean, stdev

from benchmarks.client import Json
from benchmarks.plot import bars
from benchmarks.progress import track
from benchmarks.report import Cell, Report, Target, publish
from vestige.app.app import App, Clock, open_app
from vestige.core.caller import Invocation

SEEDS, DAYS = 5, 60
TOPICS, NOTES = 12, 15
TOP = 5
SESSIONS = (9, 11, 14, 16)
"""The hours at which he works; the first begins with the morning's round."""
PATTERNLESS = 0.25
WAYS = ("predict", "most frequent", "most recent", "chance")
KINDS = ("morning round", "sequence", "favourite", "no pattern")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
SYLLABLES = (
    "ba be bo da de do fa fe ga go ka ke ko la le lo ma me mo na ne no pa pe ra re ro sa se so ta".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A note that is needed, why, and the topic at hand if the user tells it."""

    note: int
    kind: str
    hour: float
    topic: str | None


@dataclass(slots=True, kw_only=True)
class Tally:
    """Who named what was needed, of how many; by kind of need."""

    asked: Counter[str] = field(default_factory=Counter)
    hits: Counter[tuple[str, str]] = field(default_factory=Counter)

    def rate(self, way: str, kind: str | None = None) -> float:
        """The share of the needs that this way named."""
        kinds = KINDS if kind is None else (kind,)
        return sum(self.hits[way, one] for one in kinds) / max(1, sum(self.asked[one] for one in kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One user's weeks, and what `predict` says of itself at their end."""

    tally: Tally
    confidence: Sequence[tuple[float, bool]]
    told_accuracy: float


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self, seed: int) -> None:
        self.now = BEGIN
        self.numbers = count(1)
        self.seed = seed

    def clock(self) -> Clock:
        return Clock(
            now=lambda: self.now,
            monotonic=lambda: self.now.timestamp(),
            sleep=lambda seconds: None,
            new_id=lambda: f"01890000-0000-7000-8000-{next(self.numbers):012x}",
            rng=random.Random(self.seed),
        )


class User:
    """A made-up user: his notes, and what he needs day by day."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        words = self._words()
        self.topics = [next(words) for _ in range(TOPICS)]
        self.names = [(next(words), next(words)) for _ in range(TOPICS * NOTES)]
        self.round = self.rng.sample(range(len(self.names)), 3)
        self.sequences = {topic: self.rng.sample(self._of(topic), 4) for topic in range(TOPICS)}

    def content(self, note: int) -> str:
        """What a note says."""
        one, other = self.names[note]
        return f"The {one} of {self.topics[note // NOTES]} depends on {other}."

    def query(self, note: int) -> str:
        """How he asks for it."""
        return " ".join(self.names[note])

    def day(self) -> Iterator[list[Need]]:
        """The sessions of a day."""
        for at in SESSIONS:
            topic = self.rng.randrange(TOPICS // 2) if self.rng.random() < 0.7 else self.rng.randrange(TOPICS)
            told = self.topics[topic] if self.rng.random() < 0.5 else None
            hour = at + self.rng.random() / 4
            needs = [("morning round", note) for note in self.round] if at == SESSIONS[0] else []
            if self.rng.random() < 0.6:
                needs += [("sequence", note) for note in self.sequences[topic]]
            favourites = self._of(topic)
            needs += [
                ("favourite", favourites[min(len(favourites) - 1, int(self.rng.expovariate(0.5)))])
                for _ in range(2)
            ]
            yield [
                self._need(kind, note, hour + 0.05 * place, told) for place, (kind, note) in enumerate(needs)
            ]

    def _need(self, kind: str, note: int, hour: float, told: str | None) -> Need:
        if self.rng.random() < PATTERNLESS:
            kind, note = "no pattern", self.rng.randrange(len(self.names))
        return Need(note=note, kind=kind, hour=hour, topic=told)

    def _of(self, topic: int) -> list[int]:
        return list(range(topic * NOTES, (topic + 1) * NOTES))

    def _words(self) -> Iterator[str]:
        seen: set[str] = set()
        while True:
            word = "".join(self.rng.choice(SYLLABLES) for _ in range(4))
            if word not in seen:
                seen.add(word)
                yield word


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description="Prediction.")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"users (default {SEEDS})")
    parser.add_argument("--days", type=int, default=DAYS, help=f"days of each (default {DAYS})")
    parser.add_argument("--out", type=Path, help="write the results here as JSON, Markdown and SVG")
    given = parser.parse_args()
    publish(run(seeds=given.seeds, days=given.days), given.out)


def run(*, seeds: int = SEEDS, days: int = DAYS) -> Report:
    """Let every user live his weeks."""
    outcomes = [_lived(seed, days) for seed in track(list(range(seeds)), "users")]
    rates = {way: [one.tally.rate(way) for one in outcomes] for way in WAYS}
    best = max(mean(rates[way]) for way in WAYS[1:])
    told = mean(one.told_accuracy for one in outcomes)
    return Report(
        benchmark="prediction",
        settings={"users": seeds, "days": days, "notes": TOPICS * NOTES, "named": TOP},
        tables={
            "Needed notes that were among the five": [_row(way, rates[way], outcomes) for way in WAYS],
            "What the confidence is worth": _calibration(outcomes),
        },
        targets=[
            Target(
                name="predict ÷ best of the others",
                value=mean(rates["predict"]) / best,
                limit=1.2,
                at_least=True,
            )
        ],
        notes=(
            "`±` is the standard deviation between users. A need without a pattern cannot be foreseen by "
            f"anything better than chance ({TOP / (TOPICS * NOTES):.3f}); {PATTERNLESS:.0%} of all are such. "
            "The user is made up, and the habits he has are those that the mechanism looks for: this shows "
            "that it learns them, not how regular people are.",
            f"`predict` itself told an accuracy of {told:.3f} at the end: the share of its last 100 "
            "predictions of which anything was shown within the hour.",
        ),
        plots={"hits": _chart(outcomes)},
    )


def _lived(seed: int, days: int) -> Outcome:
    user, time = User(seed), Time(seed)
    with (
        tempfile.TemporaryDirectory(prefix="vestige-prediction-") as folder,
        open_app(
            {"data_dir": folder, "embeddings.provider": "hashing", "sleep.enabled": False},
            environ={"HOME": folder},
            clock=time.clock(),
        ) as app,
    ):
        items = [{"content": user.content(note), "force_create": True} for note in range(len(user.names))]
        made: list[Json] = []
        for at in range(0, len(items), 50):
            made += _call(app, "smart_ingest", items=items[at : at + 50])["results"]
        app.settle()
        return _weeks(app, user, time, days, [str(one["nodeId"]) for one in made])


def _weeks(app: App, user: User, time: Time, days: int, ids: Sequence[str]) -> Outcome:
    tally, confidence = Tally(), []
    needed: list[str] = []
    for day in range(days):
        for session in user.day():
            found: set[str] = set()
            for need in session:
                time.now = BEGIN + timedelta(days=day, hours=need.hour)
                target = ids[need.note]
                context = {"current_topics": [need.topic]} if need.topic else {}
                predicted = _call(app, "predict", context=context, limit=TOP)["predictions"]
                named = {
                    "predict": [str(one["memoryId"]) for one in predicted],
                    **_others(user.rng, needed, [one for one in ids if one not in found], found),
                }
                if day >= days // 3 and target not in found:
                    tally.asked[need.kind] += 1
                    tally.hits.update((way, need.kind) for way in WAYS if target in named[way])
                    confidence += [(one["confidence"], one["memoryId"] == target) for one in predicted]
                _call(
                    app,
                    "search",
                    query=user.query(need.note),
                    context_topics=[need.topic] if need.topic else [],
                )
                app.settle()
                found.add(target)
                needed.append(target)
    told = float(_call(app, "predict").get("predictionAccuracy", 0.0))
    return Outcome(tally=tally, confidence=confidence, told_accuracy=told)


def _others(
    rng: random.Random, needed: Sequence[str], left: Sequence[str], found: set[str]
) -> Mapping[str, list[str]]:
    recent = [one for one in dict.fromkeys(reversed(needed)) if one not in found]
    frequent = [one for one, _ in Counter(needed).most_common() if one not in found]
    return {
        "most frequent": frequent[:TOP],
        "most recent": recent[:TOP],
        "chance": rng.sample(list(left), TOP),
    }


def _call(app: App, tool: str, **arguments: object) -> Json:
    return app.call_tool(Invocation(name=tool, arguments=arguments))


def _row(way: str, rates: Sequence[float], outcomes: Sequence[Outcome]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"way": way, "all": mean(rates), "±": stdev(rates) if len(rates) > 1 else 0.0}
    return row | {kind: mean(one.tally.rate(way, kind) for one in outcomes) for kind in KINDS}


def _calibration(outcomes: Sequence[Outcome]) -> list[dict[str, Cell]]:
    pairs = [pair for one in outcomes for pair in one.confidence]
    rows: list[dict[str, Cell]] = []
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        there = [hit for level, hit in pairs if low <= level < high]
        if there:
            rows.append(
                {"confidence": f"{low}–{min(high, 1.0)}", "named": len(there), "needed next": mean(there)}
            )
    return rows


def _chart(outcomes: Sequence[Outcome]) -> str:
    return bars(
        "Share of the needed notes that were among the five named",
        list(KINDS),
        {way: [mean(one.tally.rate(way, kind) for one in outcomes) for kind in KINDS] for way in WAYS},
    )


if __name__ == "__main__":
    main()

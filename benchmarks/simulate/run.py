"""Running the arms, and what is reported of them."""

import multiprocessing
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean

from benchmarks.bm25 import Bm25
from benchmarks.plot import bars, lines
from benchmarks.progress import say
from benchmarks.report import Cell, Report, Target
from benchmarks.simulate.embedding import Remembering, local_model
from benchmarks.simulate.life import SHOWN, Arm, Examination, Life, lived
from benchmarks.simulate.story import ATTRIBUTES, OVERVIEW, tell_story

FIRST = 11
"""The seed of the first story. Those before it were looked at while the weights were chosen."""
CHECK_EVERY_DAYS = 60
RESAMPLES = 2_000
SWITCHES = (
    "spreading", "importance", "emotion", "capture", "context", "competition", "reconsolidation",
    "prediction", "autopilot",
)  # fmt: skip
WHOLE = Arm(name="ours")
NO_DECAY = Arm(name="without decay", settings={"mechanisms.decay": False})
ABLATIONS = (
    *(Arm(name=f"without {name}", settings={f"mechanisms.{name}": False}) for name in SWITCHES),
    Arm(name="without testing effect", settings={"memory.record": False}),
    Arm(name="without sleep", sleeps=False),
    Arm(name="without gc", forgets=False),
)
MEASURES = ("precision@5", "current first", "old recall@5", "old recall@10", "pinned recall@10")
STATES = ("active", "dormant", "silent", "unavailable")

Scores = dict[str, dict[tuple[int, str], float]]
"""By measure, the value of each question of each seed on the last day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One arm with one seed."""

    arm: str
    seed: int
    examinations: tuple[Examination, ...]
    decisions: Mapping[str, int]
    baselines: Mapping[str, Mapping[str, Mapping[str, float]]]


def run(*, seeds: int, days: int, ablated: int, jobs: int) -> Report:
    """Live through every story with and without decay, and through the first ones in every arm."""
    arms = (WHOLE, NO_DECAY, *(ABLATIONS if ablated else ()))
    lives = [(FIRST + n, arm) for n in range(seeds) for arm in (arms if n < ablated else arms[:2])]
    with multiprocessing.get_context("spawn").Pool(min(jobs, len(lives))) as pool:
        outcomes = pool.map(_life, [(seed, arm, days) for seed, arm in lives], chunksize=1)
    by_arm = {arm.name: [one for one in outcomes if one.arm == arm.name] for arm in arms}
    return _report(by_arm, seeds=seeds, days=days, ablated=ablated)


def _life(task: tuple[int, Arm, int]) -> Outcome:
    seed, arm, days = task
    return live(seed, arm, days, _model())


@cache
def _model() -> Remembering:
    """One for each process: the arms of a story tell the same texts."""
    return local_model()


def live(seed: int, arm: Arm, days: int, embedder: Remembering) -> Outcome:
    """Live through one story in one arm. What is plotted is examined on the way, the others at the end."""
    story = tell_story(seed, days)
    examinations: list[Examination] = []
    with (
        tempfile.TemporaryDirectory(prefix="vestige-simulate-") as folder,
        lived(Path(folder), story, arm, seed, embedder) as life,
    ):
        for day in range(days):
            life.live(day)
            plotted = arm.name in (WHOLE.name, NO_DECAY.name) and (day + 1) % CHECK_EVERY_DAYS == 0
            if plotted or day == days - 1:
                examinations.append(life.examine(day + 1))
        baselines = _baselines(life, story.busy, story.quiet, days) if arm.name == WHOLE.name else {}
    say(f"seed {seed}, {arm.name}: {len(life.truth.texts):,} told, {dict(life.decisions)}")
    return Outcome(
        arm=arm.name,
        seed=seed,
        examinations=tuple(examinations),
        decisions=dict(life.decisions),
        baselines=baselines,
    )


def _baselines(
    life: Life, busy: Sequence[str], quiet: Sequence[str], days: int
) -> dict[str, dict[str, dict[str, float]]]:
    """No memory, chance and BM25 over everything that was ever told, on the same questions."""
    texts = life.texts()
    keys = list(texts)
    index = Bm25(list(texts.values()))
    chance = random.Random(1)
    rankers: dict[str, Callable[[str], list[str]]] = {
        "no memory": lambda question: [],
        "random": lambda question: chance.sample(keys, SHOWN),
        "BM25": lambda question: [keys[at] for at in index.top(question, SHOWN)],
    }
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, ranker in rankers.items():
        scores: dict[str, dict[str, float]] = {}
        for service in busy:
            holding = life.truth.holding(service, days)
            for text in OVERVIEW:
                first = ranker(text.format(s=service))[:5]
                scores[text.format(s=service)] = {"precision@5": sum(one in holding for one in first) / 5}
            for one in ATTRIBUTES:
                question = one.asked[0].format(s=service)
                answered = life.judge(question, ranker(question), (service, one.name))
                scores[question] = dict(answered.scores)
        for service in quiet:
            for one in ATTRIBUTES:
                question = one.asked[-1].format(s=service)
                right = life.truth.wordings.get((service, one.name), set())
                ranking = ranker(question)
                scores[question] = {
                    f"old recall@{k}": float(not right.isdisjoint(ranking[:k])) for k in (5, 10)
                }
        found[name] = scores
    return found


def _final(outcomes: Sequence[Outcome]) -> Scores:
    scores: Scores = {measure: {} for measure in MEASURES}
    for one in outcomes:
        for answer in one.examinations[-1].answers:
            for measure, value in answer.scores.items():
                scores[measure][one.seed, answer.question] = value
    return scores


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean, by resampling."""
    if not differences:
        return 0.0, 0.0
    chance = random.Random(7)
    means = sorted(mean(chance.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def compared(ours: Scores, others: Scores, measure: str) -> list[float]:
    """Ours less theirs, for each question that both were asked."""
    mine, theirs = ours[measure], others[measure]
    return [mine[key] - theirs[key] for key in sorted(mine.keys() & theirs.keys())]


def _report(by_arm: Mapping[str, Sequence[Outcome]], *, seeds: int, days: int, ablated: int) -> Report:
    ours, plain = _final(by_arm[WHOLE.name]), _final(by_arm[NO_DECAY.name])
    gain = compared(ours, plain, "precision@5")
    loss = compared(plain, ours, "old recall@10")
    states = _states(by_arm[WHOLE.name])
    return Report(
        benchmark="simulate",
        settings={"seeds": seeds, "days": days, "seeds of the other ablations": ablated},
        tables={
            "On the last day": list(_arms(by_arm)),
            "What each mechanism adds": list(_ablations(by_arm, ours)),
            "States on the last day": [
                {
                    "state": name,
                    **{
                        f"seed {one.seed}": one.examinations[-1].states.get(name, 0)
                        for one in by_arm[WHOLE.name]
                    },
                }
                for name in STATES
            ],
        },
        targets=[
            Target(
                name="decay: points of precision@5 on current facts",
                value=100 * mean(gain),
                limit=2.0,
                at_least=True,
            ),
            Target(
                name="decay: points of old recall@10 lost", value=100 * mean(loss), limit=1.0, at_least=False
            ),
            Target(
                name="states that occur in every seed", value=float(len(states)), limit=4.0, at_least=True
            ),
            Target(
                name="current ranks above stale, beside BM25",
                value=mean(ours["current first"].values()),
                limit=_baseline(by_arm[WHOLE.name], "BM25", "current first"),
                at_least=True,
            ),
            Target(
                name="pinned memories found",
                value=mean(ours["pinned recall@10"].values()),
                limit=1.0,
                at_least=True,
            ),
        ],
        notes=NOTES,
        plots={"year": _year(by_arm), "mechanisms": _chart(by_arm, ours)},
    )


NOTES = (
    "precision@5: of the first five answers to questions about services in use, the share that still holds; "
    "current first: where an older statement about the same thing stands, the present one ranks above it; "
    "old recall: memories of the first 60 days that were never asked for since are found when somebody asks; "
    "pinned: the same of those that were pinned. Intervals are over questions and seeds, paired. Every arm "
    "lives through the same stories with its own feedback. BM25 searches everything that was ever told. The "
    "weight of decay was chosen on seeds 1 to 5, which are not among these.",
)


def _baseline(outcomes: Sequence[Outcome], name: str, measure: str) -> float:
    """What a baseline reaches; 0 for what it was not asked."""
    answers = [scores for one in outcomes for scores in one.baselines.get(name, {}).values()]
    return mean([scores[measure] for scores in answers if measure in scores] or [0.0])


def _states(outcomes: Sequence[Outcome]) -> set[str]:
    return {
        name
        for name in STATES
        if all(any(e.states.get(name, 0) for e in one.examinations) for one in outcomes)
    }


def _arms(by_arm: Mapping[str, Sequence[Outcome]]) -> Iterator[dict[str, Cell]]:
    whole = by_arm[WHOLE.name]
    for name in ("no memory", "random", "BM25"):
        yield {"arm": name, **{measure: _baseline(whole, name, measure) for measure in MEASURES}}
    for name, outcomes in by_arm.items():
        final = _final(outcomes)
        yield {"arm": name, **{m: mean(final[m].values()) if final[m] else None for m in MEASURES}}


def _ablations(by_arm: Mapping[str, Sequence[Outcome]], ours: Scores) -> Iterator[dict[str, Cell]]:
    for name, outcomes in by_arm.items():
        if name == WHOLE.name:
            continue
        row: dict[str, Cell] = {"mechanism": name.removeprefix("without ")}
        for measure in ("precision@5", "current first", "old recall@10"):
            differences = compared(ours, _final(outcomes), measure)
            low, high = interval(differences)
            row[measure] = f"{100 * mean(differences):+.2f} ({100 * low:+.2f} … {100 * high:+.2f})"
        yield row


def _year(by_arm: Mapping[str, Sequence[Outcome]]) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    for name in (WHOLE.name, NO_DECAY.name):
        for measure in ("precision@5", "old recall@10"):
            days = sorted({e.day for one in by_arm[name] for e in one.examinations})
            series[f"{name}: {measure}"] = [(day, _on(by_arm[name], day, measure)) for day in days]
    return lines("A year, with and without decay", series, across="day", up="share", right=365)


def _on(outcomes: Sequence[Outcome], day: int, measure: str) -> float:
    return mean(
        answer.scores[measure]
        for one in outcomes
        for examination in one.examinations
        if examination.day == day
        for answer in examination.answers
        if measure in answer.scores
    )


def _chart(by_arm: Mapping[str, Sequence[Outcome]], ours: Scores) -> str:
    names = [name for name in by_arm if name != WHOLE.name]
    series = {
        measure: [max(0.0, 100 * mean(compared(ours, _final(by_arm[name]), measure))) for name in names]
        for measure in ("precision@5", "current first")
    }
    return bars(
        "Points that each mechanism adds (losses are in the table)",
        [n.removeprefix("without ") for n in names],
        series,
    )

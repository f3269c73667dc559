"""Rankings: what an arm answered to each question, and what that is worth."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from benchmarks.quality import metrics
from benchmarks.quality.corpus import Question
from benchmarks.report import Cell

TOP = 10
DEEP = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An answer: the keys found with a limit of 10, and with a limit of 100."""

    question: Question
    top: Sequence[str]
    deep: Sequence[str]
    confidence: float | None = None
    abstained: bool | None = None


Score = Callable[[Ranked], float]
Scores = Mapping[str, Score]
Outcomes = Mapping[str, Sequence[Ranked]]
"""What each arm answered. The random arm answers every question several times."""


def _at(measure: Callable[[metrics.Keys, metrics.Gold, int], float], k: int) -> Score:
    return lambda ranked: measure(ranked.top, ranked.question.gold, k)


def _mrr(ranked: Ranked) -> float:
    return metrics.reciprocal_rank(ranked.deep, ranked.question.gold)


RECALL: Scores = {
    "frac@5": _at(metrics.frac, 5),
    "frac@10": _at(metrics.frac, 10),
    "any@5": _at(metrics.any_found, 5),
    "any@10": _at(metrics.any_found, 10),
    "all@5": _at(metrics.all_found, 5),
    "all@10": _at(metrics.all_found, 10),
    "MRR": _mrr,
}
HITS: Scores = {
    "hit@1": _at(metrics.any_found, 1),
    "hit@5": _at(metrics.any_found, 5),
    "hit@10": _at(metrics.any_found, 10),
    "MRR": _mrr,
}
FUNCTION: Scores = {"MRR": _mrr, "hit@10": _at(metrics.any_found, 10)}
GRADED: Scores = {"nDCG@10": _at(metrics.ndcg, 10)}
SESSIONS: Scores = {"recall@5": _at(metrics.frac, 5), "MRR": _mrr}


def by_thread(outcomes: Iterable[Ranked], threads: Mapping[str, str]) -> list[Ranked]:
    """The same answers as rankings of threads: a thread stands where its best part stood. Keys of threads
    stay as they are."""
    made = []
    for ranked in outcomes:
        question = ranked.question
        found = list(dict.fromkeys(threads.get(key, key) for key in ranked.deep))
        gold = {threads.get(key, key): grade for key, grade in question.gold.items()}
        made.append(replace(ranked, question=replace(question, gold=gold), top=found[:TOP], deep=found))
    return made


def mean(outcomes: Iterable[Ranked], score: Score) -> float:
    """The mean score over the questions."""
    return fmean(score(ranked) for ranked in outcomes)


def rows(outcomes: Outcomes, scores: Scores, *, categories: Sequence[str] = ()) -> list[dict[str, Cell]]:
    """A line per arm, or per arm and category."""
    if not categories:
        return [{"arm": arm, **_means(answered, scores)} for arm, answered in outcomes.items()]
    made: list[dict[str, Cell]] = []
    for category in categories:
        for arm, answered in outcomes.items():
            if of := [one for one in answered if one.question.category == category]:
                made.append({"category": category, "arm": arm, "questions": len(of), **_means(of, scores)})
    return made


def _means(answered: Sequence[Ranked], scores: Scores) -> dict[str, Cell]:
    return {name: mean(answered, score) for name, score in scores.items()}


def strongest(outcomes: Outcomes, score: Score, prefix: str) -> dict[str, Sequence[Ranked]]:
    """The outcomes with only the best of the arms whose names begin with `prefix`."""
    rivals = {name: mean(answered, score) for name, answered in outcomes.items() if name.startswith(prefix)}
    best = max(rivals, key=lambda name: rivals[name], default=None)
    return {name: answered for name, answered in outcomes.items() if name not in rivals or name == best}

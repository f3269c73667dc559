"""Habits: when a memory was shown, for which words, and together with which others.

Pure functions: a habit and a search in, the next habit out. Predictions are made from habits.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any

from vestige.cognition.text.analyser import query_words
from vestige.core.lazy_dataclass import dataclass

SESSION = timedelta(minutes=60)
"""Searches at most this far apart belong to one session. Within it, a memory and a pair count once."""
FIRST_WEIGHT = 0.5
STEP = 0.1
"""The weight of two memories met together once, and the gain of every further session, up to 1."""
DAILY_FADE = 0.99
"""The share of a weight left after a day: a weekly habit still grows, a dropped one is gone in a year."""
LEAST_CREDIT = 0.2  # A pair with less credit, such as the second and the third hit, was met by chance.
MOST_TIES = 50
MOST_TERMS = 20
MOST_ASKED_TERMS = 16
LONGEST_WORD = 24
"""Longer words of a query are not kept: they are keys, hashes and addresses."""
INTEREST_HALF_LIFE = timedelta(days=7)
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """The strength of the tie between two memories: what was left of it when the last session with both
    began, at `at`, and their credit for that session."""

    base: float
    credit: float
    at: datetime

    def weight_at(self, now: datetime) -> float:
        days = max(0.0, (now - self.at).total_seconds()) / DAY_SECONDS
        step = STEP if self.base else FIRST_WEIGHT
        return min(1.0, self.base + step * self.credit) * math.pow(DAILY_FADE, days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """The history of how a memory was shown.

    `ties` are other memories by id. `hours` (of the day, UTC), `terms` and `shown` add up its credits: 1 a
    session as the first hit, 1/2 as the second, and so on. The last session with it began at `last` and gave
    `credit`.
    """

    ties: Mapping[str, Tie]
    hours: Mapping[int, float]
    terms: Mapping[str, float]
    shown: float = 0.0
    last: datetime | None = None
    credit: float = 0.0


NO_HABIT = Habit(ties={}, hours={}, terms={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A recorded search: its number and time, its content terms with the words they come from, and its
    hits."""

    number: int = 0
    at: datetime
    terms: Mapping[str, str]
    shown: tuple[str, ...]

    @property
    def credits(self) -> dict[str, float]:
        """The credit of each hit by rank: the first is likely what was looked for."""
        return {name: 1.0 / place for place, name in enumerate(self.shown, 1)}


def asked_terms(texts: Iterable[str]) -> dict[str, str]:
    """The terms of a query, each with its word, without stop words and non-words."""
    found = (
        (term, text[word.start : word.end].casefold())
        for text in texts
        for word in query_words(text)
        if not word.stop and word.end - word.start <= LONGEST_WORD
        for term in word.terms
    )
    return dict(islice(dict(found).items(), MOST_ASKED_TERMS))


def after_search(
    habits: Mapping[str, Habit], search: Search, before: dict[str, float], topics: Mapping[str, Iterable[str]]
) -> dict[str, Habit]:
    """The habits, after a search, of its hits and of the hits of the search before it (with its credits).
    `topics` are further terms of the hits, such as those of their tags."""
    credits = search.credits
    learned: dict[str, Habit] = {}
    for name in before | credits:
        others = {
            other: credit
            for other in before | credits
            if (credit := _shared(name, other, credits, before)) >= LEAST_CREDIT
        }
        learned[name] = _tied(habits.get(name, NO_HABIT), others, search.at)
        if name in credits:
            terms = (*search.terms, *topics.get(name, ()))
            learned[name] = _shown(learned[name], credits[name], search.at, terms)
    return learned


def _shared(one: str, other: str, now: Mapping[str, float], before: Mapping[str, float]) -> float:
    """The credit of a pair: for being shown together, or one after the other."""
    if one == other:
        return 0.0
    after = now.get(one, 0.0) * before.get(other, 0.0), before.get(one, 0.0) * now.get(other, 0.0)
    return max(now.get(one, 0.0) * now.get(other, 0.0), *after)


def strengthened(
    before: Mapping[str, Habit], after: Mapping[str, Habit], at: datetime
) -> dict[tuple[str, str], float]:
    """The pairs whose tie has changed, each with its weight."""
    return {
        (min(name, other), max(name, other)): tie.weight_at(at)
        for name, habit in after.items()
        for other, tie in habit.ties.items()
        if before.get(name, NO_HABIT).ties.get(other) != tie
    }


def _tied(habit: Habit, others: Mapping[str, float], at: datetime) -> Habit:
    """The habit with its ties to these others created, or strengthened by their credits."""
    ties = dict(habit.ties)
    for other, credit in others.items():
        tie = ties.get(other)
        if tie is None:
            ties[other] = Tie(base=0.0, credit=credit, at=at)
        elif at - tie.at < SESSION:
            ties[other] = replace(tie, credit=max(tie.credit, credit))
        else:
            ties[other] = Tie(base=tie.weight_at(at), credit=credit, at=at)
    if len(ties) > MOST_TIES:
        kept = sorted(ties, key=lambda other: (-ties[other].weight_at(at), other))[:MOST_TIES]
        ties = {other: ties[other] for other in kept}
    return replace(habit, ties=ties)


def _shown(habit: Habit, credit: float, at: datetime, terms: Iterable[str]) -> Habit:
    """The habit of a memory that was shown under these terms."""
    again = habit.last is not None and at - habit.last < SESSION
    more = max(0.0, credit - habit.credit) if again else credit
    hours, counts = dict(habit.hours), dict(habit.terms)
    hours[at.hour] = hours.get(at.hour, 0.0) + more
    for term in dict.fromkeys(terms):
        counts[term] = counts[term] + more if term in counts else credit
    kept = sorted(counts, key=lambda term: (-counts[term], term))[:MOST_TERMS]
    return replace(
        habit,
        hours=hours,
        terms={term: counts[term] for term in kept},
        shown=habit.shown + more,
        last=habit.last if again else at,
        credit=max(credit, habit.credit) if again else credit,
    )


def interests(searches: Iterable[Search], now: datetime) -> dict[str, float]:
    """The terms of recent queries, the most frequent at 1, each search weighted by its age."""
    weights: dict[str, float] = {}
    for search in searches:
        share = 0.5 ** (max(timedelta(), now - search.at) / INTEREST_HALF_LIFE)
        for term in search.terms:
            weights[term] = weights.get(term, 0.0) + share
    top = max(weights.values(), default=1.0)
    return {term: weight / top for term, weight in weights.items()}


# -- Habits as documents


# Ties of one session have one time.
_moment_text = lru_cache(maxsize=1_024)(datetime.isoformat)


def habit_body(habit: Habit) -> dict[str, Any]:
    return {
        "together": {
            other: [round(tie.base, 4), round(tie.credit, 4), _moment_text(tie.at)]
            for other, tie in habit.ties.items()
        },
        "hours": {str(hour): round(number, 4) for hour, number in habit.hours.items()},
        "terms": {term: round(number, 4) for term, number in habit.terms.items()},
        "shown": round(habit.shown, 4),
        "last": habit.last.isoformat() if habit.last else None,
        "credit": round(habit.credit, 4),
    }


def habit_from(body: Mapping[str, Any]) -> Habit:
    return Habit(
        ties={
            name: Tie(base=base, credit=credit, at=datetime.fromisoformat(at))
            for name, (base, credit, at) in body["together"].items()
        },
        hours={int(hour): number for hour, number in body["hours"].items()},
        terms=dict(body["terms"]),
        shown=body["shown"],
        last=datetime.fromisoformat(body["last"]) if body["last"] else None,
        credit=body["credit"],
    )


def search_body(search: Search) -> dict[str, Any]:
    """A search as JSON, without its hits: the document cites those."""
    return {"number": search.number, "at": search.at.isoformat(), "terms": dict(search.terms)}


def search_from(body: Mapping[str, Any], shown: tuple[str, ...]) -> Search:
    """A search from JSON and from what its document cites."""
    at = datetime.fromisoformat(body["at"])
    return Search(number=body["number"], at=at, terms=dict(body["terms"]), shown=shown)

"""Finds sessions: time words, terms, ranking, and the passages that match."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from vestige.cognition.ranking.sessions import SHIPPED, Lengths, RankedSession, SessionWeights, rank_sessions
from vestige.cognition.text.analyser import content_terms, query_words, stem_variants, terms
from vestige.cognition.time.query_window import Window, time_asked
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.sessions import (
    SessionFilter,
    SessionIndex,
    SessionPostings,
    StoredEntry,
    StoredSession,
    TermPostings,
)

EXCERPT_CHARS = 300
MOST_TERMS = 32
"""Terms of a query that are looked up."""
STEM_START = 3
"""The first characters of a stem are those of the word."""
_ON_DAY = re.compile(r"\bon ((?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassage:
    """A passage of a session: the entry that matches best, an excerpt of it, and what was done around it."""

    entry: StoredEntry
    excerpt: str
    files: tuple[str, ...]
    commands: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """A session with its score and the passages that match; none where the query has only a time."""

    session: StoredSession
    score: float
    passages: tuple[FoundPassage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSessions:
    """What a search found. `window` is the time that the query asks about; `widened`: nothing was found in
    it, and the search went on without."""

    sessions: list[FoundSession]
    window: Window | None = None
    widened: bool = False


def find_sessions(
    index: SessionIndex, query: str, where: SessionFilter, now: datetime, *, limit: int, passages: int = 2
) -> FoundSessions:
    """The sessions that fit a query best. Words of time limit the search to that time."""
    window = None
    if where.since is None and where.until is None:
        window = time_asked(query, now).window
        if window is None and _ON_DAY.search(query):
            query = _ON_DAY.sub(r"last \1", query)  # a session is always past
            window = time_asked(query, now).window
    if window is None:
        return FoundSessions(sessions=_search(index, query, where, limit, passages))
    rest = f"{query[: window.span[0]]} {query[window.span[1] :]}"
    if all(word.stop for word in query_words(rest)):
        rest = ""  # "what did we do": the time is all that was asked
    inside = replace(where, since=window.start.timestamp(), until=window.end.timestamp())
    found = _search(index, rest, inside, limit, passages)
    if found:
        return FoundSessions(sessions=found, window=window)
    return FoundSessions(sessions=_search(index, rest, where, limit, passages), window=window, widened=True)


def _search(
    index: SessionIndex, query: str, where: SessionFilter, limit: int, passages: int
) -> list[FoundSession]:
    families = query_families(query)
    if not families:
        listed = index.sessions(where, limit=limit)
        return [FoundSession(session=one, score=0.0, passages=()) for one in listed]
    ranked = ranking(family_postings(index, families, where), shown=passages)[:limit]
    return _shown(index, ranked, frozenset(term for family in families for term in family))


def query_families(query: str) -> list[tuple[str, ...]]:
    """The terms of a query that are looked up, each with the other stems of its family."""
    asked = list(dict.fromkeys(content_terms(query_words(query))))[:MOST_TERMS]
    return list({min(family): family for family in map(stem_variants, asked)}.values())


def family_postings(
    index: SessionIndex, families: Sequence[tuple[str, ...]], where: SessionFilter
) -> SessionPostings:
    """The postings of each family, as if it were one term, with the titles that have it."""
    held = index.postings([term for family in families for term in family], where)
    if not held.terms:  # nothing is indexed
        return held
    found = iter(held.terms)
    united = tuple(_united([next(found) for _ in family]) for family in families)
    return replace(held, terms=united, titles=_in_titles(index.titles(where), families))


def _in_titles(titles: Mapping[int, str], families: Sequence[tuple[str, ...]]) -> tuple[dict[int, int], ...]:
    """For each family, how often it occurs in which title."""
    numbers = {term: number for number, family in enumerate(families) for term in family}
    begins = {term[:STEM_START] for term in numbers}
    made: list[dict[int, int]] = [{} for _ in families]
    for session, title in titles.items():
        lower = title.casefold()
        if title.isascii() and not any(one in lower for one in begins):
            continue  # to take a title apart takes a hundred times as long
        for term in terms(title):
            if term in numbers:
                counts = made[numbers[term]]
                counts[session] = counts.get(session, 0) + 1
    return tuple(made)


def _united(found: Sequence[TermPostings]) -> TermPostings:
    if len(found) == 1:
        return found[0]
    return TermPostings(
        passages=np.concatenate([one.passages for one in found]),
        sessions=np.concatenate([one.sessions for one in found]),
        fields=np.concatenate([one.fields for one in found]),
        counts=np.concatenate([one.counts for one in found]),
    )


def ranking(
    held: SessionPostings, *, shown: int = 1, weights: SessionWeights = SHIPPED
) -> list[RankedSession]:
    """The sessions of postings, the best first."""
    return rank_sessions(
        held.terms,
        Lengths(by_key=held.passage_lengths, mean=held.mean_passage, total=held.passages),
        Lengths(by_key=held.session_lengths, mean=held.mean_session, total=held.sessions),
        titles=held.titles,
        shown=shown,
        weights=weights,
    )


def _shown(index: SessionIndex, ranked: Sequence[RankedSession], asked: frozenset[str]) -> list[FoundSession]:
    known = index.by_key([one.session for one in ranked])
    entries = index.passage_entries([passage for one in ranked for passage in one.passages])
    made = []
    for one in ranked:
        if one.session in known:
            shown = [_passage(entries[passage], asked) for passage in one.passages if entries[passage]]
            # A prompt that was sent again is quoted once.
            unique = {(found.entry.role, found.excerpt): found for found in reversed(shown)}
            passages = tuple(reversed(unique.values()))
            made.append(
                FoundSession(session=known[one.session], score=round(one.score, 4), passages=passages)
            )
    return made


def _passage(entries: Sequence[StoredEntry], asked: frozenset[str]) -> FoundPassage:
    def worth(entry: StoredEntry) -> tuple[int, int, bool]:
        said = asked & frozenset(terms(f"{entry.text}\n{entry.thought}"))
        done = asked & frozenset(terms(" ".join([entry.output, *(one.detail for one in entry.actions)])))
        return len(said), len(done), bool(entry.text)

    best = max(entries, key=worth)
    text = _best_text(best, asked)
    actions = [action for entry in entries for action in entry.actions]
    files = dict.fromkeys(file for action in actions for file in action.files)
    commands = [(action.command, action.status) for action in actions if action.command]
    return FoundPassage(
        entry=best, excerpt=excerpt(text, asked), files=tuple(files)[:10], commands=tuple(commands[:10])
    )


def _best_text(entry: StoredEntry, asked: frozenset[str]) -> str:
    """Of an entry, the part that matches: what was said, thought, done or printed."""
    done = "\n".join(action.detail for action in entry.actions)
    parts = [part for part in (entry.text, entry.thought, done, entry.output) if part.strip()]
    return max(parts, key=lambda part: len(asked & frozenset(terms(part))), default="")


_LINE = re.compile(r"[^\n]+")


def excerpt(text: str, asked: frozenset[str], limit: int = EXCERPT_CHARS) -> str:
    """The lines of a text around the one that has the most of these terms, cut to a length."""
    lines = [(found.start(), found.group()) for found in _LINE.finditer(text)]
    if not lines:
        return ""
    worth = [len(asked & frozenset(terms(line))) for _, line in lines]
    at = max(range(len(lines)), key=lambda number: worth[number])
    start, line = lines[at]
    if len(line) > limit:
        found = _first_match(line, asked)
        begin = max(0, min(found - limit // 3, len(line) - limit))
        cut = line[begin : begin + limit].strip()
        return f"{'…' if begin else ''}{cut}{'…' if begin + limit < len(line) else ''}"
    end = start + limit
    return text[start:end].strip() + ("…" if end < len(text) else "")


def _first_match(line: str, asked: frozenset[str]) -> int:
    for word in re.finditer(r"\S+", line):
        if asked & frozenset(terms(word.group())):
            return word.start()
    return 0


def one_session(index: SessionIndex, name: str) -> StoredSession:
    """The session of this id, or of an id that begins so; NotFound for an unknown or ambiguous one."""
    found = index.find(name)
    if not found:
        raise NotFound(
            f"There is no session `{name}`.",
            hint="`vestige sessions list` lists them; `vestige sessions index` reads new ones.",
            details={"session": name},
        )
    if found[0].id != name and len({one.id for one in _parents(found)}) > 1:
        listed = ", ".join(one.id for one in found[:5])
        raise NotFound(
            f"Several sessions begin with `{name}`: {listed}.",
            hint="Give more of the id.",
            details={"session": name},
        )
    return found[0]


def _parents(found: Iterable[StoredSession]) -> list[StoredSession]:
    """Sessions without the subagents of others among them."""
    held = list(found)
    ids = {one.id for one in held}
    return [one for one in held if one.parent not in ids] or held

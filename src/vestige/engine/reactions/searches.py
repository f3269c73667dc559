"""What follows from searches, and learning from them: which memories are needed together, when, and under
which words.

What is learned is stored as documents that hold ids, counts and words of queries:

- `attention`: the last searches of a scope, one slot each, citing what was shown; searches with access to
  some domains only are kept apart from those of other callers;
- `pattern`: the habit of a memory (`cognition.prediction.habits`), citing it;
- `prediction`: the open predictions of a scope, and the outcomes of the last ones.

A document is deleted with a memory that it cites. Two memories that are found together often enough are
linked (`co_access`), so that a search that finds one activates the other.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import partial
from hashlib import blake2b

from vestige.cognition.graph.kinds import CO_ACCESS
from vestige.cognition.prediction.forecast import Forecast, forecast_body, forecast_from, settled
from vestige.cognition.prediction.habits import (
    SESSION,
    Habit,
    Search,
    after_search,
    asked_terms,
    habit_body,
    habit_from,
    search_body,
    search_from,
    strengthened,
)
from vestige.core.documents import Document
from vestige.core.errors import Cancelled, Conflict, StoreError
from vestige.core.events import ConnectionDiscovered, Event, MemoryPromoted, SearchPerformed
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access, Edge, Filter, LogEvent, Memory, Record
from vestige.engine.context import Call, access_of_cause
from vestige.engine.reactions.reconsolidation import FOLLOWED, recalls
from vestige.engine.recall.testing_effect import MemoriesShown, exposures
from vestige.engine.revise import (
    connected_event,
    documents_by_id,
    find_document,
    put_document,
    retry_on_conflict,
    save,
)
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import Change, Link, Put
from vestige.store.contract.store import MemoryStore
from vestige.store.filter_rule import passes

logger = logging.getLogger(__name__)

ATTENTION, PATTERN, PREDICTION = "attention", "pattern", "prediction"
LEARNED_HITS = 5
"""The first hits of a search, which are learned from; the others were hardly looked at."""
LEARNED_TAGS = 5
SEARCHES = 50
"""Searches that are remembered for each scope."""
LINKED = 0.7
"""From this weight on, two memories that are found together are linked."""
MOST_SCOPES = 200
"""The most scopes whose predictions are checked when a memory is promoted."""
Uses = list[tuple[Sequence[str], datetime]]
"""Memories that were needed at the same time, and when, in order."""
DELETED = "memory.deleted"
DELETING = timedelta(seconds=10)
"""A deletion has the time when it began: a search within this time after it may have seen the memory."""
EVENTS = 100
"""Events of the log that are read at once."""
MOST_ACCESSES = 100
"""The most accesses for which it is kept how far the log was read."""
MOST_NUMBERS = 1_000
"""The most scopes whose latest number is kept."""


class SearchReaction:
    """What follows from the searches of a process: what they showed is strengthened (`testing_effect`) and
    labile (`reconsolidation`), and is learned from.

    It keeps how far it has read the log, for each access, and the number of the latest search of a scope, so
    that the other slots are not read."""

    def __init__(self) -> None:
        self._deletions = _Deletions()
        self._numbers: dict[tuple[Access, str], int] = {}

    def on_searches(self, call: Call, events: Sequence[Event]) -> None:
        """React to searches of one access in one commit, so that all of it reads and writes once.

        If others write the same documents each time, or a part has a fault, less is written: the trace and
        what is labile, then the trace alone, which needs no document. So no part is lost by the failure of
        another one. A failure of the store concerns all parts: the worker tries again.
        """
        seen, fault = _Seen.of(events), None
        for parts in _Parts:
            try:
                discovered = retry_on_conflict(call, partial(self._react, call, seen, parts))
            except (StoreError, Cancelled):
                raise
            except Conflict:
                if parts is _Parts.ALL:
                    # Other processes learn from many searches at the same time: these may be skipped.
                    logger.info("A search was not learned from: other processes wrote at the same time")
            except Exception as exc:
                fault = exc
            else:
                call.engine.events.emit(*discovered)
                break
        if fault is not None:
            raise fault

    def _react(self, call: Call, seen: "_Seen", parts: "_Parts") -> list[ConnectionDiscovered]:
        """React, and return the connections that were discovered."""
        store, cause = call.engine.store, access_of_cause()
        learned = seen.recorded if parts is _Parts.ALL and call.engine.settings.mechanisms.prediction else ()
        kept = [event for event in learned if not _lost_a_result(store, event)]
        oldest = min((event.timestamp for event in kept), default=call.engine.now()) - DELETING
        deleted = self._deletions.latest(store, cause, oldest) if kept else None
        if deleted is not None:
            kept = [event for event in kept if deleted < event.timestamp - DELETING]
        slots = _LatestSearches(call, kept, self._numbers)
        records = _records(call, [*seen.ids, *slots.shown])
        changes = seen.changes(call, records, parts)
        lesson = _Lesson(call, kept, slots, records) if kept else None
        if lesson is not None:
            changes += lesson.changes()
            # Words of a search may come from a memory that was deleted meanwhile.
            if self._deletions.latest(store, cause, oldest) != deleted:
                raise Conflict()
        if changes:
            self._deletions.note_own(save(call, changes))
        if lesson is None:
            return []
        if len(self._numbers) >= MOST_NUMBERS:
            self._numbers.clear()
        self._numbers |= lesson.numbers()
        return lesson.discovered()


class _Parts(Enum):
    """What is written of a reaction to searches: everything, or less where that failed."""

    ALL = auto()
    WITHOUT_LESSON = auto()
    TRACE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The searches of one access that may be recorded, and what was shown of them and elsewhere."""

    recorded: tuple[SearchPerformed, ...]
    shown: tuple[MemoriesShown, ...]

    @classmethod
    def of(cls, events: Sequence[Event]) -> "_Seen":
        searches = (event for event in events if isinstance(event, SearchPerformed))
        return cls(
            recorded=tuple(event for event in searches if event.recorded),
            shown=tuple(event for event in events if isinstance(event, MemoriesShown)),
        )

    @property
    def ids(self) -> list[str]:
        """The memories that a change may concern."""
        found = [name for search in self.recorded for name in search.result_ids[:FOLLOWED]]
        return [*found, *(name for event in self.shown for name in event.ids)]

    def changes(self, call: Call, records: Mapping[str, Record], parts: _Parts) -> list[Change]:
        """The trace, and what makes the memories labile."""
        access = access_of_cause()
        within = {name: record for name, record in records.items() if access.allows(record.memory)}
        trace = exposures(self.shown, within)
        if parts is _Parts.TRACE or not call.engine.settings.mechanisms.reconsolidation:
            return [*trace]
        exposed = {one.memory_id: one.at for one in trace}
        return [*trace, *recalls(call, self.recorded, within, exposed)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogRead:
    """The part of the log that was read: up to a position, back to a time; with its latest deletion."""

    position: int
    since: datetime
    latest: datetime | None


class _Deletions:
    """The latest deletion that an access may see. The log has no index of times, so it is read from its end,
    and the next time only as far as it has grown."""

    def __init__(self) -> None:
        self._read: dict[Access, _LogRead] = {}

    def latest(self, store: MemoryStore, access: Access, since: datetime) -> datetime | None:
        """The time of the latest deletion, if it is not before `since`."""
        known = self._read.get(access)
        if known is None or since < known.since:  # what is older than that was not read
            read = _read_back(store, access, since)
        else:
            read = _read_on(store, access, known)
        if len(self._read) >= MOST_ACCESSES:
            self._read.clear()
        self._read[access] = read
        return read.latest if read.latest is not None and read.latest >= since else None

    def note_own(self, events: Sequence[LogEvent]) -> None:
        """Note what this process has added to the log, which is no deletion: where nothing came between, it
        need not be read."""
        if events:
            first, last = events[0].position, events[-1].position
            for access, read in self._read.items():
                if read.position == first - 1:
                    self._read[access] = replace(read, position=last)


def _read_back(store: MemoryStore, access: Access, since: datetime) -> _LogRead:
    """Read the log from its end back to a time."""
    read, before = _LogRead(position=-1, since=since, latest=None), None
    while page := store.latest(LogQuery(before=before), access=access, limit=EVENTS):
        read = _with_page(read, page)
        if all(event.at < since for event in page):
            break
        before = page[-1].position
    return read


def _read_on(store: MemoryStore, access: Access, read: _LogRead) -> _LogRead:
    """Read what was added to the log."""
    while page := store.log(access=access, after=read.position, limit=EVENTS):
        read = _with_page(read, page)
        if len(page) < EVENTS:
            break
    return read


def _with_page(read: _LogRead, page: Sequence[LogEvent]) -> _LogRead:
    times = [event.at for event in page if event.kind == DELETED]
    return replace(
        read,
        position=max(read.position, *(event.position for event in page)),
        latest=max([*times, *([read.latest] if read.latest else [])], default=None),
    )


def _records(call: Call, memory_ids: Sequence[str]) -> dict[str, Record]:
    """Those of these memories that exist, whatever the access behind the searches."""
    found = call.engine.store.get_many(memory_ids, access=call.access) if memory_ids else ()
    return {record.memory.id: record for record in found}


def _lost_a_result(store: MemoryStore, search: SearchPerformed) -> bool:
    """Whether a result was deleted since, for a caller limited to domains: the log does not know the domains
    of a deleted memory."""
    if access_of_cause().domains is None:
        return False
    return len(store.get_many(search.result_ids, access=EVERYTHING)) < len(set(search.result_ids))


def on_promoted(call: Call, event: MemoryPromoted) -> None:
    """Count the predictions of a promoted memory as correct."""
    if not call.engine.settings.mechanisms.prediction:
        return

    def attempt() -> None:
        changes = list(_resolved_forecasts(call, {None: [((event.id,), event.timestamp)]}))
        if changes:
            save(call, changes)

    try:
        retry_on_conflict(call, attempt)
    except Conflict:
        logger.info("A promotion was not counted for a prediction: other processes wrote at the same time")


def searches(call: Call, scope: str) -> list[Search]:
    """The last searches of a scope, latest first."""
    return [search for search, _ in _slots(call, _name(scope, call.access.domains))]


def forecast(call: Call, scope: str) -> tuple[Forecast, Document | None]:
    """The predictions of a scope, with the document that holds them."""
    found = find_document(call, PREDICTION, _name(scope))
    return (forecast_from(found.body) if found else Forecast()), found


def put_forecast(scope: str, kept: Forecast, present: Document | None, now: datetime) -> Put:
    return put_document(PREDICTION, _name(scope), present, now, scope=scope, body=forecast_body(kept))


class _LatestSearches:
    """The latest search of each scope in which these searches were, and the slots that they take."""

    def __init__(
        self, call: Call, events: Sequence[SearchPerformed], numbers: Mapping[tuple[Access, str], int]
    ) -> None:
        domains = access_of_cause().domains
        self.names = {scope: _name(scope, domains) for scope in dict.fromkeys(one.scope for one in events)}
        self.documents: dict[str, Document] = {}
        self.latest: dict[str, Search | None] = {}
        for scope, name in self.names.items():
            slots = _open_slots(call, name, numbers.get((call.access, name)), len(events))
            self.documents |= {document.id: document for _, document in slots}
            self.latest[scope] = slots[0][0] if slots else None

    @property
    def shown(self) -> list[str]:
        """The memories that the latest searches showed."""
        return [name for search in self.latest.values() if search for name in search.shown]


class _Lesson:
    """What some searches teach, decided together, so that it is one commit."""

    def __init__(
        self,
        call: Call,
        events: Sequence[SearchPerformed],
        slots: _LatestSearches,
        records: Mapping[str, Record],
    ) -> None:
        self._call = call
        self._at = max(event.timestamp for event in events)
        self._names, self._documents, self._latest = slots.names, slots.documents, dict(slots.latest)
        shown = [name for event in events for name in event.result_ids[:LEARNED_HITS]]
        self._memories = _learnable(records, dict.fromkeys([*shown, *slots.shown]), self._at)
        self._patterns = documents_by_id(call, PATTERN, list(self._memories))
        self._habits = {name: habit_from(pattern.body) for name, pattern in self._patterns.items()}
        self._topics = {
            name: asked_terms(memory.tags[:LEARNED_TAGS])
            for name, memory in self._memories.items()
            if memory.tags
        }
        self._slots: dict[str, tuple[str, Search]] = {}
        self._needed: dict[str, Uses] = {}
        self._ties: dict[tuple[str, str], float] = {}
        self._learned: dict[str, Habit] = {}
        for event in events:
            self._follow(event)
        self._links = _links(call, self._ties, self._at)

    def changes(self) -> list[Change]:
        puts: list[Change] = [
            put_document(
                ATTENTION,
                slot,
                self._documents.get(slot),
                search.at,
                scope=scope,
                body=search_body(search),
                cites=search.shown,
            )
            for slot, (scope, search) in self._slots.items()
        ]
        needed: dict[str | None, Uses] = {_name(scope): uses for scope, uses in self._needed.items()}
        puts += _resolved_forecasts(self._call, needed)
        puts += _changed_habits(self._learned, self._patterns, self._memories, self._at)
        return [*puts, *(Link(edge=edge) for edge, _ in self._links)]

    def numbers(self) -> dict[tuple[Access, str], int]:
        """The number of the latest search of each scope, for those who have the same access."""
        latest = {self._names[scope]: search for scope, search in self._latest.items()}
        return {(self._call.access, name): search.number for name, search in latest.items() if search}

    def discovered(self) -> list[ConnectionDiscovered]:
        return [connected_event(edge, self._memories) for edge, is_new in self._links if is_new]

    def _follow(self, event: SearchPerformed) -> None:
        """Take in one search, after those before it."""
        at, scope, latest = event.timestamp, event.scope, self._latest[event.scope]
        terms = asked_terms((event.query, *event.topics))
        search = Search(
            # The same terms again are the same search.
            number=latest.number + (latest.terms != terms) if latest else 0,
            at=at,
            terms=terms,
            shown=tuple(name for name in event.result_ids[:LEARNED_HITS] if name in self._memories),
        )
        credits = latest.credits if latest and at - latest.at < SESSION else {}
        before = {name: credit for name, credit in credits.items() if name in self._memories}
        learned = after_search(self._habits, search, before, self._topics)
        self._ties |= strengthened(self._habits, learned, at)
        self._habits |= learned
        self._learned |= learned
        self._latest[scope] = search
        self._slots[_slot(self._names[scope], search.number)] = (scope, search)
        self._needed.setdefault(scope, []).append((event.result_ids, at))


def _resolved_forecasts(call: Call, needed: Mapping[str | None, Uses]) -> Iterator[Put]:
    """The forecasts that change now that memories were needed: those of these names, or all under None."""
    names = None if None in needed else [name for name in needed if name]
    for document in call.engine.store.documents(PREDICTION, access=call.access, ids=names, limit=MOST_SCOPES):
        before = after = forecast_from(document.body)
        uses = needed[None if names is None else document.id]
        for memory_ids, at in uses:
            after = settled(after, memory_ids, at)
        if after != before:
            yield put_forecast(document.scope, after, document, uses[-1][1])


def _learnable(records: Mapping[str, Record], memory_ids: Iterable[str], at: datetime) -> dict[str, Memory]:
    """Those that exist and are valid. A suppressed memory must not come back as a habit."""
    where = Filter(valid_at=at, include_suppressed=False)
    known = (records[name].memory for name in memory_ids if name in records)
    return {memory.id: memory for memory in known if passes(memory, where, EVERYTHING)}


def _changed_habits(
    habits: Mapping[str, Habit],
    patterns: Mapping[str, Document],
    memories: Mapping[str, Memory],
    at: datetime,
) -> Iterator[Put]:
    for name, habit in habits.items():
        present, body, scope = patterns.get(name), habit_body(habit), memories[name].scope
        if present is None or (present.body, present.scope) != (body, scope):
            yield put_document(PATTERN, name, present, at, scope=scope, body=body, cites=(name,))


def _links(call: Call, weights: Mapping[tuple[str, str], float], at: datetime) -> list[tuple[Edge, bool]]:
    """The links between memories that are found together often enough, unless they are already stronger, each
    with whether it is new."""
    pairs = {pair: weight for pair, weight in weights.items() if weight >= LINKED}
    if not pairs:
        return []
    ends = sorted({end for pair in pairs for end in pair})
    found = call.engine.store.edges(ends, access=call.access, among=True)
    known = {(one.source_id, one.target_id): one.weight for one in found if one.kind == CO_ACCESS}
    edges = [
        Edge(source_id=source, target_id=target, kind=CO_ACCESS, weight=weight, created_at=at)
        for (source, target), weight in pairs.items()
        if weight > known.get((source, target), 0.0)
    ]
    return [(edge, (edge.source_id, edge.target_id) not in known) for edge in edges]


def _open_slots(call: Call, name: str, number: int | None, more: int) -> list[tuple[Search, Document]]:
    """The latest search and those whose slots the next ones take, latest first, with their documents.

    `number` is that of the search which was the latest. Only its slot and the next ones are read, unless they
    show that another process has learned since or that it was deleted.
    """
    if number is not None:
        found = _slots(call, name, range(number, number + min(more + 1, SEARCHES)))
        if found and found[0][0].number == number:
            return found
    return _slots(call, name)


def _slots(call: Call, name: str, numbers: Iterable[int] = range(SEARCHES)) -> list[tuple[Search, Document]]:
    """The last searches, latest first, with the documents that hold them."""
    ids = [_slot(name, number) for number in numbers]
    found = call.engine.store.documents(ATTENTION, access=call.access, ids=ids, limit=SEARCHES)
    held = [(search_from(document.body, document.cites), document) for document in found]
    return sorted(held, key=lambda one: -one[0].number)


def _slot(name: str, number: int) -> str:
    return f"{name}-{number % SEARCHES:02d}"


def _name(scope: str, domains: Sequence[str] | None = None) -> str:
    """The id of a document of a scope, or of the callers there with access to these domains only: a digest,
    because a scope may be as long as an id."""
    named = scope if domains is None else "\n".join((scope, *sorted(domains)))
    return blake2b(named.encode("utf-8"), digest_size=12).hexdigest()

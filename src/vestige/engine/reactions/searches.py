"""Learning from searches: which memories are needed together, when, and under which words.

It is stored as documents that hold ids, counts and words of queries:

- `attention`: the last searches of a scope, one slot each, citing what was shown; searches with access to
  some domains only are kept apart from those of other callers;
- `pattern`: the habit of a memory (`cognition.prediction.habits`), citing it;
- `prediction`: the open predictions of a scope, and the outcomes of the last ones.

A document is deleted with a memory that it cites. Two memories that are found together often enough are
linked (`co_access`), so that a search that finds one activates the other.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
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
from vestige.core.errors import Conflict
from vestige.core.events import ConnectionDiscovered, MemoryPromoted, SearchPerformed
from vestige.core.models import EVERYTHING, Edge, Filter, Memory
from vestige.engine.context import Call, access_of_cause
from vestige.engine.revise import (
    connected_event,
    documents_by_id,
    find_document,
    load_passing,
    put_document,
    retry_on_conflict,
    save,
)
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import Change, Link, Put

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
DELETED = "memory.deleted"
DELETING = timedelta(seconds=10)
"""A deletion has the time when it began: a search within this time after it may have seen the memory."""
EVENTS = 100
"""Events of the log that are read at once."""


def on_search(call: Call, event: SearchPerformed) -> None:
    """Learn from a search what was shown together, after what, at which hour and under which words."""
    if not (call.engine.settings.mechanisms.prediction and event.recorded):
        return
    try:
        discovered = retry_on_conflict(call, lambda: _learn(call, event))
    except Conflict:
        # Other processes learn from many searches at the same time: this one may be skipped.
        logger.info("A search was not learned from: other processes wrote at the same time")
        return
    call.engine.events.emit(*discovered)


def on_promoted(call: Call, event: MemoryPromoted) -> None:
    """Count the predictions of a promoted memory as correct."""
    if not call.engine.settings.mechanisms.prediction:
        return

    def attempt() -> None:
        changes = list(_resolved_forecasts(call, None, (event.id,), event.timestamp))
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


def _learn(call: Call, event: SearchPerformed) -> list[ConnectionDiscovered]:
    """Learn everything from one search, in one transaction; returns the new links as events."""
    at, scope, first = event.timestamp, event.scope, event.result_ids[:LEARNED_HITS]
    name = _name(scope, access_of_cause().domains)
    slots = _slots(call, name)
    latest = slots[0][0] if slots else None
    before = latest.credits if latest and at - latest.at < SESSION else {}
    memories = _learnable(call, [*first, *before], at)
    terms = asked_terms((event.query, *event.topics))
    search = Search(
        # The same terms again are the same search.
        number=latest.number + (latest.terms != terms) if latest else 0,
        at=at,
        terms=terms,
        shown=tuple(name for name in first if name in memories),
    )
    patterns = documents_by_id(call, PATTERN, list(memories))
    habits = {name: habit_from(pattern.body) for name, pattern in patterns.items()}
    topics = {name: asked_terms(memory.tags[:LEARNED_TAGS]) for name, memory in memories.items()}
    before = {name: credit for name, credit in before.items() if name in memories}
    learned = after_search(habits, search, before, topics)
    changes: list[Change] = [_slot_put(scope, name, slots, search)]
    changes += _resolved_forecasts(call, [_name(scope)], event.result_ids, at)
    changes += _changed_habits(learned, patterns, memories, at)
    links = _links(call, strengthened(habits, learned, at), at)
    changes += [Link(edge=edge) for edge, _ in links]
    if _deleted_since(call, event, at - DELETING):
        return []  # the query may hold words of the deleted memory
    save(call, changes)
    return [connected_event(edge, memories) for edge, is_new in links if is_new]


def _deleted_since(call: Call, search: SearchPerformed, moment: datetime) -> bool:
    """Whether a memory was deleted since then, by any caller, that the searching one may have read. The log
    has no index of times, so it is read backwards, until a page has nothing that late."""
    store, cause = call.engine.store, access_of_cause()
    if cause.domains is not None:  # the log does not know the domains of a deleted memory
        return len(store.get_many(search.result_ids, access=EVERYTHING)) < len(set(search.result_ids))
    before: int | None = None
    while page := store.latest(LogQuery(before=before), access=cause, limit=EVENTS):
        since = [event.kind for event in page if event.at >= moment]
        if DELETED in since or not since:
            return bool(since)
        before = page[-1].position
    return False


def _resolved_forecasts(
    call: Call, names: Sequence[str] | None, needed: Sequence[str], at: datetime
) -> Iterator[Put]:
    """The forecasts, of these names or all, that change now that these memories were needed."""
    found = call.engine.store.documents(PREDICTION, access=call.access, ids=names, limit=MOST_SCOPES)
    for document in found:
        before = forecast_from(document.body)
        after = settled(before, needed, at)
        if after != before:
            yield put_forecast(document.scope, after, document, at)


def _learnable(call: Call, memory_ids: Sequence[str], at: datetime) -> dict[str, Memory]:
    """Those that exist and are valid. A suppressed memory must not come back as a habit."""
    found = load_passing(call, memory_ids, Filter(valid_at=at, include_suppressed=False))
    return {one.memory.id: one.memory for one in found}


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


def _slots(call: Call, name: str) -> list[tuple[Search, Document]]:
    """The last searches, latest first, with the documents that hold them."""
    ids = [f"{name}-{slot:02d}" for slot in range(SEARCHES)]
    found = call.engine.store.documents(ATTENTION, access=call.access, ids=ids, limit=SEARCHES)
    held = [(search_from(document.body, document.cites), document) for document in found]
    return sorted(held, key=lambda one: -one[0].number)


def _slot_put(scope: str, name: str, slots: Sequence[tuple[Search, Document]], search: Search) -> Put:
    """The change that stores a search in its slot, in place of the search SEARCHES numbers before it."""
    slot = f"{name}-{search.number % SEARCHES:02d}"
    present = next((document for _, document in slots if document.id == slot), None)
    body = search_body(search)
    return put_document(ATTENTION, slot, present, search.at, scope=scope, body=body, cites=search.shown)


def _name(scope: str, domains: Sequence[str] | None = None) -> str:
    """The id of a document of a scope, or of the callers there with access to these domains only: a digest,
    because a scope may be as long as an id."""
    told = scope if domains is None else "\n".join((scope, *sorted(domains)))
    return blake2b(told.encode("utf-8"), digest_size=12).hexdigest()

"""Learning from searches: what is needed together, when, and under which words.

What is learned is kept in the store, as documents that hold ids, counts and words of queries:

- `attention`: the last searches of a scope, in as many slots, each citing what it showed;
- `pattern`: the habit of a memory (`cognition.habits`), citing it;
- `prediction`: the predictions of a scope that wait, and what became of the last ones.

What cites a memory goes with it. Two memories that are met together often enough are linked (`co_access`),
so that a search which finds one of them reaches the other by spreading activation.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

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
from vestige.engine.context import Call
from vestige.engine.revise import connected, persistently, save
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import Change, Link, Put
from vestige.store.filter_rule import passes

logger = logging.getLogger(__name__)

ATTENTION, PATTERN, PREDICTION = "attention", "pattern", "prediction"
LEARNED_HITS = 5
"""Only the first hits of a search are learned from: what is further down was hardly looked at."""
LEARNED_TAGS = 5
SEARCHES = 50
"""Searches that are remembered of a scope."""
LINKED = 0.7
"""From this weight on, two memories that are met together are linked."""
MOST_SCOPES = 200
"""Scopes whose predictions are looked through when a memory is promoted."""
DELETED = "memory.deleted"
DELETING = timedelta(seconds=10)
"""A deletion is dated when it begins: a search within this time after that may have seen what goes."""
EVENTS = 100
"""So many events of the log are read at once."""


def on_search(call: Call, happening: SearchPerformed) -> None:
    """Learn from a search what was shown together, after what, at which hour and under which words."""
    if not (call.engine.settings.mechanisms.prediction and happening.recorded):
        return
    try:
        discovered = persistently(call, lambda: _learn(call, happening))
    except Conflict:
        # Another process learns from so many searches at once that this one is not missed.
        logger.info("A search was not learned from: others were quicker")
        return
    call.engine.events.emit(*discovered)


def on_promoted(call: Call, happening: MemoryPromoted) -> None:
    """A memory was helpful: predictions of it have come true."""
    if not call.engine.settings.mechanisms.prediction:
        return
    try:
        persistently(call, lambda: _came_true(call, happening))
    except Conflict:
        logger.info("A promotion was not counted for a prediction: others were quicker")


def searches(call: Call, scope: str) -> list[Search]:
    """The last searches of a scope, the latest first."""
    return [search for search, _ in _slots(call, scope)]


def forecast(call: Call, scope: str) -> tuple[Forecast, Document | None]:
    """What was predicted in a scope, with the document that holds it."""
    found = call.engine.store.documents(PREDICTION, access=call.access, ids=[_name(scope)], limit=1)
    return (forecast_from(found[0].body), found[0]) if found else (Forecast(), None)


def put_forecast(scope: str, kept: Forecast, present: Document | None, now: datetime) -> Put:
    """The change that keeps what was predicted in a scope."""
    return _put(PREDICTION, _name(scope), present, now, scope=scope, body=forecast_body(kept))


def _learn(call: Call, happening: SearchPerformed) -> list[ConnectionDiscovered]:
    """Everything that one search teaches, in one transaction; what was linked by it."""
    at, scope, first = happening.timestamp, happening.scope, happening.result_ids[:LEARNED_HITS]
    slots = _slots(call, scope)
    latest = slots[0][0] if slots else None
    before = latest.credits if latest and at - latest.at < SESSION else {}
    memories = _learnable(call, [*first, *before], at)
    terms = asked_terms((happening.query, *happening.topics))
    search = Search(
        number=_number(latest, terms),
        at=at,
        terms=terms,
        shown=tuple(name for name in first if name in memories),
    )
    patterns = _patterns(call, list(memories))
    habits = {name: habit_from(pattern.body) for name, pattern in patterns.items()}
    topics = {name: asked_terms(memory.tags[:LEARNED_TAGS]) for name, memory in memories.items()}
    before = {name: credit for name, credit in before.items() if name in memories}
    learned = after_search(habits, search, before, topics)
    changes: list[Change] = [_attended(scope, slots, search)]
    changes += _decided(call, [_name(scope)], happening.result_ids, at)
    changes += _changed(learned, patterns, memories, at)
    links = _links(call, strengthened(habits, learned, at), at)
    changes += [Link(edge=edge) for edge, _ in links]
    if _deleted_since(call, at - DELETING):
        return []  # words of what is gone may have been typed, whatever was shown
    save(call, changes)
    return [connected(edge, memories) for edge, is_new in links if is_new]


def _came_true(call: Call, happening: MemoryPromoted) -> None:
    changes = list(_decided(call, None, (happening.id,), happening.timestamp))
    if changes:
        save(call, changes)


def _deleted_since(call: Call, moment: datetime) -> bool:
    """Whether any memory was deleted since then, by whomever.

    The log has no index of times, so it is read from its end, until there is nothing as late on a page.
    """
    before: int | None = None
    while page := call.engine.store.latest(LogQuery(before=before), access=EVERYTHING, limit=EVENTS):
        since = [event.kind for event in page if event.at >= moment]
        if DELETED in since or not since:
            return bool(since)
        before = page[-1].position
    return False


def _decided(call: Call, names: Sequence[str] | None, needed: Sequence[str], at: datetime) -> Iterator[Put]:
    """The forecasts, of these names or all, of which something is decided now that this was needed."""
    found = call.engine.store.documents(PREDICTION, access=call.access, ids=names, limit=MOST_SCOPES)
    for document in found:
        before = forecast_from(document.body)
        after = settled(before, needed, at)
        if after != before:
            yield put_forecast(document.scope, after, document, at)


def _learnable(call: Call, memory_ids: Sequence[str], at: datetime) -> dict[str, Memory]:
    """Those that are there and true. What was suppressed must not come back as a habit."""
    where = Filter(valid_at=at, include_suppressed=False)
    records = call.engine.store.get_many(memory_ids, access=call.access) if memory_ids else []
    return {one.memory.id: one.memory for one in records if passes(one.memory, where, call.access)}


def _patterns(call: Call, memory_ids: Sequence[str]) -> dict[str, Document]:
    if not memory_ids:
        return {}
    found = call.engine.store.documents(PATTERN, access=call.access, ids=memory_ids, limit=len(memory_ids))
    return {document.id: document for document in found}


def _changed(
    habits: Mapping[str, Habit],
    patterns: Mapping[str, Document],
    memories: Mapping[str, Memory],
    at: datetime,
) -> Iterator[Put]:
    """The habits that are not what their documents say."""
    for name, habit in habits.items():
        present, body, scope = patterns.get(name), habit_body(habit), memories[name].scope
        if present is None or (present.body, present.scope) != (body, scope):
            yield _put(PATTERN, name, present, at, scope=scope, body=body, cites=(name,))


def _links(call: Call, weights: Mapping[tuple[str, str], float], at: datetime) -> list[tuple[Edge, bool]]:
    """The links between what is met together often enough, each with whether it is new. One that has become
    stronger by other means is left so."""
    pairs = {pair: weight for pair, weight in weights.items() if weight >= LINKED}
    if not pairs:
        return []
    ends = sorted({end for pair in pairs for end in pair})
    found = call.engine.store.edges(ends, access=call.access, among=True)
    known = {(one.source_id, one.target_id): one.weight for one in found if one.kind == CO_ACCESS}
    return [
        (
            Edge(source_id=pair[0], target_id=pair[1], kind=CO_ACCESS, weight=weight, created_at=at),
            pair not in known,
        )
        for pair, weight in pairs.items()
        if weight > known.get(pair, 0.0)
    ]


def _slots(call: Call, scope: str) -> list[tuple[Search, Document]]:
    """The last searches, the latest first, with the documents that hold them."""
    ids = [_name(scope, slot) for slot in range(SEARCHES)]
    found = call.engine.store.documents(ATTENTION, access=call.access, ids=ids, limit=SEARCHES)
    held = [(search_from(document.body, document.cites), document) for document in found]
    return sorted(held, key=lambda one: -one[0].number)


def _number(latest: Search | None, terms: Mapping[str, str]) -> int:
    """The next number, or again that of the latest search when it asked for the same."""
    if latest is None:
        return 0
    return latest.number + (latest.terms != terms)


def _attended(scope: str, slots: Sequence[tuple[Search, Document]], search: Search) -> Put:
    """A search in its slot, in place of the one that is as many searches older."""
    name = _name(scope, search.number % SEARCHES)
    present = next((document for _, document in slots if document.id == name), None)
    return _put(
        ATTENTION, name, present, search.at, scope=scope, body=search_body(search), cites=search.shown
    )


def _put(
    kind: str,
    name: str,
    present: Document | None,
    now: datetime,
    *,
    scope: str,
    body: Mapping[str, Any],  # Any: JSON
    cites: tuple[str, ...] = (),
) -> Put:
    document = Document(
        kind=kind,
        id=name,
        body=body,
        scope=scope,
        cites=cites,
        version=present.version + 1 if present else 1,
        created_at=present.created_at if present else now,
        updated_at=now,
    )
    return Put(document=document, logged=False)


def _name(scope: str, slot: int | None = None) -> str:
    """The id of a scope's document: a scope may be as long as an id, so it is told by its digest."""
    digest = blake2b(scope.encode("utf-8"), digest_size=12).hexdigest()
    return digest if slot is None else f"{digest}-{slot:02d}"

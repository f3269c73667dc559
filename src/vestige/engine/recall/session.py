"""Session start: intentions, pinned memories, search results, codebase notes, predictions and maintenance
needs."""

from collections.abc import Collection
from dataclasses import replace

from vestige.cognition.evidence.codebase import DECISION, PATTERN, files_of
from vestige.cognition.intentions.intention import Looked
from vestige.cognition.intentions.triggers import TriggerSituation
from vestige.cognition.prediction.forecast import SUGGESTED
from vestige.cognition.ranking.stages import Context
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Record
from vestige.engine.care.backup import backup_warning
from vestige.engine.care.health import MANY_DUE
from vestige.engine.context import Call
from vestige.engine.ingest.orders import found_without_orders, order_flags
from vestige.engine.intentions import relevant
from vestige.engine.memory.archive import worth_archiving
from vestige.engine.memory.codebase import notes
from vestige.engine.reactions.predict import CurrentWork, predict
from vestige.engine.recall.candidates import Mode
from vestige.engine.recall.recall import Recalled, RecallQuery, emit_search, recall
from vestige.engine.recall.testing_effect import leave_trace
from vestige.engine.sleep.schedule import needs as sleep_needs

PER_QUERY = 5
NOTES = 3
"""The most patterns, and the most decisions, of the codebase."""
INTENTIONS = 5
PREDICTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """What a session is about. `within` is where to search, `home` where to look for what the queries do not
    ask for, `pins` the most pinned memories that could fit. Without a `situation` no intentions are checked;
    without `foresee` nothing is predicted."""

    queries: tuple[str, ...]
    within: Filter
    home: Filter
    topics: tuple[str, ...] = ()
    codebase: str | None = None
    file: str | None = None
    pins: int
    situation: TriggerSituation | None = None
    foresee: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMaterial:
    """Everything the briefing may show, the most important first; a memory may be in several parts."""

    intentions: tuple[Looked, ...]
    pinned: tuple[Record, ...]
    recalled: tuple[Record, ...]
    patterns: tuple[Record, ...]
    decisions: tuple[Record, ...]
    predicted: tuple[Record, ...]
    searches: tuple[tuple[RecallQuery, Recalled], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    backup: bool
    review: bool
    dream: bool
    gc: bool


def collect(call: Call, asked: SessionQuery) -> SessionMaterial:
    """What the briefing may show, without memories that give orders to an agent."""
    material = _everything(call, asked)
    parts = ("pinned", "recalled", "patterns", "decisions", "predicted")
    memories = {one.memory.id: one.memory for part in parts for one in getattr(material, part)}
    held = order_flags(call, list(memories.values()))
    if not held:
        return material
    kept = {
        part: tuple(one for one in getattr(material, part) if one.memory.id not in held) for part in parts
    }
    return replace(material, **kept)


def _everything(call: Call, asked: SessionQuery) -> SessionMaterial:
    now = call.engine.now()
    where, home = (replace(one, valid_at=now) for one in (asked.within, asked.home))
    pinned = found_without_orders(call, replace(home, pinned=True), limit=asked.pins)
    place = Context(topics=asked.topics, codebase=asked.codebase, file=asked.file)
    searches = tuple(_search(call, text, where, place) for text in asked.queries)
    recalled = _merged(searches)
    ranks = {record.memory.id: rank for rank, record in enumerate(recalled)}
    return SessionMaterial(
        intentions=_intentions(call, asked),
        pinned=tuple(sorted(pinned, key=lambda record: ranks.get(record.memory.id, len(ranks)))),
        recalled=recalled,
        patterns=_notes(call, asked, PATTERN),
        decisions=_notes(call, asked, DECISION),
        predicted=_predicted(call, asked),
        searches=searches,
    )


def record_briefing(call: Call, material: SessionMaterial, shown: Collection[str]) -> None:
    """Emit the searches of a briefing, and leave one trace on every memory that it showed."""
    record = call.engine.settings.memory.record
    for query, recalled in material.searches:
        hits = [hit for hit in recalled.hits if hit.record.memory.id in shown]
        emit_search(call, query, recalled, hits, recorded=record)
    if record:
        notes = (*material.patterns, *material.decisions)
        parts = (*material.pinned, *material.recalled, *notes, *material.predicted)
        records = {record.memory.id: record for record in parts}
        leave_trace(call, [record for name, record in records.items() if name in shown])


def needs(call: Call, *, memories: int, due: int) -> Needs:
    """Whether a backup, reviews, a dream or archiving are due."""
    return Needs(
        backup=backup_warning(call, memories) is not None,
        review=due > MANY_DUE,
        dream=sleep_needs(call).dream,
        gc=worth_archiving(call),
    )


def _search(call: Call, text: str, where: Filter, place: Context) -> tuple[RecallQuery, Recalled]:
    query = RecallQuery(
        text=text,
        where=where,
        limit=PER_QUERY,
        context=place,
        min_confidence=Mode.BALANCED.depth.confidence,
        reinstate=False,
    )
    return query, recall(call, query)


def _merged(searches: tuple[tuple[RecallQuery, Recalled], ...]) -> tuple[Record, ...]:
    """The hits of all searches, each once, by their best score."""
    hits = [hit for _, recalled in searches for hit in recalled.hits]
    hits.sort(key=lambda hit: (-hit.score, hit.record.memory.id))
    best: dict[str, Record] = {}
    for hit in hits:
        best.setdefault(hit.record.memory.id, hit.record)
    return tuple(best.values())


def _notes(call: Call, asked: SessionQuery, kind: str) -> tuple[Record, ...]:
    """The strongest notes about the codebase; those that name the current file come first."""
    if asked.codebase is None:
        return ()
    found = notes(call, kind, asked.codebase, asked.home)
    if asked.file:
        found.sort(key=lambda record: asked.file not in files_of(record.memory))
    return tuple(found[:NOTES])


def _intentions(call: Call, asked: SessionQuery) -> tuple[Looked, ...]:
    if asked.situation is None:
        return ()
    return tuple(relevant(call, asked.situation, asked.home)[:INTENTIONS])


def _predicted(call: Call, asked: SessionQuery) -> tuple[Record, ...]:
    """What is likely to be needed next; nothing that is only a guess."""
    if not asked.foresee:
        return ()
    busy = CurrentWork(file=asked.file, topics=asked.topics, codebase=asked.codebase)
    record = call.engine.settings.memory.record
    found = predict(call, busy, PREDICTIONS, within=asked.within, record=record, fall_back=False)
    return tuple(one.record for one in found.predictions if one.confidence >= SUGGESTED)

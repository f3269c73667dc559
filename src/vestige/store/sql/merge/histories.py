"""Reads the histories of a relational store."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np

from vestige.core.documents import LOCAL
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, LogEvent
from vestige.store.contract.changes import Embedded, Piece, Tokens
from vestige.store.merge.histories import (
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
    ever_within,
    successors,
)
from vestige.store.merge.union import Key, edge, subject
from vestige.store.sql.database import Database
from vestige.store.sql.filters import json_text, listed
from vestige.store.sql.rows import documents, memories, store_facts
from vestige.store.sql.rows import history as history_rows
from vestige.store.sql.rows.documents import Name

BATCH = 500
"""The number of histories read at once."""
EdgeName = tuple[str, str, str]
N = TypeVar("N")
T = TypeVar("T")

# The conditions are those of the indexes, word by word: else SQLite does not use them.
OF_EDGES = "e.kind IN ('edge.linked', 'edge.unlinked')"
OF_DOCUMENTS = "e.kind IN ('document.put', 'document.dropped')"
TARGET = "json_extract(e.payload, '$.target')"
KIND = "json_extract(e.payload, '$.kind')"
ID = "json_extract(e.payload, '$.id')"
ASKED = history_rows.SELECT.replace("FROM events e", "FROM json_each(?) {named} CROSS JOIN events e")
BY_STAMP = "ORDER BY e.clock, e.node, e.seq"

CURVE = f"{history_rows.SELECT} WHERE e.kind = 'curve.tuned' {BY_STAMP}"
OF_MEMORIES = f"{ASKED.format(named='w')} ON e.memory_id = w.value WHERE NOT {OF_EDGES} {BY_STAMP}"
EDGES = (
    f"{ASKED.format(named='t')} ON e.memory_id = json_extract(t.value, '$[0]')"
    f" AND {TARGET} = json_extract(t.value, '$[1]')"
    f" AND {KIND} = json_extract(t.value, '$[2]') WHERE {OF_EDGES} {BY_STAMP}"
)
DOCUMENTS = (
    f"{ASKED.format(named='t')} ON {KIND} = json_extract(t.value, '$[0]')"
    f" AND {ID} = json_extract(t.value, '$[1]')"
    f" WHERE {OF_DOCUMENTS} {BY_STAMP}"
)
EVERY_MEMORY = "SELECT id FROM memories UNION SELECT id FROM tombstones ORDER BY 1"
EVERY_EDGE = f"SELECT DISTINCT e.memory_id, {TARGET}, {KIND} FROM events e WHERE {OF_EDGES} ORDER BY 1, 2, 3"
EVERY_DOCUMENT = (
    f"SELECT {KIND}, {ID} FROM events e WHERE {OF_DOCUMENTS}"
    " UNION SELECT kind, id FROM documents ORDER BY 1, 2"
)
AT_MEMORIES = (
    f"SELECT e.memory_id, {TARGET}, {KIND}"
    f" FROM json_each(?) w CROSS JOIN events e ON e.memory_id = w.value WHERE {OF_EDGES}"
    f" UNION SELECT e.memory_id, {TARGET}, {KIND}"
    f" FROM json_each(?) w CROSS JOIN events e ON {TARGET} = w.value WHERE {OF_EDGES}"
)
VECTORS = (
    'SELECT m.id, v.start, v."end", v.vector, v.text_hash FROM memories m JOIN vectors v ON v.key = m.key'
    " WHERE m.id IN (SELECT value FROM json_each(?)) AND +v.profile = ? ORDER BY v.id"
)
TOKENS = (
    "SELECT m.id, t.bits, t.asked FROM memories m JOIN token_bits t ON t.key = m.key"
    " WHERE m.id IN (SELECT value FROM json_each(?)) AND t.profile = ?"
)


def export(db: Database, where: Filter | None, access: Access, *, vectors: bool) -> Iterator[EntityHistory]:
    """Every history, or those that pass the filter within the access; inside one read transaction."""
    if where is None and access == EVERYTHING:
        curve = of_curve(db)
        yield from [curve] if curve.events else []
        every = (row[0] for row in db.execute(EVERY_MEMORY))
        yield from _in_batches(every, lambda some: of_memories(db, some, vectors=vectors))
        yield from _in_batches(db.execute(EVERY_EDGE), lambda some: of_edges(db, some))
        shared = (name for name in db.execute(EVERY_DOCUMENT) if name[0] not in LOCAL)
        yield from _in_batches(shared, lambda some: of_documents(db, some))
    else:
        yield from _selected(db, where, access, vectors=vectors)


def _selected(
    db: Database, where: Filter | None, access: Access, *, vectors: bool
) -> Iterator[EntityHistory]:
    keys = memories.keys(db, history_rows.clause_at(db, where or ANYTHING, access))
    chosen = sorted(memories.ids_of(db, keys.tolist()).values())
    exported: set[str] = set()
    for memory in _in_batches(chosen, lambda some: of_memories(db, some, vectors=vectors)):
        if ever_within(memory, access) and not _names_beyond(db, memory, access):
            exported.add(memory.memory_id)
            yield memory
    between = (ends for ends in db.execute(EVERY_EDGE) if ends[0] in exported and ends[1] in exported)
    for history in _in_batches(between, lambda some: of_edges(db, some)):
        if edge(history) is not None:
            yield history
    near = sorted(name for name in documents.reached(db, access) if name[0] not in LOCAL)
    for filed in _in_batches(near, lambda some: of_documents(db, some)):
        cites = () if filed.document is None else filed.document.cites
        if exported.issuperset(cites) and (where is None or cites):
            yield filed


def _names_beyond(db: Database, history: MemoryHistory, access: Access) -> bool:
    """Whether a history names a memory that is not accessible."""
    named = () if access == EVERYTHING else successors(history)
    return any(not access.allows(memory) for memory in memories.present(db, named)) if named else False


def of_curve(db: Database) -> CurveHistory:
    return CurveHistory(events=tuple(_without_position(row) for row in db.execute(CURVE)))


def of_memories(db: Database, memory_ids: Collection[str], *, vectors: bool = False) -> list[MemoryHistory]:
    """The histories of these memories, as far as known, in the requested order."""
    events = _by_subject(db.execute(OF_MEMORIES, (listed(memory_ids),)))
    versions = history_rows.versions(db, memory_ids)
    embedded = _embedded(db, memory_ids) if vectors else {}
    return [
        MemoryHistory(
            memory_id=memory_id,
            events=tuple(events["memory", memory_id]),
            versions=versions.get(memory_id, ()),
            embedded=embedded.get(memory_id),
        )
        for memory_id in memory_ids
        if ("memory", memory_id) in events
    ]


def of_edges(db: Database, names: Collection[EdgeName]) -> list[EdgeHistory]:
    events = _by_subject(db.execute(EDGES, (json_text(list(names)),)))
    return [
        EdgeHistory(source_id=name[0], target_id=name[1], kind=name[2], events=tuple(events["edge", *name]))
        for name in names
        if ("edge", *name) in events
    ]


def edges_at(db: Database, memory_ids: Collection[str]) -> list[EdgeName]:
    """The edges that ever led from or to these memories."""
    return db.execute(AT_MEMORIES, 2 * (listed(memory_ids),)).fetchall()


def of_documents(db: Database, names: Collection[Name]) -> list[DocumentHistory]:
    events = _by_subject(db.execute(DOCUMENTS, (json_text(list(names)),)))
    filed = documents.stamped(db, names)
    return [
        DocumentHistory(
            kind=kind,
            id=document_id,
            events=tuple(events.get(("document", kind, document_id), ())),
            document=document,
            clock=clock,
            node=node,
        )
        for kind, document_id in names
        for document, (clock, node) in [filed.get((kind, document_id), (None, (0, "")))]
        if document is not None or ("document", kind, document_id) in events
    ]


def _embedded(db: Database, memory_ids: Collection[str]) -> dict[str, Embedded]:
    """The vectors in use of these memories. The tokens of all pieces are with the first one."""
    profile = store_facts.profile(db)
    if profile is None:
        return {}
    asked = (listed(memory_ids), profile.id)
    width = -(-profile.signature.dimension // 8)
    tokens = {
        memory_id: Tokens(
            bits=np.frombuffer(bits, dtype=np.uint8).reshape(-1, width),
            asked=np.frombuffer(flags, dtype=np.uint8).astype(np.bool_),
        )
        for memory_id, bits, flags in db.execute(TOKENS, asked)
    }
    found: dict[str, Embedded] = {}
    for memory_id, start, end, vector, text_hash in db.execute(VECTORS, asked):
        numbers = np.frombuffer(vector, dtype="<f4")
        piece = Piece(start=start, end=end, vector=numbers, tokens=tokens.pop(memory_id, None))
        known = found.get(memory_id)
        pieces = (piece,) if known is None else (*known.pieces, piece)
        found[memory_id] = Embedded(signature=profile.signature, text_hash=text_hash, pieces=pieces)
    return found


def _without_position(row: Sequence[object]) -> LogEvent:
    return replace(history_rows.from_row(tuple(row)), position=0)


def _by_subject(rows: Iterable[Sequence[object]]) -> dict[Key, list[LogEvent]]:
    found: dict[Key, list[LogEvent]] = defaultdict(list)
    for row in rows:
        event = _without_position(row)
        found[subject(event)].append(event)
    return found


def _in_batches(names: Iterable[N], load: Callable[[Sequence[N]], Sequence[T]]) -> Iterator[T]:
    """Load what belongs to all names, a batch at a time."""
    coming = iter(names)
    while some := list(islice(coming, BATCH)):
        yield from load(some)

"""Rows of earlier revisions, tombstones and the log of changes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any

import numpy as np
import orjson

from vestige.cognition.text.analyser import text_hash
from vestige.core.candidates import TermStatistics
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    ANYTHING,
    EVERYTHING,
    NO_METADATA,
    Access,
    Evidence,
    Filter,
    LogEvent,
    Memory,
    Revision,
    Tombstone,
)
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import DROPPED, LINKED, PUT, REMARKED, UNLINKED
from vestige.store.contract.search import Reworded
from vestige.store.filter_rule import passed, stands
from vestige.store.sql.database import Database, Rows
from vestige.store.sql.filters import (
    Condition,
    RowCodec,
    SqlConditions,
    clause,
    in_scope,
    json_text,
    listed,
    moment_text,
    within,
)
from vestige.store.sql.rows import documents, memories, strengths

# A memory's last revision by then, or its first one when even that was written with a later time.
IN_FORCE = (
    "coalesce("
    "(SELECT r.memory FROM revisions r WHERE r.key = m.key AND r.recorded_at <= ? ORDER BY r.revision DESC"
    " LIMIT 1),"
    " (SELECT r.memory FROM revisions r WHERE r.key = m.key ORDER BY r.revision LIMIT 1))"
)
REVISED_SINCE = (
    f"SELECT m.key, {IN_FORCE}, m.text_hash FROM memories m"
    " WHERE m.created_at <= ? AND m.updated_at > ? AND {reach}"
)
EARLIER = (
    f"SELECT m.id, {IN_FORCE} FROM memories m"
    " WHERE m.id IN (SELECT value FROM json_each(?)) AND m.updated_at > ? AND {reach}"
)

EVERY_REVISION = (
    "SELECT m.id, r.memory FROM memories m JOIN revisions r ON r.key = m.key"
    " WHERE m.id IN (SELECT value FROM json_each(?)) ORDER BY m.key, r.revision"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedMemory:
    memory_id: str
    scope: str
    at: datetime


def keep(db: Database, revisions: Iterable[tuple[int, Revision]]) -> None:
    """Write earlier revisions under their memories' keys."""
    db.executemany(
        "INSERT INTO revisions (key, revision, recorded_at, ended_at, reason, memory)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                key,
                past.memory.revision,
                moment_text(past.recorded_at),
                moment_text(past.ended_at),
                past.reason,
                json_text(dict(zip(memories.COLUMNS, memories.to_row(past.memory), strict=True))),
            )
            for key, past in revisions
        ],
    )


def drop(db: Database, keys: Iterable[int]) -> None:
    """Remove the earlier revisions of memories."""
    db.executemany("DELETE FROM revisions WHERE key = ?", [(key,) for key in keys])


def versions(db: Database, memory_ids: Collection[str]) -> dict[str, tuple[Memory, ...]]:
    """Every state of these memories, the present one last; unknown ones are left out."""
    asked = (listed(memory_ids),)
    found: dict[str, list[Memory]] = defaultdict(list)
    for memory_id, text in db.execute(EVERY_REVISION, asked):
        found[memory_id].append(memory_from_json(text))
    for memory in memories.present(db, memory_ids):
        found[memory.id].append(memory)
    return {memory_id: tuple(several) for memory_id, several in found.items()}


def of(db: Database, memory_id: str, access: Access) -> list[Revision]:
    """A memory's earlier revisions, oldest first."""
    visible = clause(ANYTHING, access)
    found = db.execute(
        f"SELECT m.key FROM memories m WHERE m.id = ? AND {visible.sql}", (memory_id, *visible.params)
    ).fetchone()
    if found is None:
        raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
    rows = db.execute(
        "SELECT memory, recorded_at, ended_at, reason FROM revisions WHERE key = ? ORDER BY revision", found
    )
    past = (
        Revision(
            memory=memory_from_json(memory),
            recorded_at=datetime.fromisoformat(recorded_at),
            ended_at=datetime.fromisoformat(ended_at),
            reason=reason,
        )
        for memory, recorded_at, ended_at, reason in rows
    )
    return [revision for revision in past if access.allows(revision.memory)]


def earlier(db: Database, memory_ids: Sequence[str], moment: datetime, access: Access) -> dict[str, Memory]:
    """The memories that were revised after a moment, in their state at that moment."""
    visible, then = clause(ANYTHING, access), moment_text(moment)
    rows = db.execute(EARLIER.format(reach=visible.sql), (then, listed(memory_ids), then, *visible.params))
    were = (memory_from_json(memory) for _, memory in rows if memory is not None)
    return {memory.id: memory for memory in were if access.allows(memory)}


def clause_at(db: Database, where: Filter, access: Access, *, worded: bool = False) -> SqlConditions:
    """The SQL of a filter with `known_at`: a memory that was revised since is filtered by the revision in
    force then. Both that and the present memory must be within the access. `worded` leaves out memories with
    other words then."""
    if where.known_at is None:
        return clause(where, access)
    then = [key for key, _, reworded in _then(db, where, access) if not (worded and reworded)]
    return clause(where, access, then=then)


def reworded(db: Database, where: Filter, access: Access, limit: int, statistics: TermStatistics) -> Reworded:
    """Memories that pass the filter and had other words at `known_at`, in that state, last revised first."""
    then = {key: memory for key, memory, reworded in _then(db, where, access) if reworded}
    keys = np.array(list(then), dtype=np.int64)
    retained = clause(where, access).retained
    found = [
        (record, then[key])
        for key, record in zip(keys.tolist(), memories.by_key(db, keys), strict=True)
        if stands(record.memory, where)
        and (where.due_by is None or record.strength.due_at <= where.due_by)
        and where.recalled in (None, record.strength.recalled)
        and (retained is None or strengths.is_retained(record.strength, retained))
    ]
    found.sort(key=lambda pair: pair[0].memory.id)
    found.sort(key=lambda pair: pair[0].memory.updated_at, reverse=True)
    return Reworded(
        records=tuple(replace(record, memory=memory) for record, memory in found[:limit]),
        statistics=statistics,
    )


def _then(db: Database, where: Filter, access: Access) -> Iterator[tuple[int, Memory, bool]]:
    """Memories that were revised after `known_at` and passed the filter then: the key, the state at that
    moment, and whether the text is another one now."""
    if where.known_at is None:
        return
    visible, moment = clause(ANYTHING, access), moment_text(where.known_at)
    rows = db.execute(
        REVISED_SINCE.format(reach=visible.sql), (moment, moment, moment, *visible.params)
    ).fetchall()
    first = np.array([key for key, memory, _ in rows if memory is None], dtype=np.int64)
    only = {
        key: record.memory for key, record in zip(first.tolist(), memories.by_key(db, first), strict=True)
    }
    for key, text, present in rows:
        memory = only[key] if text is None else memory_from_json(text)
        if passed(memory, where, access):
            yield key, memory, text_hash(memory) != present


def texts(db: Database, key: int) -> set[str]:
    """Every text of a memory's earlier revisions."""
    rows = db.execute("SELECT memory FROM revisions WHERE key = ?", (key,))
    earlier = [memory_from_json(row[0]) for row in rows]
    return {text for memory in earlier for text in (memory.content, *memory.phrasings)}


def bury(db: Database, buried: Iterable[EndedMemory]) -> None:
    """Write tombstones."""
    db.executemany(
        "INSERT INTO tombstones (id, scope, deleted_at) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET scope = excluded.scope, deleted_at = excluded.deleted_at",
        [(one.memory_id, one.scope, moment_text(one.at)) for one in buried],
    )


def buried_among(db: Database, memory_ids: Iterable[str]) -> set[str]:
    """Which of these ids were deleted."""
    return {row[0] for row in ask_buried(db, memory_ids)}


def ask_buried(db: Database, memory_ids: Iterable[str]) -> Rows:
    """A row for each of these ids that was deleted, not read yet."""
    return db.execute(
        "SELECT id FROM tombstones WHERE id IN (SELECT value FROM json_each(?))", (listed(memory_ids),)
    )


def tombstone(db: Database, memory_id: str, access: Access) -> Tombstone | None:
    """A tombstone within the access. It has no domains, so limited domains never match one."""
    if access.domains is not None:
        return None
    visible = within("scope", ("/",) if access.scopes is None else access.scopes)
    row = db.execute(
        f"SELECT deleted_at FROM tombstones WHERE id = ? AND ({visible.sql})", (memory_id, *visible.params)
    ).fetchone()
    return Tombstone(memory_id=memory_id, deleted_at=datetime.fromisoformat(row[0])) if row else None


def memory_from_json(text: str) -> Memory:
    columns = orjson.loads(text)  # an older Vestige wrote fewer of them
    return memories.from_row([columns.get(name) for name in memories.COLUMNS])


# -- The append-only event log, numbered inside the write transaction, in commit order

CODEC = RowCodec("position node seq clock at:moment kind memory_id scope payload:mapping")
from_row = CODEC.reader(LogEvent)
INSERT = (
    f"INSERT INTO events ({', '.join(CODEC.columns)}, prior, new) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT = f"SELECT {', '.join(f'e.{column}' for column in CODEC.columns)} FROM events e"
NAMED = (
    f"{SELECT.replace('FROM events e', 'FROM json_each(?) t CROSS JOIN events e')}"
    " ON e.node = json_extract(t.value, '$[0]') AND e.seq = CAST(json_extract(t.value, '$[1]') AS BIGINT)"
)

OF_DOCUMENT = "d.kind = json_extract(e.payload, '$.kind') AND d.id = json_extract(e.payload, '$.id')"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """An event of this node that waits for its numbers. `around` are the strengths before and after an
    evidence event, as JSON."""

    clock: int
    at: datetime
    kind: str
    memory_id: str | None
    scope: str
    payload: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)
    around: tuple[str, str] | None = None


def reading(db: Database) -> int:
    """The highest clock reading that was given or seen here."""
    (last,) = db.execute("SELECT reading FROM clock").fetchone()
    return int(last)


def advance(db: Database, reading: int) -> None:
    """Record a reading, so that no lower one is given again."""
    db.execute("UPDATE clock SET reading = ? WHERE reading < ?", (reading, reading))


def append(
    db: Database, node: str, entries: Sequence[LogEntry], *, position: int, seq: int
) -> list[LogEvent]:
    """Write events of this node and give them the positions and sequence numbers after these."""
    rows = [
        (
            position + number,
            node,
            seq + number,
            entry.clock,
            moment_text(entry.at),
            entry.kind,
            entry.memory_id,
            entry.scope,
            json_text(entry.payload),
            *(entry.around or (None, None)),
        )
        for number, entry in enumerate(entries, start=1)
    ]
    db.executemany(INSERT, rows)
    return [from_row(row[:-2]) for row in rows]


def take(db: Database, events: Sequence[LogEvent]) -> None:
    """Append events of other stores, under their own names."""
    position = last_position(db)
    at_end = [replace(event, position=position + number) for number, event in enumerate(events, start=1)]
    db.executemany(INSERT, [(*CODEC.to_row(event), None, None) for event in at_end])


def known(db: Database, names: Iterable[tuple[str, int]]) -> list[LogEvent]:
    """The events with these nodes and numbers that are here."""
    return [from_row(row) for row in db.execute(NAMED, (json_text(list(names)),))]


def rename(db: Database, event: LogEvent, node: str) -> None:
    """Put an event under another node, and the document that it put."""
    db.execute("UPDATE events SET node = ? WHERE node = ? AND seq = ?", (node, event.node, event.seq))
    if event.kind == PUT:
        put = (event.payload["kind"], event.payload["id"], event.clock, event.node)
        db.execute(
            "UPDATE documents SET node = ? WHERE kind = ? AND id = ? AND clock = ? AND node = ?", (node, *put)
        )


def set_back(db: Database, events: Iterable[LogEvent]) -> None:
    """Give events that are here the clocks of these."""
    db.executemany(
        "UPDATE events SET clock = ? WHERE node = ? AND seq = ?",
        [(event.clock, event.node, event.seq) for event in events],
    )


def note_strengths(db: Database, around: Mapping[tuple[str, int], tuple[str, str]]) -> None:
    """Write the strengths before and after evidence events, by node and number."""
    db.executemany(
        "UPDATE events SET prior = ?, new = ? WHERE node = ? AND seq = ?",
        [(*both, *name) for name, both in around.items()],
    )


def last_position(db: Database) -> int:
    """The position of the last event, 0 without any."""
    (position,) = db.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
    return int(position)


def read(db: Database, *, access: Access, memory_id: str | None, after: int, limit: int) -> list[LogEvent]:
    """Events after a position, in commit order."""
    conditions = [Condition.of("e.position > ?", after)]
    if memory_id is not None:
        conditions.append(Condition.of("e.memory_id = ?", memory_id))
    if access != EVERYTHING:
        conditions.extend(_readable(access))
    wanted = SqlConditions(conditions=tuple(conditions))
    rows = db.execute(f"{SELECT} WHERE {wanted.sql} ORDER BY e.position LIMIT ?", (*wanted.params, limit))
    return [from_row(row) for row in rows]


def latest(db: Database, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
    """The matching events, the last one first."""
    readable = () if access == EVERYTHING else _readable(access)
    wanted = SqlConditions(conditions=(*_asked(asked), *readable))
    rows = db.execute(
        f"{SELECT} WHERE {wanted.sql} ORDER BY e.position DESC LIMIT ?", (*wanted.params, limit)
    )
    return [from_row(row) for row in rows]


def _asked(asked: LogQuery) -> Iterator[Condition]:
    if asked.memory_id is not None:
        yield Condition.of("e.memory_id = ?", asked.memory_id)
    if asked.since is not None:
        yield Condition.of("e.at >= ?", moment_text(asked.since))
    if asked.until is not None:
        yield Condition.of("e.at < ?", moment_text(asked.until))
    if asked.before is not None:
        yield Condition.of("e.position < ?", asked.before)
    if asked.scope is not None:
        yield in_scope("e.scope", asked.scope, inherited=asked.inherited)
    yield from _of_kind(asked)


def _of_kind(asked: LogQuery) -> Iterator[Condition]:
    said = "coalesce(json_extract(e.payload, '$.evidence'), '')"
    if asked.kinds:
        yield Condition.of(f"e.kind IN ({', '.join('?' * len(asked.kinds))})", *asked.kinds)
    if asked.evidence:
        wanted = tuple(one.value for one in asked.evidence)
        yield Condition.of(f"e.kind = ? AND {said} IN ({', '.join('?' * len(wanted))})", REMARKED, *wanted)
    if not asked.exposures:
        yield Condition.of(f"{said} <> ?", Evidence.EXPOSED.value)


def _readable(access: Access) -> Iterator[Condition]:
    """The conditions for limited access to an event: its scope, its memory in its present state, both ends of
    a link, and the document it is about. A deleted memory has no domains left, so limited domains never match
    its events."""
    visible = clause(ANYTHING, access)
    if access.scopes is not None:
        yield within("e.scope", access.scopes)
    about = "SELECT 1 FROM memories m WHERE m.id = e.memory_id"
    if access.domains is None:
        yield Condition.of(f"NOT EXISTS ({about} AND NOT ({visible.sql}))", *visible.params)
    else:
        yield Condition.of(f"EXISTS ({about} AND {visible.sql})", *visible.params)
    target = "SELECT 1 FROM memories m WHERE m.id = json_extract(e.payload, '$.target')"
    yield Condition.of(
        f"e.kind NOT IN (?, ?) OR EXISTS ({target} AND {visible.sql})", LINKED, UNLINKED, *visible.params
    )
    document = SqlConditions(conditions=(Condition.of(OF_DOCUMENT), *documents.reached_by(access)))
    yield Condition.of(
        f"e.kind NOT IN (?, ?) OR EXISTS (SELECT 1 FROM documents d WHERE {document.sql})",
        PUT,
        DROPPED,
        *document.params,
    )

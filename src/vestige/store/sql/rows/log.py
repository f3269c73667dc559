"""The append-only event log. Numbers are given inside the write transaction, in commit order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from vestige.core.models import ANYTHING, EVERYTHING, NO_METADATA, Access, Evidence, LogEvent, utc
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import DROPPED, LINKED, PUT, REMARKED, UNLINKED
from vestige.store.sql.columns import json_mapping, json_text, moment_text
from vestige.store.sql.database import Database
from vestige.store.sql.filters import Condition, SqlConditions, clause, in_scope, within
from vestige.store.sql.rows import documents

INSERT = (
    "INSERT INTO events (position, node, seq, clock, at, kind, memory_id, scope, payload, prior, new)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT = (
    "SELECT e.position, e.node, e.seq, e.clock, e.at, e.kind, e.memory_id, e.scope, e.payload FROM events e"
)

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
    events, rows = [], []
    for number, entry in enumerate(entries, start=1):
        payload = json_text(entry.payload)
        event = LogEvent(
            position=position + number,
            node=node,
            seq=seq + number,
            clock=entry.clock,
            at=utc(entry.at),
            kind=entry.kind,
            memory_id=entry.memory_id,
            scope=entry.scope,
            payload=json_mapping(payload),
        )
        events.append(event)
        rows.append(_row(event, payload, entry.around))
    db.executemany(INSERT, rows)
    return events


def take(db: Database, events: Sequence[LogEvent]) -> None:
    """Append events of other stores, under their own names."""
    position = last_position(db)
    at_end = [replace(event, position=position + number) for number, event in enumerate(events, start=1)]
    db.executemany(INSERT, [_row(event, json_text(event.payload), None) for event in at_end])


def known(db: Database, names: Iterable[tuple[str, int]]) -> list[LogEvent]:
    """The events with these nodes and numbers that are here."""
    return [from_row(row) for row in db.execute(NAMED, (json_text(list(names)),))]


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


def _row(event: LogEvent, payload: str, around: tuple[str, str] | None) -> tuple[Any, ...]:
    numbers = (event.position, event.node, event.seq, event.clock, moment_text(event.at))
    return (*numbers, event.kind, event.memory_id, event.scope, payload, *(around or (None, None)))


def read(db: Database, *, access: Access, memory_id: str | None, after: int, limit: int) -> list[LogEvent]:
    """Events after a position, in commit order."""
    conditions = [Condition(sql="e.position > ?", params=(after,))]
    if memory_id is not None:
        conditions.append(Condition(sql="e.memory_id = ?", params=(memory_id,)))
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
        yield Condition(sql="e.memory_id = ?", params=(asked.memory_id,))
    if asked.since is not None:
        yield Condition(sql="e.at >= ?", params=(moment_text(asked.since),))
    if asked.until is not None:
        yield Condition(sql="e.at < ?", params=(moment_text(asked.until),))
    if asked.before is not None:
        yield Condition(sql="e.position < ?", params=(asked.before,))
    if asked.scope is not None:
        yield in_scope("e.scope", asked.scope, inherited=asked.inherited)
    yield from _of_kind(asked)


def _of_kind(asked: LogQuery) -> Iterator[Condition]:
    said = "coalesce(json_extract(e.payload, '$.evidence'), '')"
    if asked.kinds:
        yield Condition(sql=f"e.kind IN ({', '.join('?' * len(asked.kinds))})", params=asked.kinds)
    if asked.evidence:
        wanted = tuple(one.value for one in asked.evidence)
        yield Condition(
            sql=f"e.kind = ? AND {said} IN ({', '.join('?' * len(wanted))})", params=(REMARKED, *wanted)
        )
    if not asked.exposures:
        yield Condition(sql=f"{said} <> ?", params=(Evidence.EXPOSED.value,))


def _readable(access: Access) -> Iterator[Condition]:
    """The conditions for limited access to an event: its scope, its memory in its present state, both ends of
    a link, and the document it is about. A deleted memory has no domains left, so limited domains never match
    its events."""
    visible = clause(ANYTHING, access)
    if access.scopes is not None:
        yield within("e.scope", access.scopes)
    about = "SELECT 1 FROM memories m WHERE m.id = e.memory_id"
    if access.domains is None:
        yield Condition(sql=f"NOT EXISTS ({about} AND NOT ({visible.sql}))", params=visible.params)
    else:
        yield Condition(sql=f"EXISTS ({about} AND {visible.sql})", params=visible.params)
    target = "SELECT 1 FROM memories m WHERE m.id = json_extract(e.payload, '$.target')"
    yield Condition(
        sql=f"e.kind NOT IN (?, ?) OR EXISTS ({target} AND {visible.sql})",
        params=(LINKED, UNLINKED, *visible.params),
    )
    document = SqlConditions(conditions=(Condition(sql=OF_DOCUMENT), *documents.reached_by(access)))
    yield Condition(
        sql=f"e.kind NOT IN (?, ?) OR EXISTS (SELECT 1 FROM documents d WHERE {document.sql})",
        params=(PUT, DROPPED, *document.params),
    )


def from_row(row: tuple[Any, ...]) -> LogEvent:  # a row of the driver
    """The event back from its columns."""
    return LogEvent(
        position=row[0],
        node=row[1],
        seq=row[2],
        clock=row[3],
        at=datetime.fromisoformat(row[4]),
        kind=row[5],
        memory_id=row[6],
        scope=row[7],
        payload=json_mapping(row[8]),
    )

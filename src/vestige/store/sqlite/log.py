"""The append-only event log. Its numbers are given inside the write transaction, in commit order."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from vestige.checks import utc
from vestige.models import (
    ANYTHING,
    EVERYTHING,
    NO_METADATA,
    Access,
    Evidence,
    LogEvent,
)
from vestige.store.changes import LINKED, REMARKED, UNLINKED
from vestige.store.logquery import LogQuery
from vestige.store.sqlite.columns import EPOCH, json_mapping, json_text, moment_text
from vestige.store.sqlite.filters import Clause, Condition, clause, in_scope, within

MILLISECOND = timedelta(milliseconds=1)
COUNTER_BITS = 16
# The year 4199. Beyond it the clock only counts on, so that it never leaves 64 bits.
LAST_MILLISECOND = 2**46 - 1
INSERT = (
    "INSERT INTO events (position, node, seq, clock, at, kind, memory_id, scope, payload, prior, new)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SELECT = (
    "SELECT e.position, e.node, e.seq, e.clock, e.at, e.kind, e.memory_id, e.scope, e.payload FROM events e"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event without its numbers. `prior` and `new` are the strengths around a remark, as JSON."""

    at: datetime
    kind: str
    memory_id: str | None
    scope: str
    payload: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)
    prior: str | None = None
    new: str | None = None


def tick(previous: int, at: datetime) -> int:
    """The next reading of the hybrid logical clock: never back, whatever the wall clock did."""
    millisecond = min((utc(at) - EPOCH) // MILLISECOND, LAST_MILLISECOND)
    return max(previous + 1, millisecond << COUNTER_BITS)


def append(db: sqlite3.Connection, node: str, entries: Sequence[Entry]) -> list[LogEvent]:
    """Write events and give them their position, sequence number and clock."""
    last = db.execute("SELECT position, clock FROM events ORDER BY position DESC LIMIT 1").fetchone()
    position, clock = last or (0, 0)
    seq = db.execute("SELECT coalesce(max(seq), 0) FROM events WHERE node = ?", (node,)).fetchone()[0]
    events, rows = [], []
    for number, entry in enumerate(entries, start=1):
        clock = tick(clock, entry.at)
        payload = json_text(entry.payload)
        event = LogEvent(
            position=position + number,
            node=node,
            seq=seq + number,
            clock=clock,
            at=utc(entry.at),
            kind=entry.kind,
            memory_id=entry.memory_id,
            scope=entry.scope,
            payload=json_mapping(payload),
        )
        events.append(event)
        numbers = (event.position, node, event.seq, clock, moment_text(entry.at))
        told = (entry.kind, entry.memory_id, entry.scope, payload, entry.prior, entry.new)
        rows.append((*numbers, *told))
    db.executemany(INSERT, rows)
    return events


def read(
    db: sqlite3.Connection, *, access: Access, memory_id: str | None, after: int, limit: int
) -> list[LogEvent]:
    """Events after a position, in commit order."""
    conditions = [Condition(sql="e.position > ?", params=(after,))]
    if memory_id is not None:
        conditions.append(Condition(sql="e.memory_id = ?", params=(memory_id,)))
    if access != EVERYTHING:
        conditions.extend(_readable(access))
    wanted = Clause(conditions=tuple(conditions))
    rows = db.execute(f"{SELECT} WHERE {wanted.sql} ORDER BY e.position LIMIT ?", (*wanted.params, limit))
    return [_event(row) for row in rows]


def latest(db: sqlite3.Connection, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
    """The events asked for, the last one first."""
    readable = () if access == EVERYTHING else _readable(access)
    wanted = Clause(conditions=(*_asked(asked), *readable))
    rows = db.execute(
        f"{SELECT} WHERE {wanted.sql} ORDER BY e.position DESC LIMIT ?", (*wanted.params, limit)
    )
    return [_event(row) for row in rows]


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
    """What lets a limited access read an event: its scope, its memory as it is now, and both ends of a
    link. A memory that is gone has no domains left, so limited domains never reach its events."""
    reach = clause(ANYTHING, access)
    if access.scopes is not None:
        yield within("e.scope", access.scopes)
    about = "SELECT 1 FROM memories m WHERE m.id = e.memory_id"
    if access.domains is None:
        yield Condition(sql=f"NOT EXISTS ({about} AND NOT ({reach.sql}))", params=reach.params)
    else:
        yield Condition(sql=f"EXISTS ({about} AND {reach.sql})", params=reach.params)
    target = "SELECT 1 FROM memories m WHERE m.id = json_extract(e.payload, '$.target')"
    yield Condition(
        sql=f"e.kind NOT IN (?, ?) OR EXISTS ({target} AND {reach.sql})",
        params=(LINKED, UNLINKED, *reach.params),
    )


def _event(row: tuple[Any, ...]) -> LogEvent:  # a row of the driver
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

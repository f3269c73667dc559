"""Checks that every field of events and documents has its type and is in its range, and the cure.

They find what an older version, which checked less, took in from another store. Events and documents of other
installations that fail are removed, because no reader could use them. Clocks that are too far ahead are set
back to what they would have been: by the same rule in every store, so that stores agree again once each was
repaired.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from vestige.core.clock import EPOCH, MOST_AHEAD, highest_reading, tick, time_of
from vestige.core.models import LogEvent, utc
from vestige.store.contract.trouble import Trouble
from vestige.store.merge.absorb import is_sound
from vestige.store.merge.forks import MARK, is_well_named, named_by_content
from vestige.store.merge.union import (
    NEEDED,
    Key,
    folded,
    name,
    reduced,
    revisions,
    subject,
    versions_of,
    writes,
)
from vestige.store.sql.check.log import HIGHEST
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.filters import json_text, moment_text
from vestige.store.sql.merge import histories
from vestige.store.sql.rows import documents as document_rows
from vestige.store.sql.rows import history as history_rows
from vestige.store.sql.rows import memories, store_facts

logger = logging.getLogger(__name__)

BATCH = 1_000
PAGE = f"{history_rows.SELECT} WHERE e.position > ? ORDER BY e.position LIMIT ?"
FORKED = f"{history_rows.SELECT} WHERE e.node LIKE '%{MARK}%'"
BY_STAMP = f"{history_rows.SELECT} ORDER BY e.clock, e.node, e.seq"
EVERY_DOCUMENT = f"{document_rows.SELECT} ORDER BY d.kind, d.id"
AHEAD = (
    "SELECT node, clock FROM events WHERE clock > ?"
    " UNION ALL SELECT node, clock FROM documents WHERE clock > ?"
)
LATER = "SELECT coalesce(sum(CASE WHEN at > ? THEN 1 ELSE 0 END), 0), count(*) FROM events"


# -- Events


def events(db: Database) -> Iterator[Trouble]:
    """Events with a field of another type or out of its range."""
    own = store_facts.node(db)
    faulty = list(_unsound(db))
    if not faulty:
        return
    mine = [one for one in faulty if one.node == own and one.kind not in NEEDED]
    curable = [one for one in faulty if one not in mine]
    if curable:
        yield Trouble(
            check="events",
            message=f"Events have invalid fields. The first is {_titled(curable[0])}.",
            count=len(curable),
            repair="events",
        )
    if mine:
        yield Trouble(
            check="events",
            message=f"Events of this store itself have invalid fields. The first is {_titled(mine[0])}.",
            count=len(mine),
        )


def _titled(event: LogEvent) -> str:
    return f"{event.seq} of {event.node} ({event.kind})"


def repair_events(db: Database, surfaces: Surfaces) -> None:
    """Remove invalid events of other installations; of those that a memory needs, the invalid part."""
    own, found = store_facts.node(db), list(_unsound(db))
    gone = [one for one in found if one.kind not in NEEDED and one.node != own]
    for one in found:
        if one.kind in NEEDED:
            payload = json_text(reduced(one))
            db.execute("UPDATE events SET payload = ? WHERE position = ?", (payload, one.position))
    db.executemany("DELETE FROM events WHERE position = ?", [(one.position,) for one in gone])
    _rename_forked(db)
    if gone:
        logger.warning("%d invalid events of other installations were removed", len(gone))


def _unsound(db: Database) -> Iterator[LogEvent]:
    last = 0
    while rows := db.execute(PAGE, (last, BATCH)).fetchall():
        last = rows[-1][0]
        # The clock has a check of its own.
        read = (history_rows.from_row(row) for row in rows)
        yield from (one for one in read if not is_sound(replace(one, clock=1)))


def _rename_forked(db: Database) -> None:
    """Name the events of forked nodes by their content again, which a repair has changed."""
    for row in db.execute(FORKED).fetchall():
        event = history_rows.from_row(row)
        if is_well_named(event):
            continue
        named = named_by_content(event)
        if history_rows.known(db, [name(named)]):  # it is the same event
            _drop_twin(db, event)
        else:
            history_rows.rename(db, event, named.node)


def _drop_twin(db: Database, event: LogEvent) -> None:
    """Remove an event that is here twice, and the version of its memory that it made."""
    found = histories.of_memories(db, [event.memory_id] if event.memory_id is not None else [])
    for history in found:
        rest = tuple(one for one in history.events if name(one) != name(event))
        if history.versions and len(writes(rest)) < len(history.versions):
            kept = folded(writes(rest), versions_of(history))
            first = history.versions[0].revision  # the dropped one may have been the first
            versions = [replace(one, revision=first + at) for at, one in enumerate(kept)]
            key = memories.keys_of(db, [history.memory_id])[history.memory_id]
            history_rows.drop(db, [key])
            past = revisions(replace(history, events=rest, versions=tuple(versions)))
            history_rows.keep(db, [(key, one) for one in past])
            db.execute("UPDATE memories SET revision = ? WHERE key = ?", (versions[-1].revision, key))
    db.execute("DELETE FROM events WHERE position = ?", (event.position,))


# -- Documents


def documents(db: Database) -> Iterator[Trouble]:
    """Documents that do not fit their kind: every reader passes them over."""
    unfit = _unfit(db)
    if unfit:
        kind, name = unfit[0]
        yield Trouble(
            check="documents",
            message=f"Documents do not fit their kind. The first is {kind} {name[:80]}.",
            count=len(unfit),
            repair="documents",
        )


def repair_documents(db: Database, surfaces: Surfaces) -> None:
    """Remove the documents that no reader can use."""
    unfit = _unfit(db)
    document_rows.drop(db, unfit, surfaces)
    if unfit:
        logger.warning("%d documents that did not fit their kind were removed", len(unfit))


def _unfit(db: Database) -> list[tuple[str, str]]:
    rows = db.execute(EVERY_DOCUMENT).fetchall()
    return [(row[0], row[1]) for row in rows if document_rows.readable(row[:-2]) is None]


# -- Clocks


def clocks(db: Database, now: datetime) -> Iterator[Trouble]:
    """Readings of a clock that is more than a day ahead of this machine's. They spread to other stores."""
    highest = highest_reading(now)
    ahead = db.execute(AHEAD, (highest, highest)).fetchall()
    if not ahead:
        ahead = [
            (store_facts.node(db), row[0])
            for row in db.execute("SELECT reading FROM clock WHERE reading > ?", (highest,))
        ]
    if not ahead:
        return
    node, reading = min(ahead, key=lambda one: one[1])
    later, total = db.execute(LATER, (moment_text(utc(now) + MOST_AHEAD),)).fetchone()
    slow = 2 * later > total  # nearly everything is in the future: this machine's clock is behind
    advice = " The clock of this machine seems to be behind: set it." if slow else ""
    yield Trouble(
        check="clock",
        message=f"The clock of {node} was more than a day ahead, at {time_of(reading):%Y-%m-%d}. Stores with"
        f" a right clock refuse what it wrote.{advice}",
        severity="warning",
        count=len(ahead),
        repair=None if slow else "clocks",
    )


def repair_clocks(db: Database, now: datetime) -> None:
    """Set clocks that are too far ahead back, record by record, to what they would have been: after the
    events before, and not before the time of the event."""
    highest, latest = highest_reading(now), utc(now) + MOST_AHEAD
    last: dict[Key, int] = {}
    moved: dict[tuple[str, int], int] = {}
    rows = []
    for row in db.execute(BY_STAMP).fetchall():
        event = history_rows.from_row(row)
        key, reading = subject(event), event.clock
        if reading > highest:
            reading = tick(last.get(key, 0), event.at if event.at <= latest else EPOCH)
            moved[event.node, event.clock] = reading
            rows.append((reading, event.position))
        last[key] = reading
    db.executemany("UPDATE events SET clock = ? WHERE position = ?", rows)
    _repair_document_clocks(db, now, last, moved)
    db.execute(f"UPDATE clock SET reading = ({HIGHEST})")


def _repair_document_clocks(
    db: Database, now: datetime, last: dict[Key, int], moved: dict[tuple[str, int], int]
) -> None:
    highest, latest = highest_reading(now), utc(now) + MOST_AHEAD
    for row in db.execute(EVERY_DOCUMENT).fetchall():
        document, (reading, node) = document_rows.readable(row[:-2]), row[-2:]
        if document is None:
            continue
        key = ("document", document.kind, document.id)
        if reading > highest:
            at = document.updated_at if document.updated_at <= latest else EPOCH
            reading = moved.get((node, reading)) or tick(last.get(key, 0), at)
        made, changed = (
            moment_text(at if at <= latest else utc(now)) for at in (document.created_at, document.updated_at)
        )
        db.execute(
            "UPDATE documents SET clock = ?, created_at = ?, updated_at = ? WHERE kind = ? AND id = ?",
            (reading, made, changed, document.kind, document.id),
        )

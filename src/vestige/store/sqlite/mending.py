"""Repairs of what a SQLite store derives. Nothing that is canonical is written here."""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from vestige.cognition.strength import encode
from vestige.store.evidence import Curves
from vestige.store.sql import history, lives, log, memories, reviews
from vestige.store.sql import vectors as dense
from vestige.store.sql.graph import replace as put_edges
from vestige.store.sql.tables import Tables
from vestige.store.sqlite import checkup_files, segments
from vestige.store.sqlite.checkup_log import HIGHEST, UNBURIED
from vestige.store.sqlite.checkup_rows import DERIVED, TAGGED
from vestige.store.sqlite.checkup_vectors import BARE, STALE, USED, misshapen, missized
from vestige.store.sqlite.connection import Connections
from vestige.store.sqlite.words import SqliteSurfaces
from vestige.store.trouble import no_repair
from vestige.store.uniting import edge, ending

BATCH = 500
CITES = (
    "INSERT INTO document_cites (memory, document) SELECT DISTINCT m.key, d.key"
    " FROM documents d, json_each(d.cites) c JOIN memories m ON m.id = c.value"
)


def mend(connections: Connections, repair: str, now: datetime) -> None:
    """Do a repair; InvalidInput for one that is none."""
    if repair in IN_STEPS:
        IN_STEPS[repair](connections, now)
    elif repair in IN_DATABASE:
        with connections.writing() as db:
            IN_DATABASE[repair](db)
    else:
        raise no_repair(repair)


# -- rows ------------------------------------------------------------------------------------------


def _references(db: sqlite3.Connection) -> None:
    """Remove derived rows whose parent is not there. A row may lack more than one."""
    for table in sorted(DERIVED):
        for parent, column, target in _parents(db, table):
            db.execute(f'DELETE FROM {table} WHERE "{column}" NOT IN (SELECT {target} FROM {parent})')


def _parents(db: sqlite3.Connection, table: str) -> list[tuple[str, str, str]]:
    """The tables a table refers to: (parent, its own column, the parent's key)."""
    referred = db.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    return [(row[2], row[3], _primary(db, row[2])) for row in referred]


def _primary(db: sqlite3.Connection, table: str) -> str:
    return str(next(row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]))


def _tags(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM memory_tags")
    db.execute(f"INSERT INTO memory_tags (key, tag) SELECT DISTINCT key, tag FROM ({TAGGED})")


def _citations(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM document_cites")
    db.execute(CITES)


def _strengths(db: sqlite3.Connection) -> None:
    """Give a strength to the memories that lack one: what all their evidence makes."""
    rows = db.execute("SELECT id FROM memories WHERE key NOT IN (SELECT key FROM strengths)").fetchall()
    lacking = [row[0] for row in rows]
    keys, curves = memories.keys_of(db, lacking), Curves.told(lives.of_curve(db).events)
    made = {one.id: encode(one.created_at) for one in memories.present(db, lacking)}
    for life in lives.of_memories(db, lacking):
        if life.versions:
            made[life.memory_id] = curves.folded(life.versions[-1].created_at, life.events).strength
    reviews.put(db, {keys[memory_id]: strength for memory_id, strength in made.items()})


def _vectors(db: sqlite3.Connection) -> None:
    """Remove the vectors that are not of their memory's text and of the model in use."""
    wrong = {row[0] for sql in (STALE, BARE) for row in db.execute(sql)} | misshapen(db)
    wrong.update(missized(db))
    keys = sorted(memories.keys_of(db, wrong).values())
    segments.unlist(db, keys)
    dense.delete(db, keys)
    for table in ("token_bits", "vectors"):
        db.execute(f"DELETE FROM {table} WHERE profile NOT IN {USED}")


# -- what the log tells ----------------------------------------------------------------------------


def _edges(db: sqlite3.Connection) -> None:
    """Make the edges those that the log tells of, between memories that are there."""
    names = db.execute(lives.EVERY_EDGE).fetchall()
    db.execute("DELETE FROM edges")
    for start in range(0, len(names), BATCH):
        told = [edge(life) for life in lives.of_edges(db, names[start : start + BATCH])]
        there = [one for one in told if one is not None]
        keys = memories.keys_of(db, {end for one in there for end in (one.source_id, one.target_id)})
        held = {(keys.get(one.source_id), keys.get(one.target_id), one.kind): one for one in there}
        put_edges(db, {(s, t, kind): one for (s, t, kind), one in held.items() if s and t})


def _tombstones(db: sqlite3.Connection) -> None:
    ids = [row[0] for row in db.execute(UNBURIED)]
    ended = [(life.memory_id, ending(life)) for life in lives.of_memories(db, ids)]
    history.bury(
        db,
        [
            history.Buried(memory_id=memory_id, scope=end.scope, at=end.at)
            for memory_id, end in ended
            if end is not None
        ],
    )


def _curve(db: sqlite3.Connection) -> None:
    w20 = Curves.told(lives.of_curve(db).events).present
    db.execute("INSERT OR REPLACE INTO curve (one, w20) VALUES (1, ?)", (w20,))


def _clock(db: sqlite3.Connection) -> None:
    db.execute("INSERT OR IGNORE INTO clock (one, reading) VALUES (1, 0)")
    log.advance(db, int(db.execute(HIGHEST).fetchone()[0]))


# -- rows in two steps, and files ------------------------------------------------------------------


def _words(connections: Connections, now: datetime) -> None:
    Tables(connections, SqliteSurfaces()).rebuild_words()


def _index(connections: Connections, now: datetime) -> None:
    segments.rebuild(connections)


def _permissions(connections: Connections, now: datetime) -> None:
    for one in checkup_files.exposed(connections.path):
        with suppress(OSError):  # somebody else's
            one.chmod(one.stat().st_mode & 0o700)


def _leftovers(connections: Connections, now: datetime) -> None:
    for one in list(checkup_files.abandoned(connections.path, now)):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one, ignore_errors=True)
        else:
            with suppress(OSError):
                one.unlink()


IN_DATABASE: Mapping[str, Callable[[sqlite3.Connection], None]] = {
    "references": _references,
    "tags": _tags,
    "citations": _citations,
    "strengths": _strengths,
    "vectors": _vectors,
    "edges": _edges,
    "tombstones": _tombstones,
    "curve": _curve,
    "clock": _clock,
}
IN_STEPS: Mapping[str, Callable[[Connections, datetime], None]] = {
    "words": _words,
    "index": _index,
    "permissions": _permissions,
    "leftovers": _leftovers,
}

"""Repairs of rows, each in one transaction. Canonical rows are only written where their fields are invalid
(`fields`)."""

from collections.abc import Callable, Mapping

from vestige.cognition.fsrs.strength import encode
from vestige.store.merge.strength_log import Curves
from vestige.store.merge.union import edge, ending
from vestige.store.sql.check import fields
from vestige.store.sql.check.log import HIGHEST, UNBURIED, ids
from vestige.store.sql.check.rows import TAGGED
from vestige.store.sql.check.vectors import BARE, STALE, USED, misshapen, missized
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.merge import histories
from vestige.store.sql.rows import history as history_rows
from vestige.store.sql.rows import memories, strengths
from vestige.store.sql.rows.edges import replace as put_edges
from vestige.store.sql.search import vectors as sql_vectors

BATCH = 500
CITES = (
    "INSERT INTO document_cites (memory, document) SELECT DISTINCT m.key, d.key"
    " FROM documents d, json_each(d.cites) c JOIN memories m ON m.id = c.value"
)


def _tags(db: Database, surfaces: Surfaces) -> None:
    db.execute("DELETE FROM memory_tags")
    db.execute(f"INSERT INTO memory_tags (key, tag) SELECT DISTINCT key, tag FROM ({TAGGED}) t")


def _citations(db: Database, surfaces: Surfaces) -> None:
    db.execute("DELETE FROM document_cites")
    db.execute(CITES)


def _strengths(db: Database, surfaces: Surfaces) -> None:
    """Give a strength to the memories that lack one, folded from all their evidence."""
    missing = ids(db, "SELECT id FROM memories WHERE key NOT IN (SELECT key FROM strengths)")
    keys, curves = memories.keys_of(db, missing), Curves.from_events(histories.of_curve(db).events)
    made = {one.id: encode(one.created_at) for one in memories.present(db, missing)}
    for history in histories.of_memories(db, missing):
        if history.versions:
            made[history.memory_id] = curves.folded(history.versions[-1].created_at, history.events).strength
    strengths.put(db, {keys[memory_id]: strength for memory_id, strength in made.items()})


def _vectors(db: Database, surfaces: Surfaces) -> None:
    """Remove the vectors that do not belong to their memory's text and the model in use."""
    wrong = {*ids(db, STALE), *ids(db, BARE), *misshapen(db), *missized(db)}
    keys = sorted(memories.keys_of(db, wrong).values())
    surfaces.erase(db, keys)
    sql_vectors.delete(db, keys)
    for table in ("token_bits", "vectors"):
        db.execute(f"DELETE FROM {table} WHERE profile NOT IN {USED}")


# -- Rows made from the log


def _edges(db: Database, surfaces: Surfaces) -> None:
    """Replace the edges by those of the log, between memories that exist."""
    names = db.execute(histories.EVERY_EDGE).fetchall()
    db.execute("DELETE FROM edges")
    for start in range(0, len(names), BATCH):
        found = [edge(history) for history in histories.of_edges(db, names[start : start + BATCH])]
        there = [one for one in found if one is not None]
        keys = memories.keys_of(db, {end for one in there for end in (one.source_id, one.target_id)})
        held = {(keys.get(one.source_id), keys.get(one.target_id), one.kind): one for one in there}
        put_edges(db, {(s, t, kind): one for (s, t, kind), one in held.items() if s and t})


def _tombstones(db: Database, surfaces: Surfaces) -> None:
    ended = [
        history_rows.EndedMemory(memory_id=history.memory_id, scope=end.scope, at=end.at)
        for history in histories.of_memories(db, ids(db, UNBURIED))
        if (end := ending(history)) is not None
    ]
    history_rows.bury(db, ended)


def _curve(db: Database, surfaces: Surfaces) -> None:
    w20 = Curves.from_events(histories.of_curve(db).events).present
    db.execute(
        "INSERT INTO curve (one, w20) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET w20 = excluded.w20",
        (w20,),
    )


def _clock(db: Database, surfaces: Surfaces) -> None:
    db.execute("INSERT INTO clock (one, reading) VALUES (1, 0) ON CONFLICT DO NOTHING")
    history_rows.advance(db, int(db.execute(HIGHEST).fetchone()[0]))


def _events(db: Database, surfaces: Surfaces) -> None:
    fields.repair_events(db, surfaces)
    _curve(db, surfaces)


REPAIRS: Mapping[str, Callable[[Database, Surfaces], None]] = {
    "events": _events,
    "documents": fields.repair_documents,
    "tags": _tags,
    "citations": _citations,
    "strengths": _strengths,
    "vectors": _vectors,
    "edges": _edges,
    "tombstones": _tombstones,
    "curve": _curve,
    "clock": _clock,
}

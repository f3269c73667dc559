"""Rows of memories: writing them, and reading records by id, by key, by filter."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, Access, Filter, Memory, MemoryContext, Order, Record, Strength
from vestige.store.sql.database import Database, Rows
from vestige.store.sql.filters import Condition, RowCodec, SqlConditions, clause, keys_from_text, listed
from vestige.store.sql.rows import store_facts, strengths

CODEC = RowCodec(
    "id scope created_at:moment updated_at:moment node_type source author agent_id session_id thread position"
    " occurred_at:moment? valid_from:moment? valid_until:moment? superseded_by pinned:flag suppression_count"
    " suppressed_at:moment? archived_at:moment? revision tags:strings domains:strings domain_scores:mapping"
    " metadata:mapping content phrasings:strings origin"
)
CONTEXT_CODEC = RowCodec(
    "id content created_at:moment tags:strings scope source session_id occurred_at:moment?"
)
COLUMNS, to_row, from_row = CODEC.columns, CODEC.to_row, CODEC.reader(Memory)
WEIGHED_CODEC = RowCodec("id scope domains:strings suppression_count")
context_from_row, weighed_from_row = CONTEXT_CODEC.reader(MemoryContext), WEIGHED_CODEC.reader(Memory)
WIDTH = len(COLUMNS)
MEMORY = ", ".join(f"m.{column}" for column in COLUMNS)
RECORD = (
    f"SELECT m.key, {MEMORY}, {strengths.STRENGTH}, {store_facts.HAS_VECTORS}"
    " FROM memories m JOIN strengths s ON s.key = m.key"
)
WHOLE, WEIGHED = (
    f"SELECT m.text_hash, {vectors}, m.key, {', '.join(f'm.{column}' for column in columns)},"
    f" {strengths.STRENGTH} FROM memories m JOIN strengths s ON s.key = m.key"
    " WHERE m.id IN (SELECT value FROM json_each(?))"
    for vectors, columns in ((store_facts.HAS_VECTORS, COLUMNS), ("0", WEIGHED_CODEC.columns))
)
CONTEXT = f"SELECT {', '.join(f'm.{column}' for column in CONTEXT_CODEC.columns)} FROM memories m"
KEYS = "SELECT group_concat(m.key) FROM memories m"
INSERT = (
    f"INSERT INTO memories (key, text_hash, {', '.join(COLUMNS)}) VALUES (?, ?, {', '.join('?' * WIDTH)})"
)
UPDATE = (
    f"UPDATE memories SET text_hash = ?, {', '.join(f'{column} = ?' for column in COLUMNS)} WHERE key = ?"
)
ORDERS = {
    Order.NEWEST: "m.created_at DESC, m.id",
    Order.OLDEST: "m.created_at, m.id",
    Order.DUE: "s.due_at, m.id",
    Order.RETENTION: "m.id",  # the rest is numpy's
}

BY_CREATION = (Order.NEWEST, Order.OLDEST)
FEW = 2_000
"""Keys that are sorted rather than looked for in the order of creation."""
WALK = 1_000

MemoryRow = tuple[Any, ...]  # what the driver takes and gives for the columns above


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMemory:
    """A memory as it is written: its columns, and what is derived from its text."""

    columns: MemoryRow
    text_hash: str
    tags: tuple[str, ...]
    fingerprints: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory as a commit needs it: with its strength, its key and the hash of its text."""

    key: int
    memory: Memory
    strength: Strength
    text_hash: str
    embedded: bool


def next_key(last: Rows) -> int:
    """The key of the next memory, from the answer to `Surfaces.ask_last_key`."""
    row = last.fetchone()
    return int(row[0]) + 1 if row else 1


def insert(db: Database, rows: Mapping[int, WrittenMemory]) -> None:
    db.executemany(INSERT, [(key, row.text_hash, *row.columns) for key, row in rows.items()])
    _insert_labels(db, rows)


def update(db: Database, rows: Mapping[int, WrittenMemory]) -> None:
    """The present state of memories that exist."""
    db.executemany(UPDATE, [(row.text_hash, *row.columns, key) for key, row in rows.items()])
    keys = [(key,) for key in rows]
    db.executemany("DELETE FROM memory_tags WHERE key = ?", keys)
    db.executemany("DELETE FROM fingerprints WHERE key = ?", keys)
    _insert_labels(db, rows)


def delete(db: Database, keys: Iterable[int]) -> None:
    """Remove memories, and with them everything that refers to their keys."""
    db.executemany("DELETE FROM memories WHERE key = ?", [(key,) for key in keys])


def by_id(db: Database, memory_ids: Iterable[str], access: Access) -> dict[str, Record]:
    visible = clause(ANYTHING, access)
    rows = db.execute(
        f"{RECORD} WHERE m.id IN (SELECT value FROM json_each(?)) AND {visible.sql}",
        (listed(memory_ids), *visible.params),
    )
    return {row[1]: _record(row) for row in rows}


def contexts(db: Database, memory_ids: Iterable[str], access: Access) -> dict[str, MemoryContext]:
    visible = clause(ANYTHING, access)
    rows = db.execute(
        f"{CONTEXT} WHERE m.id IN (SELECT value FROM json_each(?)) AND {visible.sql}",
        (listed(memory_ids), *visible.params),
    )
    return {row[0]: context_from_row(row) for row in rows}


def stored(db: Database, memory_ids: Iterable[str]) -> dict[str, Stored]:
    """The records of these ids with keys, whatever the access."""
    return stored_in(ask_stored(db, memory_ids))


def ask_stored(db: Database, memory_ids: Iterable[str], *, whole: bool = True) -> Rows:
    """The rows for `stored_in` with the same `whole`, not read yet."""
    return db.execute(WHOLE if whole else WEIGHED, (listed(memory_ids),))


def stored_in(rows: Rows, *, whole: bool = True) -> dict[str, Stored]:
    """Memories by id. Those that are not `whole` have only the fields of `WEIGHED_CODEC`: a commit that
    changes no text reads no more of them, and every search makes one."""
    read, width = (from_row, WIDTH) if whole else (weighed_from_row, len(WEIGHED_CODEC.columns))
    return {
        row[3]: Stored(
            text_hash=row[0],
            embedded=bool(row[1]),
            key=row[2],
            memory=read(row[3 : 3 + width]),
            strength=strengths.from_row(row[3 + width :]),
        )
        for row in rows
    }


def present(db: Database, memory_ids: Iterable[str]) -> list[Memory]:
    """The existing ones of these memories, whatever the access."""
    rows = db.execute(
        f"SELECT {MEMORY} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))",
        (listed(memory_ids),),
    )
    return [from_row(row) for row in rows]


def keys_of(db: Database, memory_ids: Iterable[str]) -> dict[str, int]:
    rows = db.execute(
        "SELECT id, key FROM memories WHERE id IN (SELECT value FROM json_each(?))", (listed(memory_ids),)
    )
    return dict(rows.fetchall())


def by_key(db: Database, keys: NDArray[np.int64]) -> list[Record]:
    """The records of these keys, in the order given."""
    rows = db.execute(f"{RECORD} WHERE m.key IN (SELECT value FROM json_each(?))", (listed(keys),))
    records = {row[0]: _record(row) for row in rows}
    return [records[key] for key in keys.tolist() if key in records]


def ids_of(db: Database, keys: Iterable[int]) -> dict[int, str]:
    rows = db.execute(
        "SELECT key, id FROM memories WHERE key IN (SELECT value FROM json_each(?))", (listed(list(keys)),)
    )
    return dict(rows.fetchall())


def among(keys: NDArray[np.int64]) -> SqlConditions:
    """The condition that a memory has one of these keys."""
    return SqlConditions(
        conditions=(Condition.of("m.key IN (SELECT value FROM json_each(?))", listed(keys)),)
    )


def page(
    db: Database, wanted: SqlConditions, order: Order, now: datetime | None, limit: int, offset: int
) -> list[Record]:
    """A page of the records that match; `now` is needed by retention only."""
    if wanted.retained is None and order is not Order.RETENTION:
        rows = db.execute(
            f"{RECORD} WHERE {wanted.sql} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?",
            (*wanted.params, limit, offset),
        )
        return [_record(row) for row in rows]
    keys, retentions = strengths.retentions(db, wanted, ORDERS[order], now)
    if order is Order.RETENTION:
        keys = keys[np.argsort(retentions, kind="stable")]
    return by_key(db, keys[offset : offset + limit])


def page_of_allowed(
    db: Database,
    allowed: NDArray[np.bool_],
    timed: SqlConditions,
    order: Order,
    limit: int,
    offset: int,
    *,
    selected: bool,
) -> list[Record]:
    """A page of the allowed records in the order of creation. The index has that order: it is followed as far
    as the page needs, unless few are allowed at all. Only a mask that is `selected` says how many."""
    if selected and np.count_nonzero(allowed) <= FEW:
        few = among(np.flatnonzero(allowed))
        wanted = SqlConditions(conditions=(*few.conditions, *timed.conditions))
        return page(db, wanted, order, None, limit, offset)
    walk = iter(
        db.execute(f"SELECT m.key FROM memories m WHERE {timed.sql} ORDER BY {ORDERS[order]}", timed.params)
    )
    found: list[int] = []
    while len(found) < offset + limit and (rows := list(islice(walk, WALK))):
        keys = np.array(rows, dtype=np.int64)[:, 0]
        found.extend(keys[allowed[keys]].tolist())
    return by_key(db, np.array(found[offset : offset + limit], dtype=np.int64))


def after_key(db: Database, wanted: SqlConditions, key: int, limit: int) -> tuple[list[Record], int | None]:
    """The next matching records in the order of arrival, and the last key (None at the end)."""
    rows = db.execute(
        f"{RECORD} WHERE m.key > ? AND {wanted.sql} ORDER BY m.key LIMIT ?", (key, *wanted.params, limit)
    ).fetchall()
    records = [_record(row) for row in rows]
    if wanted.retained is not None:
        records = [record for record in records if strengths.is_retained(record.strength, wanted.retained)]
    return records, rows[-1][0] if rows else None


def texts_after(db: Database, key: int, limit: int) -> tuple[list[tuple[int, Memory]], int | None]:
    """The next memories with their keys in the order of arrival, and the last key (None at the end)."""
    rows = db.execute(
        f"SELECT m.key, {MEMORY} FROM memories m WHERE m.key > ? ORDER BY m.key LIMIT ?", (key, limit)
    ).fetchall()
    return [(row[0], from_row(row[1:])) for row in rows], rows[-1][0] if rows else None


def keys(db: Database, wanted: SqlConditions) -> NDArray[np.int64]:
    if wanted.retained is not None:
        return strengths.retentions(db, wanted, "m.key", wanted.retained.now)[0]
    found = db.execute(f"{KEYS} WHERE {wanted.sql}", wanted.params)
    return keys_from_text(found.fetchone()[0])


def allowed(db: Database, wanted: SqlConditions, size: int) -> NDArray[np.bool_] | None:
    """By key, which memories match, all keys being below `size`; None when all do."""
    through, few = wanted.parted()
    # Each of the few is found by an index of its own; what is let through, often by one without the rows.
    found = [db.execute(f"{KEYS} WHERE {one.excluded}", one.params).fetchone()[0] for one in few]
    left_out = np.concatenate([keys_from_text(text) for text in (None, *found)])
    unlimited = not through.conditions and through.retained is None
    if unlimited and not len(left_out):
        return None
    mask = np.full(size, unlimited, dtype=np.bool_)
    if not unlimited:
        mask[keys(db, through)] = True
    mask[left_out] = False
    return mask


def count(db: Database, wanted: SqlConditions) -> int:
    if wanted.retained is not None:
        return len(keys(db, wanted))
    return int(db.execute(f"SELECT count(*) FROM memories m WHERE {wanted.sql}", wanted.params).fetchone()[0])


def tag_counts(db: Database, access: Access) -> dict[str, int]:
    """Every tag with the number of accessible memories that carry it and are not archived."""
    visible = clause(Filter(), access)
    return dict(
        db.execute(
            "SELECT t.tag, count(*) FROM memory_tags t JOIN memories m ON m.key = t.key"
            f" WHERE {visible.sql} GROUP BY t.tag ORDER BY t.tag",
            visible.params,
        ).fetchall()
    )


def ids_like(db: Database, part: str, access: Access, limit: int) -> list[str]:
    """Ids that begin or end with a text."""
    visible = clause(ANYTHING, access)
    plain = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = db.execute(
        "SELECT m.id FROM memories m WHERE (m.id LIKE ? ESCAPE '\\' OR m.id LIKE ? ESCAPE '\\')"
        f" AND {visible.sql} ORDER BY m.id LIMIT ?",
        (f"{plain}%", f"%{plain}", *visible.params, limit),
    )
    return [memory_id for (memory_id,) in rows]


def same_text(db: Database, fingerprints: Sequence[str], scope: str, wanted: SqlConditions) -> dict[str, str]:
    """The oldest matching memory of exactly this scope for each fingerprint."""
    rows = db.execute(
        "SELECT f.fingerprint, m.id FROM fingerprints f CROSS JOIN memories m ON m.key = f.key"
        " WHERE f.fingerprint IN (SELECT value FROM json_each(?)) AND m.scope = ?"
        f" AND {wanted.sql} ORDER BY m.created_at DESC, m.id DESC",
        (listed(fingerprints), scope, *wanted.params),
    )
    return dict(rows.fetchall())  # the last one written for a fingerprint is the oldest


def refresh_fingerprints(db: Database, fingerprints: Mapping[int, frozenset[str]]) -> None:
    db.executemany("DELETE FROM fingerprints WHERE key = ?", [(key,) for key in fingerprints])
    db.executemany(
        "INSERT INTO fingerprints (key, fingerprint) VALUES (?, ?)",
        [(key, one) for key, several in fingerprints.items() for one in sorted(several)],
    )


# The + keeps SQLite from looking through all vectors of the profile for every memory.
# A memory without a hash was changed by another program, and may be damaged: no vectors are made from it.
WITHOUT_VECTORS = (
    "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.key = m.key AND +v.profile = ?"
    " AND (v.text_hash = m.text_hash OR m.text_hash = ''))"
)
WITHOUT_TOKENS = "NOT EXISTS (SELECT 1 FROM token_bits t WHERE t.key = m.key AND t.profile = ?)"


def unembedded(
    db: Database, profile: int | None, limit: int, *, tokens: bool = False, changed_since: int | None = None
) -> list[Memory]:
    """Memories without vectors of this profile and of their present text, or without tokens where required,
    oldest first; where a store has a journal of changes, only among those that changed since an entry."""
    condition = f"({WITHOUT_VECTORS} OR {WITHOUT_TOKENS})" if tokens else WITHOUT_VECTORS
    changed = "" if changed_since is None else "m.key IN (SELECT key FROM changed_keys WHERE seq > ?) AND "
    since = () if changed_since is None else (changed_since,)
    rows = db.execute(
        f"SELECT {MEMORY} FROM memories m WHERE {changed}{condition} ORDER BY m.created_at, m.id LIMIT ?",
        (*since, *[profile] * condition.count("?"), limit),
    )
    return [from_row(row) for row in rows]


def _insert_labels(db: Database, rows: Mapping[int, WrittenMemory]) -> None:
    db.executemany(
        "INSERT INTO memory_tags (key, tag) VALUES (?, ?)",
        [(key, tag) for key, row in rows.items() for tag in dict.fromkeys(row.tags)],
    )
    db.executemany(
        "INSERT INTO fingerprints (key, fingerprint) VALUES (?, ?)",
        [(key, one) for key, row in rows.items() for one in sorted(row.fingerprints)],
    )


def _record(row: Sequence[Any]) -> Record:
    return Record(
        memory=from_row(row[1 : 1 + WIDTH]),
        strength=strengths.from_row(row[1 + WIDTH : -1]),
        embedded=bool(row[-1]),
    )

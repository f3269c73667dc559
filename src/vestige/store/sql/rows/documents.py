"""Rows of documents, which mechanisms keep besides the memories.

A row that does not fit its kind is passed over, as if it were not there: an older version took it from
another store, or another program wrote it. The next put of that document replaces it, and the doctor finds
it.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, Access
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.filters import Condition, RowCodec, SqlConditions, clause, in_scope, listed, within

logger = logging.getLogger(__name__)

CODEC = RowCodec("kind id scope version created_at:moment updated_at:moment cites:strings body:mapping")
COLUMNS = (*CODEC.columns, "clock", "node")
SELECT = f"SELECT {', '.join(f'd.{column}' for column in COLUMNS)} FROM documents d"
NAMED = f"{SELECT} WHERE d.kind = ? AND d.id IN (SELECT value FROM json_each(?))"
PUT = (
    f"INSERT INTO documents ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    " ON CONFLICT (kind, id) DO UPDATE SET"
    f" {', '.join(f'{column} = excluded.{column}' for column in COLUMNS[2:])} RETURNING key"
)
CITED = "SELECT c.document FROM document_cites c WHERE c.memory IN (SELECT value FROM json_each(?))"

KEPT, KEPT_CHARS = 1_024, 8_192
"""The documents that are kept as they were read, and the most characters of their bodies."""

Name = tuple[str, str]
"""Kind and id."""
PutStamp = tuple[int, str]
"""The stamp of the last put: clock and node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQuery:
    """A filter of documents; unset fields do not filter."""

    kind: str
    ids: Sequence[str] | None = None
    citing: Sequence[str] | None = None
    terms: Sequence[str] | None = None
    scope: str | None = None
    inherited: bool = False


def page(db: Database, wanted: DocumentQuery, access: Access, limit: int, offset: int) -> list[Document]:
    asked = SqlConditions(conditions=(*_asked(wanted), *reached_by(access)))
    rows = db.execute(
        f"{SELECT} WHERE {asked.sql} ORDER BY d.updated_at DESC, d.id LIMIT ? OFFSET ?",
        (*asked.params, limit, offset),
    )
    return [document for row in rows if (document := readable(row[:-2])) is not None]


def count(db: Database, wanted: DocumentQuery, access: Access) -> int:
    asked = SqlConditions(conditions=(*_asked(wanted), *reached_by(access)))
    return int(db.execute(f"SELECT count(*) FROM documents d WHERE {asked.sql}", asked.params).fetchone()[0])


def stored(db: Database, names: Collection[Name]) -> dict[Name, Document]:
    return {name: document for name, (document, _) in stamped(db, names).items()}


def stamped(db: Database, names: Collection[Name]) -> dict[Name, tuple[Document, PutStamp]]:
    """The existing ones of these documents, with the stamps of their last put."""
    wanted: dict[str, list[str]] = {}
    for kind, name in names:
        wanted.setdefault(kind, []).append(name)
    found: dict[Name, tuple[Document, PutStamp]] = {}
    for kind, ids in wanted.items():
        for row in db.execute(NAMED, (kind, listed(ids))):
            document = readable(row[:-2])
            if document is not None:
                found[kind, document.id] = (document, (row[-2], row[-1]))
    return {name: found[name] for name in dict.fromkeys(names) if name in found}


def reached(db: Database, access: Access) -> set[Name]:
    visible = SqlConditions(conditions=tuple(reached_by(access)))
    rows = db.execute(f"SELECT d.kind, d.id FROM documents d WHERE {visible.sql}", visible.params)
    return set(rows.fetchall())


def put(db: Database, document: Document, stamp: PutStamp, cited: Sequence[int] | None) -> None:
    """Write a document, new or in place of its earlier version; `cited` are the keys of its memories, None
    for those of the earlier version."""
    (key,) = db.execute(PUT, (*CODEC.to_row(document), *stamp)).fetchone()
    if cited is None:
        return
    db.execute("DELETE FROM document_cites WHERE document = ?", (key,))
    db.executemany(
        "INSERT INTO document_cites (memory, document) VALUES (?, ?)", [(memory, key) for memory in cited]
    )


def drop(db: Database, names: Collection[Name], surfaces: Surfaces) -> None:
    """Delete documents, so that their words leave the files."""
    if not names:
        return
    surfaces.erase(db)
    db.executemany("DELETE FROM documents WHERE kind = ? AND id = ?", list(names))


def drop_citing(db: Database, keys: Sequence[int]) -> None:
    db.execute(f"DELETE FROM documents WHERE key IN ({CITED})", (listed(keys),))


def _asked(wanted: DocumentQuery) -> Iterator[Condition]:
    yield Condition.of("d.kind = ?", wanted.kind)
    if wanted.ids is not None:
        sql = "d.id IN (SELECT value FROM json_each(?))"
        yield Condition.of(sql, listed(wanted.ids))
    if wanted.citing is not None:
        named = "SELECT m.key FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"
        yield Condition.of(
            f"d.key IN (SELECT c.document FROM document_cites c WHERE c.memory IN ({named}))",
            listed(wanted.citing),
        )
    if wanted.terms is not None:
        named = "SELECT 1 FROM json_each(d.body, '$.terms') t"
        yield Condition.of(
            f"EXISTS ({named} WHERE t.key IN (SELECT value FROM json_each(?)))", listed(wanted.terms)
        )
    if wanted.scope is not None:
        yield in_scope("d.scope", wanted.scope, inherited=wanted.inherited)


def reached_by(access: Access) -> Iterator[Condition]:
    """The conditions for access to a document `d`: its scope and every memory it cites."""
    if access.scopes is not None:
        yield within("d.scope", access.scopes)
    visible = clause(ANYTHING, access)
    if not visible.conditions:
        return
    cited = "SELECT 1 FROM document_cites c JOIN memories m ON m.key = c.memory WHERE c.document = d.key"
    yield Condition.of(f"NOT EXISTS ({cited} AND NOT ({visible.sql}))", *visible.params)
    if access.domains is not None:
        yield Condition.of("EXISTS (SELECT 1 FROM document_cites c WHERE c.document = d.key)")


def readable(row: Sequence[Any]) -> Document | None:
    """The document of a row; None for one that does not fit its kind."""
    try:
        return _read_before(tuple(row)) if len(row[-1]) <= KEPT_CHARS else from_row(row)
    except (InvalidInput, ValueError, TypeError) as exc:
        logger.warning("A document is passed over; `vestige doctor --repair` removes it: %s", exc)
        return None


def from_row(row: Sequence[Any]) -> Document:
    return Document(**CODEC.fields(row))


# Hundreds of habits are read for a prediction, few of which have changed since the last one. The row is the
# key, so a document is only found by its whole text.
_read_before = lru_cache(maxsize=KEPT)(from_row)

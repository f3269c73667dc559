"""The tables that are copied, in the order of their references.

Derived rows (words, places, fingerprints, tags) are derived again with each memory, so that a damaged or
outdated index is not copied. What belongs to an installation is not copied either: its node, its processes,
its last backup, notices, and the files and journals of its caches.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from vestige.core.documents import STAYING
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.store.merge.absorb import check_event
from vestige.store.sql.database import Database, Row, Surfaces
from vestige.store.sql.filters import VectorBytes, listed
from vestige.store.sql.rows import documents, history, memories
from vestige.store.sql.rows import keys as api_keys
from vestige.store.sql.rows import strengths as strength_rows
from vestige.store.sql.rows.memories import WrittenMemory as MemoryRow
from vestige.store.sql.search import index_rows
from vestige.store.sql.search.index_rows import Analysis
from vestige.store.transfer import row_keys
from vestige.store.transfer.columns import Column, Fault, columns
from vestige.store.transfer.row_keys import Key

DAMAGED = (InvalidInput, ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""The errors of reading a value from a damaged row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedRow:
    """A row to copy. `fault` is the reason why it cannot be."""

    row: Row
    fault: Fault = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem(CarriedRow):
    """A memory with its strength, and the rows derived from it."""

    strength: Row = ()
    memory: Memory | None = None
    analysis: Analysis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table: its columns, a unique key that orders it, and the columns that refer to memories. `where`
    leaves out rows that are not copied; `value` makes the value of a row and fails for an invalid one."""

    table: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    of_memories: tuple[str, ...] = ()
    where: str = "1 = 1"
    value: Callable[[Row], object] | None = None
    _places: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = {column.name: place for place, column in enumerate(self.columns)}
        object.__setattr__(self, "_places", places)

    @property
    def names(self) -> str:
        return ", ".join(f'"{column.name}"' for column in self.columns)

    def key(self, row: Row) -> Key:
        return self._values(row, self.order)

    def place(self, name: str) -> int:
        return self._places[name]

    def memory_keys(self, row: Row) -> Key:
        return self._values(row, self.of_memories)

    def count(self, db: Database) -> int:
        return int(db.execute(f"SELECT count(*) FROM {self.table} WHERE {self.where}").fetchone()[0])

    def after(self, db: Database, key: Key | None, limit: int) -> list[Row]:
        """The next rows in order; from the first one on without a key."""
        order = ", ".join(self.order)
        further = f" AND ({order}) > ({row_keys.blanks(key)})" if key is not None else ""
        rows = db.execute(
            f"SELECT {self.names} FROM {self.table} WHERE {self.where}{further} ORDER BY {order} LIMIT ?",
            (*row_keys.bound(key or ()), limit),
        )
        return [tuple(row) for row in rows]

    def batches(self, db: Database, key: Key | None, limit: int) -> Iterator[list[Row]]:
        """All rows after a key, in batches of `limit`."""
        while rows := self.after(db, key, limit):
            yield rows
            key = self.key(rows[-1])

    def items(self, db: Database, rows: Sequence[Row]) -> list[CarriedRow]:
        """Rows that were read from `db`, with their faults."""
        return [CarriedRow(row=row, fault=self.fault(row)) for row in rows]

    def put(self, db: Database, items: Sequence[CarriedRow], surfaces: Surfaces) -> None:
        """Write rows that have no fault."""
        blanks = ", ".join("?" * len(self.columns))
        db.executemany(
            f"INSERT INTO {self.table} ({self.names}) VALUES ({blanks})",
            [self._bound(one.row) for one in items],
        )

    def fault(self, row: Row) -> Fault:
        for column, value in zip(self.columns, row, strict=True):
            found = column.fault(value)
            if found is not None:
                return found
        if self.value is not None:
            try:
                self.value(row)
            except DAMAGED as exc:
                return _said(exc)
        return None

    def _values(self, row: Row, names: Sequence[str]) -> Key:
        return tuple(row[self._places[name]] for name in names)

    def _bound(self, row: Row) -> Row:
        if all(column.kind != "vector" for column in self.columns):
            return row
        pairs = zip(self.columns, row, strict=True)
        return tuple(VectorBytes(value) if column.kind == "vector" else value for column, value in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesTable(TableSpec):
    """The memories, each with its strength, which it must have."""

    def items(self, db: Database, rows: Sequence[Row]) -> list[CarriedRow]:
        """Memories that were read from `db`, with their strengths and derived rows. Analysing them is the
        slow part."""
        keys = listed([row[0] for row in rows])
        sql = f"SELECT {STRENGTHS.names} FROM strengths WHERE key IN (SELECT value FROM json_each(?))"
        strengths = {row[0]: tuple(row) for row in db.execute(sql, (keys,))}
        return [self._item(row, strengths.get(row[0])) for row in rows]

    def put(self, db: Database, items: Sequence[CarriedRow], surfaces: Surfaces) -> None:
        """Write memories, their strengths, tags, fingerprints, words and places."""
        whole = [one for one in items if isinstance(one, MemoryItem)]
        written, analysed = {}, {}
        for one in whole:
            key, text_hash, *columns = one.row
            if one.memory is not None and one.analysis is not None:
                analysed[key] = one.analysis
                written[key] = MemoryRow(
                    columns=tuple(columns),
                    text_hash=text_hash,
                    tags=one.memory.tags,
                    fingerprints=one.analysis.fingerprints,
                )
        memories.insert(db, written)
        STRENGTHS.put(db, [CarriedRow(row=one.strength) for one in whole], surfaces)
        index_rows.put_words(db, analysed, surfaces)

    def _item(self, row: Row, strength: Row | None) -> CarriedRow:
        if strength is None:
            return CarriedRow(row=row, fault="it has no strength")
        fault = self.fault(row) or STRENGTHS.fault(strength)
        if fault is not None:
            return CarriedRow(row=row, fault=fault)
        try:
            memory = memories.from_row(row[2:])
            analysis = index_rows.analyse(memory)
        except DAMAGED as exc:
            return CarriedRow(row=row, fault=_said(exc))
        return MemoryItem(row=row, strength=strength, memory=memory, analysis=analysis)


def _said(exc: Exception) -> str:
    return str(exc) or type(exc).__name__


def _strength(row: Row) -> object:
    return strength_rows.from_row((*row[1:], 0.1542))  # any curve: the store has one for all


_STAYING = ", ".join(f"'{kind}'" for kind in sorted(STAYING))

STRENGTHS = TableSpec(
    table="strengths",
    columns=columns(
        "key:integer stability:number difficulty:number decay_from:integer due_at:moment last_accessed:moment"
        " retention:number retention_at:moment retrieval:number storage:number learning_state:text"
        " reps:integer lapses:integer exposed_at:moment? times_retrieved:integer times_useful:integer"
    ),
    order=("key",),
    of_memories=("key",),
    value=_strength,
)
MEMORIES = MemoriesTable(
    table="memories",
    # In the order of `store.sql.memories.COLUMNS`.
    columns=columns(
        "key:integer text_hash:text id:text scope:text created_at:moment updated_at:moment node_type:text"
        " source:text? author:text? agent_id:text? session_id:text? thread:text? position:integer?"
        " occurred_at:moment? valid_from:moment? valid_until:moment? superseded_by:text? pinned:integer"
        " suppression_count:integer suppressed_at:moment? archived_at:moment? revision:integer tags:json"
        " domains:json domain_scores:json metadata:json content:text phrasings:json origin:text?"
    ),
    order=("key",),
)
GRAVES = TableSpec(
    table="places",
    columns=columns("key:integer length:integer form:integer flags:integer speaker:integer born:integer"),
    order=("key",),
    # The key of a deleted memory is never given again.
    where=f"length = {index_rows.GONE}",
)
DOCUMENTS = TableSpec(
    table="documents",
    columns=columns(
        "key:integer kind:text id:text scope:text version:integer created_at:moment updated_at:moment"
        " cites:json body:json clock:integer node:text"
    ),
    order=("key",),
    where=f"kind NOT IN ({_STAYING})",
    value=lambda row: documents.from_row(row[1:9]),
)
PROFILES = TableSpec(
    table="profiles",
    columns=columns("id:integer profile:text signature:json active:integer created_at:moment?"),
    order=("id",),
)
API_KEYS = TableSpec(
    table="api_keys",
    # In the order of `store.sql.keys.COLUMNS`.
    columns=columns(
        "id:text hash:text label:text permissions:json scopes:json? domains:json? created_at:moment"
        " expires_at:moment? last_used:moment? revoked_at:moment?"
    ),
    order=("id",),
    value=api_keys.from_row,
)
ENDED_LOGINS = TableSpec(table="ended_logins", columns=columns("id:text ends_at:moment"), order=("id",))
PARTS: tuple[TableSpec, ...] = (
    MEMORIES,
    GRAVES,
    TableSpec(table="tombstones", columns=columns("id:text scope:text deleted_at:moment"), order=("id",)),
    TableSpec(
        table="revisions",
        columns=columns(
            "key:integer revision:integer recorded_at:moment ended_at:moment reason:text memory:json"
        ),
        order=("key", "revision"),
        of_memories=("key",),
        value=lambda row: history.memory_from_json(row[5]),
    ),
    TableSpec(
        table="events",
        columns=columns(
            "position:integer node:text seq:integer clock:integer at:moment kind:text memory_id:text?"
            " scope:text payload:json prior:json? new:json?"
        ),
        order=("position",),
        value=lambda row: check_event(replace(history.from_row(row[:9]), clock=1)),
    ),
    TableSpec(
        table="edges",
        columns=columns("source:integer target:integer kind:text weight:number created_at:moment"),
        order=("source", "target", "kind"),
        of_memories=("source", "target"),
    ),
    TableSpec(table="claims", columns=columns("key:text digest:text answer:text at:moment"), order=("key",)),
    TableSpec(
        table="claim_memories",
        columns=columns("key:integer claim:text"),
        order=("key", "claim"),
        of_memories=("key",),
    ),
    DOCUMENTS,
    TableSpec(
        table="document_cites",
        columns=columns("memory:integer document:integer"),
        order=("memory", "document"),
        of_memories=("memory",),
        where=f"document NOT IN (SELECT key FROM documents WHERE kind IN ({_STAYING}))",
    ),
    PROFILES,
    TableSpec(
        table="vectors",
        columns=columns(
            "id:integer profile:integer key:integer start:integer end:integer text_hash:text vector:vector"
        ),
        order=("id",),
        of_memories=("key",),
    ),
    TableSpec(
        table="token_bits",
        columns=columns("key:integer profile:integer bits:bytes asked:bytes"),
        order=("key", "profile"),
        of_memories=("key",),
    ),
    API_KEYS,
    ENDED_LOGINS,
)
"""All copied tables, memories first."""

CURVE = TableSpec(table="curve", columns=columns("one:integer w20:number"), order=("one",))
COMPARED: tuple[TableSpec, ...] = (*PARTS, STRENGTHS, CURVE)
"""All tables that must be equal afterwards, row by row."""

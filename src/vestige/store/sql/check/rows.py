"""Checks that rows belong together: none without its memory, none missing, and none derived from another
text."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from vestige.cognition.text.analyser import text_hash
from vestige.store.contract.trouble import Trouble, about
from vestige.store.sql.database import Database
from vestige.store.sql.filters import listed
from vestige.store.sql.rows import memories
from vestige.store.sql.search import index_rows
from vestige.store.sql.search.index_rows import GONE, ThreadRow

READERS = memories.CODEC.readers
BATCH = 500
VALUES = f"SELECT key, id, {', '.join(READERS)} FROM memories WHERE key > ? ORDER BY key LIMIT ?"
STRAYS = {
    "words": "SELECT count(*) FROM words WHERE {word_key} NOT IN (SELECT key FROM memories)",
    "places": f"SELECT count(*) FROM places WHERE length <> {GONE} AND key NOT IN (SELECT key FROM memories)",
}
MISSING = {
    "strengths": ("strengths", "SELECT id FROM memories WHERE key NOT IN (SELECT key FROM strengths)"),
    "words": ("words", "SELECT id FROM memories WHERE key NOT IN (SELECT {word_key} FROM words)"),
    "places": (
        "words",
        f"SELECT id FROM memories WHERE key NOT IN (SELECT key FROM places WHERE length <> {GONE})",
    ),
    "fingerprints": ("words", "SELECT id FROM memories WHERE key NOT IN (SELECT key FROM fingerprints)"),
}
TAGGED = "SELECT m.key, t.value AS tag FROM memories m, json_each(m.tags) t"
UNTAGGED = (
    "SELECT m.id FROM memories m WHERE m.key IN ("
    f"SELECT key FROM (SELECT key, tag FROM ({TAGGED}) a EXCEPT SELECT key, tag FROM memory_tags) b"
    f" UNION SELECT key FROM (SELECT key, tag FROM memory_tags EXCEPT SELECT key, tag FROM ({TAGGED}) c) d)"
)
CITED = (
    "SELECT d.key, m.key FROM documents d, json_each(d.cites) c JOIN memories m ON m.id = c.value"
    " {but} SELECT document, memory FROM document_cites"
)
"""Differences between the citations in documents and `document_cites`."""


def values(db: Database) -> Iterator[Trouble]:
    """Memories with a value that cannot be read; most other checks fail on them."""
    wrong: dict[str, list[str]] = {}
    last = 0
    while rows := db.execute(VALUES, (last, BATCH)).fetchall():
        last = rows[-1][0]
        for _, memory_id, *columns in rows:
            for (column, read), value in zip(READERS.items(), columns, strict=True):
                if not _reads(read, value):
                    wrong.setdefault(column, []).append(memory_id)
    for column, ids in wrong.items():
        yield from about("values", f"The {column} of memories cannot be read: it is damaged.", ids)


def _reads(read: Callable[[str], object], value: str | None) -> bool:
    try:
        return value is None or read(value) is not None
    except (ValueError, TypeError):
        return False


def strays(db: Database, word_key: str) -> Iterator[Trouble]:
    """Lexical rows without a memory: deleted words must not be counted any more. `word_key` is the column of
    the table `words` that holds the memory's key."""
    for table, sql in STRAYS.items():
        number = db.execute(sql.format(word_key=word_key)).fetchone()[0]
        if number:
            yield Trouble(
                check="strays", message=f"Rows of {table} belong to no memory.", count=number, repair="words"
            )


def missing(db: Database, word_key: str) -> Iterator[Trouble]:
    for table, (repair, sql) in MISSING.items():
        without = [row[0] for row in db.execute(sql.format(word_key=word_key))]
        yield from about("missing rows", f"Memories have no row in {table}.", without, repair=repair)


def tags(db: Database) -> Iterator[Trouble]:
    """The index of tags against the tags of the memories."""
    wrong = [row[0] for row in db.execute(UNTAGGED)]
    yield from about("tags", "The index of tags differs from the tags of memories.", wrong, repair="tags")


def citations(db: Database) -> Iterator[Trouble]:
    """The index of citations against the citations of the documents."""
    said, kept = CITED.split(" {but} ")
    wrong = {row[0] for row in db.execute(f"{said} EXCEPT {kept}")}
    wrong |= {row[0] for row in db.execute(f"{kept} EXCEPT {said}")}
    if wrong:
        yield Trouble(
            check="citations",
            message="The index of citations differs from the citations of documents.",
            count=len(wrong),
            repair="citations",
        )


# -- Rows derived from texts must fit the present texts

AMONG = "IN (SELECT value FROM json_each(?))"
PLACE = f"SELECT key, {', '.join(index_rows.CODEC.columns)} FROM places WHERE key"


MISFITS = {
    "hashes": "The text does not match its hash: the database was damaged, or changed by another program.",
    "words": "The words in the index are not those of the text.",
    "places": "The rows of the table places do not fit the memories.",
    "fingerprints": "The fingerprints do not fit the text.",
}
"""The trouble of each kind of derived row. All but the hashes can be derived again."""


def texts(db: Database, word_key: str) -> Iterator[Trouble]:
    """Analyse every text again, a batch at a time. A missing row is reported by another check."""
    wrong: dict[str, list[str]] = {name: [] for name in MISFITS}
    last: int | None = 0
    while last is not None:
        some, last = memories.texts_after(db, last, BATCH)
        kept = _kept(db, [key for key, _ in some], word_key)
        for key, memory in some:
            right = index_rows.analyse(memory)
            values = (text_hash(memory), right.terms, right.place, right.fingerprints)
            for name, value in zip(MISFITS, values, strict=True):
                if kept[name].get(key, value) != value:
                    wrong[name].append(memory.id)
    for name, message in MISFITS.items():
        yield from about("texts", message, wrong[name], repair=None if name == "hashes" else "words")


def _kept(db: Database, keys: Sequence[int], word_key: str) -> dict[str, Mapping[int, object]]:
    asked = (listed(keys),)
    prints: dict[int, set[str]] = defaultdict(set)
    for key, one in db.execute(f"SELECT key, fingerprint FROM fingerprints WHERE key {AMONG}", asked):
        prints[key].add(one)
    places = db.execute(f"{PLACE} {AMONG} AND length >= 0", asked)
    return {
        "hashes": dict(db.execute(f"SELECT key, text_hash FROM memories WHERE key {AMONG}", asked)),
        "words": dict(db.execute(f"SELECT {word_key}, terms FROM words WHERE {word_key} {AMONG}", asked)),
        "places": {key: ThreadRow(**index_rows.CODEC.fields(row)) for key, *row in places},
        "fingerprints": prints,
    }

"""Whether the rows of a SQLite store belong together: none without its memory, none missing."""

import sqlite3
from collections import Counter
from collections.abc import Iterator

from vestige.store.sql.places import GONE
from vestige.store.trouble import Trouble, about

DERIVED = frozenset({
    "memory_tags", "fingerprints", "strengths", "edges", "vectors", "token_bits", "segments",
    "document_cites", "claim_memories",
})  # fmt: skip
"""The tables whose rows can be made again, so that one without its parent may go. The log tells the edges."""

STRAYS = {
    "words": "SELECT count(*) FROM words WHERE rowid NOT IN (SELECT key FROM memories)",
    "places": f"SELECT count(*) FROM places WHERE length <> {GONE} AND key NOT IN (SELECT key FROM memories)",
}
MISSING = {
    "strengths": ("strengths", "SELECT id FROM memories WHERE key NOT IN (SELECT key FROM strengths)"),
    "words": ("words", "SELECT id FROM memories WHERE key NOT IN (SELECT rowid FROM words)"),
    "places": (
        "words",
        f"SELECT id FROM memories WHERE key NOT IN (SELECT key FROM places WHERE length <> {GONE})",
    ),
    "fingerprints": ("words", "SELECT id FROM memories WHERE key NOT IN (SELECT key FROM fingerprints)"),
}
TAGGED = "SELECT m.key, t.value AS tag FROM memories m, json_each(m.tags) t"
UNTAGGED = (
    "SELECT m.id FROM memories m WHERE m.key IN ("
    f"SELECT key FROM (SELECT key, tag FROM ({TAGGED}) EXCEPT SELECT key, tag FROM memory_tags)"
    f" UNION SELECT key FROM (SELECT key, tag FROM memory_tags EXCEPT SELECT key, tag FROM ({TAGGED})))"
)
CITED = (
    "SELECT d.key, m.key FROM documents d, json_each(d.cites) c JOIN memories m ON m.id = c.value"
    " {but} SELECT document, memory FROM document_cites"
)
"""Which memories documents say they cite, and what `document_cites` says."""


def references(db: sqlite3.Connection) -> Iterator[Trouble]:
    """Rows that belong to a row which is not there."""
    found = Counter((str(row[0]), str(row[2])) for row in db.execute("PRAGMA foreign_key_check"))
    for (table, parent), number in sorted(found.items()):
        yield Trouble(
            check="references",
            message=f"Rows of {table} belong to none of {parent}.",
            count=number,
            repair="references" if table in DERIVED else None,
        )


def strays(db: sqlite3.Connection) -> Iterator[Trouble]:
    """Lexical rows of memories that are not there: deleted words must not be counted any more."""
    for table, sql in STRAYS.items():
        number = db.execute(sql).fetchone()[0]
        if number:
            yield Trouble(
                check="strays", message=f"Rows of {table} are of no memory.", count=number, repair="words"
            )


def missing(db: sqlite3.Connection) -> Iterator[Trouble]:
    """Memories that lack a row every memory has."""
    for table, (repair, sql) in MISSING.items():
        lacking = [row[0] for row in db.execute(sql)]
        yield from about("missing rows", f"Memories have no row in {table}.", lacking, repair=repair)


def tags(db: sqlite3.Connection) -> Iterator[Trouble]:
    """The tags by which memories are found, against those they have."""
    wrong = [row[0] for row in db.execute(UNTAGGED)]
    yield from about("tags", "Memories are found by other tags than they have.", wrong, repair="tags")


def citations(db: sqlite3.Connection) -> Iterator[Trouble]:
    """Documents that would not go with a memory they cite, or would go with one they do not."""
    said, kept = CITED.split(" {but} ")
    wrong = {row[0] for row in db.execute(f"{said} EXCEPT {kept}")}
    wrong |= {row[0] for row in db.execute(f"{kept} EXCEPT {said}")}
    if wrong:
        yield Trouble(
            check="citations",
            message="Documents are listed under other memories than they cite.",
            count=len(wrong),
            repair="citations",
        )

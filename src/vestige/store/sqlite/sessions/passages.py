"""Passages: consecutive entries of a session that are searched as one text.

A passage begins with a prompt of the user, or where the one before it has enough text. Its terms are not
stored beside the index: they come from its entries, before it changes and after.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import field

from vestige.cognition.text.analyser import terms
from vestige.core.lazy_dataclass import dataclass

TALK_CHARS = 2_000
"""The talk of a passage that a new entry is still added to: smaller and larger ones ranked sessions alike."""
WORK_CHARS = 6_000
ENTRIES = (
    "SELECT e.key, e.role, e.text, e.thought, e.output, "
    "(SELECT json_group_array(a.name || ' ' || a.detail || ' ' || a.files) FROM actions a "
    "WHERE a.entry = e.key) "
    "FROM entries e WHERE e.passage = ? ORDER BY e.key"
)


@dataclass(slots=True, kw_only=True)
class LastPassage:
    """The passage of a session that new entries go to."""

    key: int
    talk: int = 0
    work: int = 0
    group: str | None = None


@dataclass(frozen=True, slots=True)
class PassageTerms:
    """The terms of a passage by field, as FTS5 takes them."""

    prompt: list[str] = field(default_factory=list)
    talk: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)

    def row(self) -> tuple[str, str, str, str]:
        return " ".join(self.prompt), " ".join(self.talk), " ".join(self.work), " ".join(self.output)

    def lengths(self) -> tuple[int, int, int]:
        """The number of terms of the talk with the prompts, of the prompts, of the work with the output."""
        said = len(self.prompt) + len(self.talk)
        return said, len(self.prompt), len(self.work) + len(self.output)


def takes(last: LastPassage, *, prompt: bool, group: str | None) -> bool:
    """Whether an entry goes to the last passage. Parts of one message stay together."""
    if group is not None and group == last.group:
        return True
    return not prompt and last.talk < TALK_CHARS and last.work < WORK_CHARS


def terms_of(db: sqlite3.Connection, passage: int) -> PassageTerms:
    """The terms of a passage, from its entries."""
    made = PassageTerms()
    for _key, role, text, thought, output, actions in db.execute(ENTRIES, (passage,)):
        if role == "user":
            made.prompt.extend(terms(text))
        elif role == "summary":
            made.output.extend(terms(text))  # a repetition of what was said before
        else:
            made.talk.extend(terms(text))
        made.talk.extend(terms(thought))
        made.work.extend(terms(" ".join(json.loads(actions))))
        made.output.extend(terms(output))
    return made


def remove(db: sqlite3.Connection, passages: Iterable[int]) -> None:
    """Take passages out of the word index, before their entries change."""
    for passage in passages:
        made = terms_of(db, passage)
        # What was never indexed must not be taken out: it would spoil the counts of the index.
        known = db.execute(
            "SELECT session, talk_terms, prompt_terms, work_terms FROM passages WHERE key = ?", (passage,)
        ).fetchone()
        if known is None or tuple(known[1:]) == (0, 0, 0):
            continue
        db.execute(
            "INSERT INTO words (words, rowid, prompt, talk, work, output) VALUES ('delete', ?, ?, ?, ?, ?)",
            (passage, *made.row()),
        )
        _count(db, passage, known[0], [-number for number in known[1:]])


def add(db: sqlite3.Connection, passages: Sequence[int]) -> None:
    """Put passages into the word index, after their entries changed."""
    for passage in passages:
        made = terms_of(db, passage)
        session = db.execute("SELECT session FROM passages WHERE key = ?", (passage,)).fetchone()[0]
        if not any(made.lengths()):
            continue
        db.execute(
            "INSERT INTO words (rowid, prompt, talk, work, output) VALUES (?, ?, ?, ?, ?)",
            (passage, *made.row()),
        )
        _count(db, passage, session, made.lengths())


def _count(db: sqlite3.Connection, passage: int, session: int, lengths: Sequence[int]) -> None:
    for table, key in (("passages", passage), ("sessions", session)):
        db.execute(
            f"UPDATE {table} SET talk_terms = talk_terms + ?, prompt_terms = prompt_terms + ?, "
            "work_terms = work_terms + ? WHERE key = ?",
            (*lengths, key),
        )

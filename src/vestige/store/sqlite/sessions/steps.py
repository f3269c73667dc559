"""Stores steps of a file: sessions, entries, actions, branches and passages, in one transaction."""

import json
import sqlite3
from collections.abc import Iterable

from vestige.core.transcripts import (
    Action,
    Entry,
    Restarted,
    Rewound,
    RolledBack,
    SessionFacts,
    Titled,
    merged,
    side_branches,
)
from vestige.store.contract.sessions import StepsOfFile
from vestige.store.sqlite.sessions import passages
from vestige.store.sqlite.sessions.passages import LastPassage

FACTS = (
    "cwd",
    "repository",
    "branch",
    "title",
    "title_rank",
    "parent",
    "subagent",
    "started",
    "ended",
    "resume",
)
_TITLE_CHARS = 200


class StepWriter:
    """Writes the steps of one batch; `finish` writes what they add up to."""

    def __init__(self, db: sqlite3.Connection, batch: StepsOfFile) -> None:
        self._db = db
        self._batch = batch
        self._keys: dict[str, int] = {}
        self._facts: dict[str, SessionFacts] = {}
        self._last: dict[int, LastPassage] = {}
        self._removed: set[int] = set()
        self._changed: set[int] = set()
        self._grown: dict[int, int] = {}
        self._prompts: dict[int, int] = {}
        self._branched: set[int] = set()
        self._latest: dict[int, str | None] = {}

    def write(self) -> None:
        for step in self._batch.steps:
            match step:
                case SessionFacts():
                    held = self._facts.get(step.id, SessionFacts(id=step.id))
                    self._facts[step.id] = merged(held, step)
                case Entry():
                    self._entry(step)
                case Titled():
                    self._db.execute(
                        "INSERT OR REPLACE INTO titles VALUES (?, ?)", (self._uid(step.leaf), step.title)
                    )
                case Rewound():
                    self._rewind(self._key(step.session), step.uid)
                case RolledBack():
                    self._roll_back(self._key(step.session), step.turns)
                case Restarted():
                    self._db.execute(
                        "UPDATE entries SET dropped = 1 WHERE session = ?", (self._key(step.session),)
                    )
        self._finish()

    def _key(self, session: str) -> int:
        if session not in self._keys:
            self._db.execute(
                "INSERT OR IGNORE INTO sessions (client, id, path) VALUES (?, ?, ?)",
                (self._batch.client, session, self._batch.path),
            )
            row = self._db.execute(
                "SELECT key FROM sessions WHERE client = ? AND id = ?", (self._batch.client, session)
            ).fetchone()
            self._keys[session] = int(row[0])
        return self._keys[session]

    def _uid(self, uid: str) -> str:
        return f"{self._batch.client}:{uid}"

    def _entry(self, entry: Entry) -> None:
        session, uid = self._key(entry.session), self._uid(entry.uid)
        known = self._db.execute("SELECT key, session, passage FROM entries WHERE uid = ?", (uid,)).fetchone()
        if known is not None:
            if entry.replaces:
                self._replace(int(known[0]), int(known[2]), entry)
            self._end_actions(session, entry)
            return
        latest = self._latest_uid(session)
        parent = self._uid(entry.parent) if entry.parent else None
        passage = self._passage(session, entry)
        key = self._db.execute(
            "INSERT INTO entries (session, uid, parent, grouped, role, at, text, thought, output, passage) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session,
                uid,
                parent,
                entry.group,
                entry.role,
                entry.at,
                entry.text,
                entry.thought,
                entry.output,
                passage,
            ),
        ).lastrowid
        self._write_actions(int(key or 0), session, entry.actions)
        self._end_actions(session, entry)
        self._grown[session] = self._grown.get(session, 0) + 1
        if entry.role == "user" and entry.text:
            self._prompts[session] = self._prompts.get(session, 0) + 1
            self._title_from(entry)
        if parent is not None and latest is not None and parent != latest:
            self._branched.add(session)
        self._latest[session] = uid

    def _latest_uid(self, session: int) -> str | None:
        if session not in self._latest:
            row = self._db.execute(
                "SELECT uid FROM entries WHERE session = ? ORDER BY key DESC LIMIT 1", (session,)
            ).fetchone()
            self._latest[session] = row[0] if row else None
        return self._latest[session]

    def _title_from(self, entry: Entry) -> None:
        """The first line of the first prompt is the title until there is a better one."""
        held = self._facts.get(entry.session, SessionFacts(id=entry.session))
        if held.title is None:
            first = entry.text.strip().split("\n", 1)[0][:_TITLE_CHARS]
            self._facts[entry.session] = merged(
                held, SessionFacts(id=entry.session, title=first, title_rank=0)
            )

    def _replace(self, key: int, passage: int, entry: Entry) -> None:
        """A new version of an entry. One with the same content only becomes part of the branch again."""
        old = self._db.execute(
            "SELECT role, text, thought, output FROM entries WHERE key = ?", (key,)
        ).fetchone()
        new = (entry.role, entry.text, entry.thought, entry.output)
        if tuple(old) != new or not self._has_actions(key, entry.actions):
            self._open(passage)
            self._db.execute(
                "UPDATE entries SET role = ?, text = ?, thought = ?, output = ? WHERE key = ?", (*new, key)
            )
            self._db.execute("DELETE FROM actions WHERE entry = ?", (key,))
            self._write_actions(key, self._key(entry.session), entry.actions)
        self._db.execute("UPDATE entries SET dropped = 0 WHERE key = ?", (key,))

    def _has_actions(self, key: int, actions: tuple[Action, ...]) -> bool:
        rows = self._db.execute(
            "SELECT call, status FROM actions WHERE entry = ? ORDER BY number", (key,)
        ).fetchall()
        return [tuple(row) for row in rows] == [(one.id, one.status) for one in actions]

    def _write_actions(self, key: int, session: int, actions: Iterable[Action]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    key,
                    number,
                    session,
                    one.id,
                    one.name,
                    one.command,
                    json.dumps(one.files),
                    one.detail,
                    one.status,
                )
                for number, one in enumerate(actions)
            ],
        )

    def _end_actions(self, session: int, entry: Entry) -> None:
        self._db.executemany(
            "UPDATE actions SET status = ? WHERE session = ? AND call = ?",
            [(one.status, session, one.id) for one in entry.results if one.id and one.status is not None],
        )

    # -- Passages

    def _passage(self, session: int, entry: Entry) -> int:
        last = self._last_passage(session)
        prompt = entry.role == "user" and bool(entry.text)
        if last is None or not passages.takes(last, prompt=prompt, group=entry.group):
            key = self._db.execute(
                "INSERT INTO passages VALUES (NULL, ?, 0, 0, 0, 0, 0)", (session,)
            ).lastrowid
            self._last[session] = last = LastPassage(key=int(key or 0))
            self._db.execute("UPDATE sessions SET passages = passages + 1 WHERE key = ?", (session,))
        self._open(last.key)
        last.talk += len(entry.text) + len(entry.thought)
        last.work += len(entry.output) + sum(len(one.detail) for one in entry.actions)
        last.group = entry.group
        return last.key

    def _last_passage(self, session: int) -> LastPassage | None:
        if session not in self._last:
            row = self._db.execute(
                "SELECT p.key, p.talk_chars, p.work_chars, (SELECT grouped FROM entries "
                "WHERE passage = p.key ORDER BY key DESC LIMIT 1) FROM passages p WHERE p.session = ? "
                "ORDER BY p.key DESC LIMIT 1",
                (session,),
            ).fetchone()
            if row is None:
                return None
            self._last[session] = LastPassage(key=row[0], talk=row[1], work=row[2], group=row[3])
        return self._last[session]

    def _open(self, passage: int) -> None:
        """Take a passage out of the word index before something in it changes."""
        if passage not in self._removed:
            self._removed.add(passage)
            passages.remove(self._db, [passage])
        self._changed.add(passage)

    # -- Branches

    def _rewind(self, session: int, uid: str | None) -> None:
        row = (
            uid
            and self._db.execute(
                "SELECT key FROM entries WHERE session = ? AND uid = ?", (session, self._uid(uid))
            ).fetchone()
        )
        self._drop(session, row[0] if row else 0)

    def _drop(self, session: int, first: int) -> None:
        self._db.execute("UPDATE entries SET dropped = 1 WHERE session = ? AND key >= ?", (session, first))

    def _roll_back(self, session: int, turns: int) -> None:
        rows = self._db.execute(
            "SELECT key FROM entries WHERE session = ? AND role = 'user' AND text != '' AND dropped = 0 "
            "ORDER BY key DESC LIMIT ?",
            (session, max(turns, 0)),
        ).fetchall()
        if rows:
            self._db.execute(
                "UPDATE entries SET dropped = 1 WHERE session = ? AND key >= ?", (session, rows[-1][0])
            )

    def _mark_branches(self, session: int) -> None:
        sql = "SELECT uid, parent FROM entries WHERE session = ? ORDER BY key"
        links = self._db.execute(sql, (session,)).fetchall()
        off = side_branches([(row[0], row[1]) for row in links])
        self._db.execute("UPDATE entries SET off_tree = 0 WHERE session = ? AND off_tree = 1", (session,))
        self._db.executemany("UPDATE entries SET off_tree = 1 WHERE uid = ?", [(uid,) for uid in off])

    # -- The end of a batch

    def _finish(self) -> None:
        passages.add(self._db, sorted(self._changed))
        for last in self._last.values():
            self._db.execute(
                "UPDATE passages SET talk_chars = ?, work_chars = ? WHERE key = ?",
                (last.talk, last.work, last.key),
            )
        for session in self._branched:
            self._mark_branches(session)
        for name, facts in self._facts.items():
            self._write_facts(self._key(name), facts)
        for session, grown in self._grown.items():
            self._db.execute(
                "UPDATE sessions SET entries = entries + ?, prompts = prompts + ? WHERE key = ?",
                (grown, self._prompts.get(session, 0), session),
            )
        self._name_sessions()

    def _write_facts(self, key: int, facts: SessionFacts) -> None:
        row = self._db.execute(
            f"SELECT id, {', '.join(FACTS)} FROM sessions WHERE key = ?", (key,)
        ).fetchone()
        held = dict(zip(("id", *FACTS), row, strict=True))
        held["subagent"] = None if held["subagent"] is None else bool(held["subagent"])
        made = merged(SessionFacts(**held), facts)
        self._db.execute(
            f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in FACTS)} WHERE key = ?",
            (*(getattr(made, name) for name in FACTS), key),
        )

    def _name_sessions(self) -> None:
        """Give sessions the titles that were found by an entry of theirs."""
        rows = self._db.execute(
            "SELECT t.leaf, t.title, e.session FROM titles t JOIN entries e ON e.uid = t.leaf"
        ).fetchall()
        for leaf, title, session in rows:
            self._db.execute(
                "UPDATE sessions SET title = ?, title_rank = 1 WHERE key = ? AND title_rank <= 1",
                (title, session),
            )
            self._db.execute("DELETE FROM titles WHERE leaf = ?", (leaf,))

"""The index of sessions in an SQLite file: `SessionIndex`.

One connection writes, behind a lock; each read has a connection of its own for its time, so that a search
sees one moment while another thread or process writes. Without a file everything is in memory.
"""

import json
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vestige.core.errors import StoreCorrupt, StoreTooNew
from vestige.core.transcripts import Action, is_title
from vestige.store.contract.sessions import (
    ArchivedFile,
    FileMark,
    SessionCounts,
    SessionFilter,
    SessionPostings,
    StepsOfFile,
    StoredEntry,
    StoredSession,
    TermPostings,
)
from vestige.store.sqlite.connection import translated
from vestige.store.sqlite.processes import locks
from vestige.store.sqlite.sessions import schema
from vestige.store.sqlite.sessions.steps import StepWriter

BUSY_SECONDS = 30.0
"""A writer waits so long for another process, which writes one batch at a time."""
FIELD_NUMBERS = {"prompt": 0, "talk": 1, "work": 2, "output": 3}
SESSION_COLUMNS = (
    "key", "client", "id", "cwd", "repository", "branch", "title", "parent", "subagent", "started", "ended",
    "resume", "path", "prompts", "entries",
)  # fmt: skip
ENTRY_COLUMNS = (
    "e.key, e.session, e.uid, e.grouped, e.role, e.at, e.text, e.thought, e.output, e.off_tree OR e.dropped, "
    "e.passage"
)
POSTINGS = (
    "SELECT v.doc, p.session, v.col, count(*) FROM words_at v JOIN passages p ON p.key = v.doc "
    "JOIN sessions s ON s.key = p.session WHERE v.term = ? AND {where} GROUP BY v.doc, v.col"
)
_PER_QUERY = 500
"""Keys that one statement names."""


@contextmanager
def _session_errors(path: Path) -> Iterator[None]:
    """Translate the errors of the driver. The advice for damage is not that for a store of memories: an index
    of sessions has no backup, and needs none."""
    try:
        with translated(path):
            yield
    except StoreCorrupt as exc:
        raise StoreCorrupt(
            exc.message,
            hint=f"Move {path.name} away and run `vestige sessions index`: it is made again from the "
            "transcripts and the archive.",
            details=exc.details,
        ) from exc


class SqliteSessionIndex:
    """The index in a file, which is made when something is first stored; or in memory without one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._writer: sqlite3.Connection | None = None

    def exists(self) -> bool:
        return self._writer is not None if self._path is None else self._path.exists()

    @contextmanager
    def reading_alone(self) -> Iterator[bool]:
        if self._path is None:
            yield True
            return
        handle = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield locks.lock(handle) is not False  # a file system without locks is used by one machine
        finally:
            locks.unlock(handle)

    def close(self) -> None:
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # -- Writing

    def store(self, batch: StepsOfFile) -> bool:
        with self._writing() as db:
            row = db.execute("SELECT checkpoint FROM files WHERE path = ?", (batch.path,)).fetchone()
            if (json.loads(row[0]) if row else None) != batch.before:
                return False
            StepWriter(db, batch).write()
            db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?)",
                (batch.path, batch.client, json.dumps(batch.after, sort_keys=True)),
            )
        return True

    def archive(self, files: Sequence[ArchivedFile], *, replaced: Sequence[ArchivedFile] = ()) -> None:
        with self._writing() as db:
            db.executemany(
                "DELETE FROM archive WHERE path = ? AND sha256 = ?",
                [(one.path, one.sha256) for one in replaced],
            )
            db.executemany(
                "INSERT OR REPLACE INTO archive VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        one.path,
                        one.client,
                        one.name,
                        one.sha256,
                        one.size,
                        one.archived,
                        json.dumps(one.state),
                    )
                    for one in files
                ],
            )

    def rebuild(self) -> None:
        with self._writing() as db:
            db.execute("DELETE FROM files")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _session_errors(self._path or Path("sessions")):
            if self._writer is None:
                self._writer = self._opened_for_writing()
            db = self._writer
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _opened_for_writing(self) -> sqlite3.Connection:
        if self._path is not None and not self._path.exists():
            create(self._path)
        db = self._connect()
        for statement in schema.PRAGMAS:
            db.execute(statement)
        if self._path is None:
            make_tables(db)
        return db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self._path or ":memory:", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        if self._path is not None:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > schema.VERSION:
                db.close()
                raise StoreTooNew(
                    f"The index of sessions was written by a newer Vestige ({self._path.name}).",
                    hint="Update Vestige, or move the file away: it is made again from the transcripts.",
                )
        return db

    # -- Reading

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection in a read transaction; nothing where there is no index."""
        if not self.exists():
            yield None
        elif self._path is None:
            with self._lock:
                yield self._writer
        else:
            with _session_errors(self._path), closing(self._connect()) as db:
                db.execute("BEGIN")
                yield db

    def marks(self) -> dict[str, FileMark]:
        with self._reading() as db:
            rows = db.execute("SELECT path, client, checkpoint FROM files").fetchall() if db else []
        return {
            path: FileMark(path=path, client=client, checkpoint=json.loads(held))
            for path, client, held in rows
        }

    def sessions(self, where: SessionFilter, *, limit: int, offset: int = 0) -> list[StoredSession]:
        clause, values = conditions(where)
        with self._reading() as db:
            rows = (
                db.execute(
                    f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions s WHERE {clause} AND entries > 0 "
                    "ORDER BY ended DESC, key DESC LIMIT ? OFFSET ?",
                    (*values, limit, offset),
                ).fetchall()
                if db
                else []
            )
        return [_session(row) for row in rows]

    def titles(self, where: SessionFilter) -> dict[int, str]:
        clause, values = conditions(where)
        sql = f"SELECT s.key, s.title FROM sessions s WHERE {clause} AND entries > 0 AND title_rank > 0"
        with self._reading() as db:
            rows = db.execute(sql, values).fetchall() if db else []
        return {key: title for key, title in rows if is_title(title)}

    def count(self, where: SessionFilter) -> int:
        clause, values = conditions(where)
        with self._reading() as db:
            if db is None:
                return 0
            return int(
                db.execute(
                    f"SELECT count(*) FROM sessions s WHERE {clause} AND entries > 0", values
                ).fetchone()[0]
            )

    def by_key(self, keys: Sequence[int]) -> dict[int, StoredSession]:
        with self._reading() as db:
            rows = (
                _by_keys(db, f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions WHERE key IN ", keys)
                if db
                else []
            )
            return {row[0]: _session(row) for row in rows}

    def find(self, session: str) -> list[StoredSession]:
        with self._reading() as db:
            rows = (
                db.execute(
                    f"SELECT {', '.join(SESSION_COLUMNS)} FROM sessions "
                    "WHERE id = ?1 OR substr(id, 1, length(?1)) = ?1 "
                    "ORDER BY id != ?1, subagent, ended DESC LIMIT 20",
                    (session,),
                ).fetchall()
                if db
                else []
            )
        return [_session(row) for row in rows]

    def entries(self, session: int, *, first: int = 0, limit: int = 1_000) -> list[StoredEntry]:
        with self._reading() as db:
            if db is None:
                return []
            rows = db.execute(
                f"SELECT {ENTRY_COLUMNS} FROM entries e WHERE e.session = ? ORDER BY e.key LIMIT ? OFFSET ?",
                (session, limit, first),
            ).fetchall()
            return _with_actions(db, rows)

    def passage_entries(self, passages: Sequence[int]) -> dict[int, list[StoredEntry]]:
        made: dict[int, list[StoredEntry]] = {passage: [] for passage in passages}
        with self._reading() as db:
            if db is not None:
                rows = _by_keys(db, f"SELECT {ENTRY_COLUMNS} FROM entries e WHERE e.passage IN ", passages)
                for entry in _with_actions(db, sorted(rows)):
                    made[entry.passage].append(entry)
        return made

    def archived(self) -> list[ArchivedFile]:
        with self._reading() as db:
            rows = (
                db.execute(
                    "SELECT path, client, name, sha256, size, archived, state FROM archive "
                    "ORDER BY path, archived"
                ).fetchall()
                if db
                else []
            )
        held = (
            ArchivedFile(
                path=path,
                client=client,
                name=name,
                sha256=digest,
                size=size,
                archived=at,
                state=json.loads(state),
            )
            for path, client, name, digest, size, at, state in rows
        )
        return [one for one in held if one.is_copy]

    def counts(self) -> SessionCounts:
        with self._reading() as db:
            if db is None:
                return SessionCounts(files=0, sessions=0, entries=0, passages=0, bytes=0, clients={})
            files, entries, found = (
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("files", "entries", "passages")
            )
            clients = dict(
                db.execute(
                    "SELECT client, count(*) FROM sessions WHERE entries > 0 GROUP BY client"
                ).fetchall()
            )
        return SessionCounts(
            files=files,
            sessions=sum(clients.values()),
            entries=entries,
            passages=found,
            bytes=self._path.stat().st_size if self._path is not None else 0,
            clients=clients,
        )

    # -- Searching

    def postings(self, terms: Sequence[str], where: SessionFilter) -> SessionPostings:
        clause, values = conditions(where)
        with self._reading() as db:
            if db is None:
                return _nothing()
            count, *sums = db.execute(
                "SELECT count(*), total(passages), total(talk_terms), total(prompt_terms), total(work_terms) "
                f"FROM sessions s WHERE {clause}",
                values,
            ).fetchone()
            found = tuple(
                _postings(db.execute(POSTINGS.format(where=clause), (term, *values)).fetchall())
                for term in terms
            )
            passages = _distinct(one.passages for one in found)
            sessions = _distinct(one.sessions for one in found)
            lengths = "SELECT key, talk_terms, prompt_terms, work_terms FROM {table} WHERE key IN "
            of_passages = _by_keys(db, lengths.format(table="passages"), passages)
            of_sessions = _by_keys(db, lengths.format(table="sessions"), sessions)
        total, *fields = sums
        return SessionPostings(
            terms=found,
            passage_lengths={row[0]: (row[1], row[2], row[3]) for row in of_passages},
            session_lengths={row[0]: (row[1], row[2], row[3]) for row in of_sessions},
            passages=int(total),
            sessions=int(count),
            mean_passage=_means(fields, total),
            mean_session=_means(fields, count),
        )


def create(path: Path) -> None:
    """Make the file, complete, under another name first: no process ever sees a part of it. If another one is
    faster, its file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        made = Path(folder) / path.name
        with closing(sqlite3.connect(made, isolation_level=None)) as db:
            db.execute(schema.WAL)
            make_tables(db)
        made.chmod(0o600)  # sessions are the user's own
        try:
            path.hardlink_to(made)
        except FileExistsError:
            return
        except OSError:  # a file system without links
            if not path.exists():
                made.replace(path)


def make_tables(db: sqlite3.Connection) -> None:
    db.execute("BEGIN")
    for statement in schema.TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {schema.VERSION}")
    db.execute("COMMIT")


def conditions(where: SessionFilter) -> tuple[str, list[object]]:
    """The filter as SQL over `sessions s`, and its values."""
    parts: list[str] = ["1"]
    values: list[object] = []

    def need(part: str, *given: object) -> None:
        parts.append(part)
        values.extend(given)

    if where.clients:
        need(f"s.client IN ({', '.join('?' * len(where.clients))})", *where.clients)
    if where.cwd is not None:
        folder = where.cwd.rstrip("/\\") or where.cwd
        need(
            "(s.cwd = ? OR substr(s.cwd, 1, ?) IN (?, ?))",
            folder,
            len(folder) + 1,
            f"{folder}/",
            f"{folder}\\",
        )
    if where.repository is not None:
        name = where.repository.rstrip("/").removesuffix(".git")
        ends = f"%/{_plain(name)}"
        inside = f"%/{_plain(name)}/%"
        need(
            "(replace(s.repository, '.git', '') = ? OR replace(s.repository, '.git', '') LIKE ? ESCAPE '\\' "
            "OR s.cwd LIKE ? ESCAPE '\\' OR s.cwd LIKE ? ESCAPE '\\')",
            name, ends, ends, inside,
        )  # fmt: skip
    if where.since is not None:
        need("coalesce(s.ended, s.started) >= ?", where.since)
    if where.until is not None:
        need("coalesce(s.started, s.ended) < ?", where.until)
    if where.session is not None:
        need("s.id = ?", where.session)
    if not where.subagents:
        need("coalesce(s.subagent, 0) = 0")
    return " AND ".join(parts), values


def _plain(text: str) -> str:
    """A text for LIKE, of which every character stands for itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _by_keys(db: sqlite3.Connection, sql: str, keys: Sequence[int]) -> list[Any]:  # rows of the driver
    rows: list[Any] = []
    for at in range(0, len(keys), _PER_QUERY):
        some = keys[at : at + _PER_QUERY]
        rows += db.execute(f"{sql}({', '.join('?' * len(some))})", list(some)).fetchall()
    return rows


def _session(row: Sequence[Any]) -> StoredSession:
    held = dict(zip(SESSION_COLUMNS, row, strict=True))
    held["subagent"] = bool(held["subagent"])
    return StoredSession(**held)


def _with_actions(db: sqlite3.Connection, rows: Sequence[Any]) -> list[StoredEntry]:
    held: dict[int, list[Action]] = {}
    keys = [row[0] for row in rows]
    sql = "SELECT entry, call, name, command, files, detail, status, number FROM actions WHERE entry IN "
    for entry, call, name, command, files, detail, status, _number in sorted(
        _by_keys(db, sql, keys), key=lambda row: (row[0], row[7])
    ):
        made = Action(
            id=call, name=name, command=command, files=tuple(json.loads(files)), detail=detail, status=status
        )
        held.setdefault(entry, []).append(made)
    return [
        StoredEntry(
            key=key, session=session, uid=uid, group=group, role=role, at=at, text=text, thought=thought,
            output=output, side=bool(side), passage=passage, actions=tuple(held.get(key, ())),
        )
        for key, session, uid, group, role, at, text, thought, output, side, passage in rows
    ]  # fmt: skip


def _postings(rows: Sequence[tuple[int, int, str, int]]) -> TermPostings:
    table = np.array(
        [(doc, session, FIELD_NUMBERS[col], count) for doc, session, col, count in rows], dtype=np.int64
    ).reshape(-1, 4)
    return TermPostings(passages=table[:, 0], sessions=table[:, 1], fields=table[:, 2], counts=table[:, 3])


def _distinct(arrays: Iterable[np.ndarray]) -> list[int]:
    held = list(arrays)
    return [int(one) for one in np.unique(np.concatenate(held))] if held else []


def _means(sums: Sequence[float], count: float) -> tuple[float, float, float]:
    talk, prompt, work = (max(one / count, 1.0) if count else 1.0 for one in sums)
    return talk, prompt, work


def _nothing() -> SessionPostings:
    return SessionPostings(
        terms=(), passage_lengths={}, session_lengths={}, passages=0, sessions=0,
        mean_passage=(1.0, 1.0, 1.0), mean_session=(1.0, 1.0, 1.0),
    )  # fmt: skip

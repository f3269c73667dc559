"""Reading and writing a code index."""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vestige.core.errors import StoreBusy
from vestige.core.lazy_dataclass import dataclass
from vestige.store.code_index.schema import driver_errors, erase, open_to_read, open_to_write
from vestige.store.contract.code_index import (
    FileRow,
    FoundSection,
    GatheredSections,
    IndexCounts,
    IndexedFile,
    IndexState,
    SectionQuestion,
    SectionRow,
    SectionWords,
)
from vestige.store.contract.processes import Holder, Who
from vestige.store.sqlite.processes.locks import alone

WAIT_SECONDS = 30.0
STEP_SECONDS = 0.1
MOST_VALUES = 500
"""How many values one statement names."""
LEVEL = 3

_FILE = "path, size, mtime_ns, hash, generation, skip, redacted, summary"
_SECTION = (
    "section.id, file.path, section.kind, section.name, section.symbol_path, section.start_line, "
    "section.end_line, section.signature, section.hash"
)
_FIND = f"""
select {_SECTION}
from (select rowid, bm25(words) as score from words where words match ? order by rank limit ?) as found
  join section on section.id = found.rowid join file on file.id = section.file_id
order by found.score, file.path, section.start_line
"""
_BY_FILE_WORDS = """
select file.path from file_word join file on file.id = file_word.file_id
where word in ({marks})
group by file.id order by count(*) desc, file.path limit ?
"""
MOST_TERMS = 60
"""How many words candidates are found by; the others still count."""
MOST_DEFINING = 100
MOST_FILES = 30
"""How many files are candidates by their names, with all their sections."""


Row = tuple[Any, ...]
"""A row of SQLite."""


class SqliteCodeIndex:
    """One open index, for reading or, by the one who holds the lock, for writing."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self._db = connection
        self._file = file

    # -- reading

    def state(self) -> IndexState:
        with driver_errors(self._file):
            row = self._db.execute("select value from state").fetchone()
            return _state(row[0]) if row else IndexState()

    def counts(self) -> IndexCounts:
        with driver_errors(self._file):
            files = self._db.execute("select count(*), coalesce(sum(redacted), 0) from file").fetchone()
            skips = self._db.execute(
                "select skip, count(*) from file where skip != '' group by skip order by skip"
            ).fetchall()
            rest = [
                self._db.execute(f"select count(*) from {table}").fetchone()[0]
                for table in ("section", "definition", "reference")
            ]
            pages = self._db.execute("pragma page_count").fetchone()[0]
            size = pages * self._db.execute("pragma page_size").fetchone()[0]
        return IndexCounts(
            files=files[0],
            skips=dict(skips),
            redacted=files[1],
            sections=rest[0],
            definitions=rest[1],
            references=rest[2],
            size_bytes=size,
        )

    def skipped(self, reason: str, *, limit: int) -> list[str]:
        with driver_errors(self._file):
            rows = self._db.execute(
                "select path from file where skip = ? order by path limit ?", (reason, limit)
            ).fetchall()
        return [row[0] for row in rows]

    def files(self) -> dict[str, FileRow]:
        with driver_errors(self._file):
            rows = self._db.execute(f"select {_FILE} from file order by path").fetchall()
        return {row[0]: _file_row(row) for row in rows}

    def gather(self, question: SectionQuestion, *, limit: int) -> GatheredSections:
        with driver_errors(self._file):
            self._db.execute("begin")
            try:
                return self._gathered(question, limit)
            finally:
                self._db.execute("rollback")

    def _gathered(self, question: SectionQuestion, limit: int) -> GatheredSections:
        terms = list(dict.fromkeys(question.terms))
        found: dict[int, FoundSection] = {}
        if terms:
            quoted = " OR ".join('"{}"'.format(term.replace('"', '""')) for term in terms[:MOST_TERMS])
            rows = self._db.execute(_FIND, (quoted, limit)).fetchall()
            found |= {row[0]: _found(row) for row in rows}
        found |= {one.key: one for one in self._defining_any(question.symbols)[:MOST_DEFINING]}
        for several in self.sections(self._files_by_name(question)).values():
            found |= {one.key: one for one in several}
        total, mean = self._db.execute("select count(*), avg(length) from section").fetchone()
        frequencies = {
            term: row[0]
            for term in terms
            if (row := self._db.execute("select doc from vocabulary where term = ?", (term,)).fetchone())
        }
        return GatheredSections(
            found=self._with_words(list(found.values()), frozenset(terms)),
            sections=total,
            mean_length=mean or 0.0,
            frequencies=frequencies,
        )

    def _files_by_name(self, question: SectionQuestion) -> list[str]:
        paths: list[str] = []
        words = list(dict.fromkeys(question.file_words))[:MOST_VALUES]
        if words:
            statement = _BY_FILE_WORDS.format(marks=", ".join("?" * len(words)))
            paths += [row[0] for row in self._db.execute(statement, (*words, MOST_FILES)).fetchall()]
        for path in question.paths[:MOST_FILES]:
            end = path.removeprefix("./").lstrip("/")
            rows = self._db.execute(
                "select path from file where path = ?1 or substr(path, -length(?1) - 1) = '/' || ?1 "
                "order by path limit ?2",
                (end, MOST_FILES),
            ).fetchall()
            paths += [row[0] for row in rows]
        return list(dict.fromkeys(paths))

    def _with_words(self, sections: Sequence[FoundSection], terms: frozenset[str]) -> list[SectionWords]:
        """Each section with its counts of these words, from the words that its file keeps."""
        texts: dict[int, str] = {}
        names: dict[int, list[str]] = {}
        for row in self._in_parts(
            "select file.id, file.terms, group_concat(section.id) from "
            "(select distinct file_id from section where id in ({marks})) as wanted "
            "join file on file.id = wanted.file_id join section on section.file_id = file.id "
            "group by file.id",
            [one.key for one in sections],
        ):
            numbers = sorted(map(int, row[2].split(",")))
            with driver_errors(self._file):
                texts |= dict(zip(numbers, _texts(row[1], len(numbers)), strict=True))
        for row in self._in_parts(
            "select section_id, name from definition where section_id in ({marks}) order by section_id, name",
            [one.key for one in sections],
        ):
            names.setdefault(row[0], []).append(row[1])
        return [
            self._counted(one, texts[one.key].split(" "), names.get(one.key, []), terms) for one in sections
        ]

    @staticmethod
    def _counted(
        section: FoundSection, words: list[str], names: list[str], terms: frozenset[str]
    ) -> SectionWords:
        counts: dict[str, int] = {}
        for word in words:
            if word in terms:
                counts[word] = counts.get(word, 0) + 1
        return SectionWords(section=section, definitions=tuple(names), counts=counts, length=len(words))

    def _defining_any(self, symbols: Sequence[str]) -> list[FoundSection]:
        joined = "join definition on definition.section_id = section.id"
        return [_found(row) for row in self._where("definition.lower", symbols, joined)]

    def sections(self, paths: Sequence[str]) -> dict[str, list[FoundSection]]:
        found: dict[str, list[FoundSection]] = {path: [] for path in paths}
        for row in self._where("file.path", paths, ""):
            found[row[1]].append(_found(row))
        return found

    def defining(self, names: Sequence[str], *, limit: int) -> list[FoundSection]:
        wanted = set(names)
        found = self._with_words(self._defining_any([name.lower() for name in names]), frozenset())
        return [one.section for one in found if wanted & set(one.definitions)][:limit]

    def referring(self, names: Sequence[str], *, limit: int) -> list[FoundSection]:
        joined = "join reference on reference.section_id = section.id"
        return [_found(row) for row in self._where("reference.name", names, joined)][:limit]

    def shown(self, session: str) -> frozenset[str]:
        with driver_errors(self._file):
            rows = self._db.execute("select key from shown where session = ?", (session,)).fetchall()
        return frozenset(row[0] for row in rows)

    def problems(self) -> list[str]:
        """What SQLite finds, then what does not fit together: StoreCorrupt."""
        with driver_errors(self._file):
            rows = self._db.execute("pragma integrity_check(10)").fetchall()
            found = [row[0] for row in rows if row[0] != "ok"]
            if not found:
                self.state()
                self._db.execute("select count(*) from words").fetchone()
                for packed, number in self._db.execute(
                    "select terms, (select count(*) from section where file_id = file.id) from file"
                ):
                    _texts(packed, number)
        return found

    def _where(self, column: str, values: Sequence[str], joined: str) -> list[Row]:
        return self._in_parts(
            f"select distinct {_SECTION} from file join section on section.file_id = file.id {joined} "
            f"where {column} in ({{marks}}) order by file.path, section.start_line",
            values,
        )

    def _in_parts(self, statement: str, values: Sequence[object]) -> list[Row]:
        """The rows of a statement for these values, a few hundred at a time."""
        rows: list[Row] = []
        with driver_errors(self._file):
            for at in range(0, len(values), MOST_VALUES):
                some = list(values[at : at + MOST_VALUES])
                rows += self._db.execute(statement.format(marks=", ".join("?" * len(some))), some).fetchall()
        return rows

    # -- writing

    def begin(self, state: IndexState) -> None:
        self._put_state(replace(state, complete=False))

    def finish(self, state: IndexState) -> None:
        self._put_state(replace(state, complete=True))

    def write(
        self,
        put: Sequence[IndexedFile],
        *,
        removed: Sequence[str] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        with self._transaction():
            for path in removed:
                self._remove(path)
            # Two files may have exchanged their names, so all old names are free before a new one is taken.
            for number, old in enumerate(renamed or {}):
                self._db.execute("update file set path = ? where path = ?", (f"\0{number}", old))
            for number, new in enumerate((renamed or {}).values()):
                self._remove(new)
                self._db.execute("update file set path = ? where path = ?", (new, f"\0{number}"))
            for one in put:
                self._put(one)

    def touch(self, rows: Sequence[FileRow]) -> None:
        with self._transaction():
            self._db.executemany(
                "update file set size = ?, mtime_ns = ?, generation = ? where path = ?",
                [(row.size, row.mtime_ns, row.generation, row.path) for row in rows],
            )

    def show(self, session: str, keys: Sequence[str], *, keep: int) -> None:
        with self._transaction():
            turn = self._db.execute("select coalesce(max(turn), 0) + 1 from shown").fetchone()[0]
            self._db.executemany(
                "insert or replace into shown values (?, ?, ?)", [(session, key, turn) for key in keys]
            )
            self._db.execute(
                "delete from shown where session not in "
                "(select session from shown group by session order by max(turn) desc, session limit ?)",
                (keep,),
            )

    def _put(self, one: IndexedFile) -> None:
        row = one.file
        texts = [" ".join(section.terms) for section in one.sections]
        terms = zlib.compress(json.dumps(texts).encode(), LEVEL)
        values = (
            row.size, row.mtime_ns, row.hash, row.generation, row.skip, row.redacted, row.summary, terms,
        )  # fmt: skip
        known = self._empty(row.path)
        if known is None:
            made = self._db.execute(
                "insert into file(path, size, mtime_ns, hash, generation, skip, redacted, summary, terms) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (row.path, *values),
            )
            known = int(made.lastrowid or 0)
        else:
            self._db.execute(
                "update file set size = ?, mtime_ns = ?, hash = ?, generation = ?, skip = ?, redacted = ?, "
                "summary = ?, terms = ? where id = ?",
                (*values, known),
            )
        self._db.executemany(
            "insert or ignore into file_word values (?, ?)", [(word, known) for word in row.words]
        )
        for section, text in zip(one.sections, texts, strict=True):
            self._put_section(known, section, text)

    def _put_section(self, file: int, section: SectionRow, text: str) -> None:
        made = self._db.execute(
            "insert into section(file_id, kind, name, symbol_path, start_line, end_line, signature, hash, "
            "length) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                file, section.kind, section.name, section.symbol_path, section.start_line, section.end_line,
                section.signature, section.hash, len(section.terms),
            ),
        )  # fmt: skip
        number = made.lastrowid
        self._db.execute("insert into words(rowid, terms) values (?, ?)", (number, text))
        self._db.executemany(
            "insert or ignore into definition values (?, ?, ?)",
            [(name.lower(), name, number) for name in section.definitions],
        )
        self._db.executemany(
            "insert or ignore into reference values (?, ?)", [(name, number) for name in section.references]
        )

    def _remove(self, path: str) -> None:
        known = self._empty(path)
        if known is not None:
            self._db.execute("delete from file where id = ?", (known,))

    def _empty(self, path: str) -> int | None:
        """Delete the sections of a file; the number of the file, if it is known."""
        row = self._db.execute("select id, terms from file where path = ?", (path,)).fetchone()
        if row is None:
            return None
        number, packed = row
        sections = self._db.execute(
            "select id from section where file_id = ? order by id", (number,)
        ).fetchall()
        words = _texts(packed, len(sections))
        self._db.executemany(
            "insert into words(words, rowid, terms) values ('delete', ?, ?)",
            [(section[0], terms) for section, terms in zip(sections, words, strict=True)],
        )
        for table in ("definition", "reference"):
            self._db.executemany(f"delete from {table} where section_id = ?", sections)
        for table in ("section", "file_word"):
            self._db.execute(f"delete from {table} where file_id = ?", (number,))
        return int(number)

    def _put_state(self, state: IndexState) -> None:
        with self._transaction():
            self._db.execute("insert or replace into state values (1, ?)", (json.dumps(asdict(state)),))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with driver_errors(self._file):
            self._db.execute("begin immediate")
            try:
                yield
                self._db.execute("commit")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise


def _state(text: object) -> IndexState:
    """What is known of the index as a whole. A row that was not written here is an error of the file."""
    try:
        state = IndexState(**json.loads(str(text)))
    except (ValueError, TypeError) as exc:
        raise sqlite3.DatabaseError("what it says of itself is damaged") from exc
    if not isinstance(state.generation, int) or not isinstance(state.skips, dict):
        raise sqlite3.DatabaseError("what it says of itself is damaged")
    return state


def _texts(packed: Any, sections: int) -> list[str]:
    """The words of each section of a file, as the file keeps them."""
    try:
        texts = json.loads(zlib.decompress(packed))
    except (zlib.error, ValueError, TypeError) as exc:
        raise sqlite3.DatabaseError("the words of a file are damaged") from exc
    is_texts = isinstance(texts, list) and all(isinstance(one, str) for one in texts)
    if not is_texts or len(texts) != sections:
        raise sqlite3.DatabaseError("the words of a file are not those of its sections")
    return list(texts)


def _file_row(row: Row) -> FileRow:
    path, size, mtime_ns, digest, generation, skip, redacted, summary = row
    return FileRow(
        path=path,
        size=size,
        mtime_ns=mtime_ns,
        hash=digest,
        generation=generation,
        skip=skip,
        redacted=redacted,
        summary=summary,
    )


def _found(row: Row) -> FoundSection:
    key, path, kind, name, symbol_path, start, end, signature, digest = row
    return FoundSection(
        key=key,
        path=path,
        kind=kind,
        name=name,
        symbol_path=symbol_path,
        start_line=start,
        end_line=end,
        signature=signature,
        hash=digest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteCodeIndexes:
    """Opens code indexes for this process."""

    who: Who
    sleep: Callable[[float], None]
    monotonic: Callable[[], float]

    @contextmanager
    def reading(self, file: Path) -> Iterator[SqliteCodeIndex]:
        connection = open_to_read(file)
        try:
            yield SqliteCodeIndex(connection, file)
        finally:
            connection.close()

    @contextmanager
    def writing(self, file: Path, purpose: str) -> Iterator[SqliteCodeIndex]:
        with self._alone(file, purpose):
            connection = open_to_write(file)
            try:
                yield SqliteCodeIndex(connection, file)
            finally:
                connection.close()

    def erase(self, file: Path) -> None:
        with self._alone(file, "erase"):
            erase(file)

    @contextmanager
    def watching(self, file: Path) -> Iterator[None]:
        with ExitStack() as held:
            try:
                # A lock of its own: others go on writing while a project is watched.
                held.enter_context(alone(file.with_name("watch"), "project watch", self.who))
            except StoreBusy as exc:
                other = exc.details.get("pid")
                raise StoreBusy(
                    f"{f'Process {other}' if other else 'Another process'} watches this project already.",
                    hint="One is enough: it refreshes the index for all.",
                    details=exc.details,
                ) from exc
            yield

    def _alone(self, file: Path, purpose: str) -> AbstractContextManager[None]:
        until = self.monotonic() + WAIT_SECONDS

        def again(holder: Holder | None) -> bool:
            self.sleep(STEP_SECONDS)
            return self.monotonic() < until

        return alone(file, purpose, self.who, again=again)

"""Bringing the index of a project up to date: the same pass for the first time, after changes, and anew.

A pass compares the walk with what the index knows and reads only what differs. It writes in small
transactions, each of whole files, so that it can be stopped at any point: the next pass does the rest. A new
generation makes every file differ.
"""

from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from vestige.cognition.code.languages import is_code, language_of
from vestige.cognition.code.roles import role_of
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Call
from vestige.engine.project.extraction import EXTRACTOR
from vestige.engine.project.extractors import processes_for, rows_of_batches
from vestige.engine.project.files.source_file import current_hash
from vestige.engine.project.files.walk import FileStat, Walked, walk
from vestige.engine.project.git import head_of
from vestige.engine.project.place import Project, prepare
from vestige.store.contract.code_index import CodeIndexWriter, FileRow, IndexedFile, IndexState

BATCH_FILES = 200
BATCH_BYTES = 2_000_000
"""The most files, and the most bytes of text, of one transaction."""
FINE_TICK_NS, COARSE_TICK_NS = 50_000_000, 2_000_000_000
"""A file that was changed this shortly before it was read may change again within the same tick of its clock,
so its time proves nothing. A time of whole seconds is one of a coarse clock."""
UNKNOWN_TIME = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a pass did, in files."""

    files: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    redacted: int = 0

    @property
    def nothing(self) -> bool:
        return not (self.added or self.changed or self.removed or self.renamed)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexGap:
    """How a walk differs from an index: files to read, and paths that are gone."""

    unread: list[FileStat]
    gone: list[FileRow]


def refresh(call: Call, project: Project, *, anew: bool = False) -> Refreshed:
    """Bring an index up to date; with `anew` read every file again."""
    prepare(project)
    purpose = "project rebuild" if anew else "project refresh"
    with call.engine.code_indexes.writing(project.index, purpose) as index:
        return _Pass(call, project, index).run(anew=anew)


def index_gap(walked: Walked, known: Mapping[str, FileRow], generation: int) -> IndexGap:
    """What differs by size, time or generation."""
    unread = [one for one in walked.files if not _is_settled(one, known.get(one.path), generation)]
    there = {one.path for one in walked.files}
    return IndexGap(unread=unread, gone=[row for path, row in known.items() if path not in there])


def _is_settled(one: FileStat, row: FileRow | None, generation: int) -> bool:
    if row is None or row.generation != generation:
        return False
    return (row.size, row.mtime_ns) == (one.size, one.mtime_ns)


def _urgency(one: FileStat) -> tuple[int, str]:
    """Programs are read first, then documents, then tests and data: search answers while a pass goes on."""
    if is_code(one.path):
        return (0 if role_of(one.path) in ("source", "package") else 2), one.path
    return (1 if language_of(one.path) in ("markdown", "rst") else 3), one.path


def _what(row: FileRow | None, renamed: bool) -> str:
    if row is not None:
        return "changed"
    return "renamed" if renamed else "added"


class _Pass:
    """One pass over a project."""

    def __init__(self, call: Call, project: Project, index: CodeIndexWriter) -> None:
        self._call, self._project, self._index = call, project, index
        self._counts: defaultdict[str, int] = defaultdict(int)

    def run(self, *, anew: bool) -> Refreshed:
        before = self._index.state()
        walked = walk(self._project.root, self._call.check)
        head = head_of(self._project.root) if walked.by_git else None
        fresh_start = anew or before.extractor != EXTRACTOR
        state = IndexState(
            generation=before.generation + 1 if fresh_start else before.generation,
            extractor=EXTRACTOR,
            branch=head.branch if head else "",
            commit=head.commit if head else "",
            by_git=walked.by_git,
            skips={reason.value: number for reason, number in sorted(walked.skips.counts.items())},
            examples={reason.value: names for reason, names in sorted(walked.skips.examples.items())},
        )
        known = self._index.files()
        found = index_gap(walked, known, state.generation)
        self._bring(found, known, state, fresh_start or not before.complete)
        last = replace(state, complete=True, indexed_at=before.indexed_at)
        if last != before or self._counts["written"]:
            self._index.finish(replace(state, indexed_at=self._call.engine.now().isoformat()))
        return Refreshed(
            files=len(walked.files),
            added=self._counts["added"],
            changed=self._counts["changed"],
            removed=self._counts["removed"],
            renamed=self._counts["renamed"],
            redacted=self._counts["redacted"],
        )

    def _bring(
        self, found: IndexGap, known: Mapping[str, FileRow], state: IndexState, unfinished: bool
    ) -> None:
        gone = {row.path: row for row in found.gone}
        begun = unfinished
        if unfinished:
            self._index.begin(state)
        done = 0
        batches = list(self._batches(sorted(found.unread, key=_urgency)))
        differing = (self._differing(batch, known, state.generation) for batch in batches)
        with closing(self._read(differing, len(found.unread), state.generation)) as reading:
            for batch, read in zip(batches, reading, strict=True):
                self._call.check()
                puts, touched, renamed = self._sorted_out(batch, read, known, gone)
                if (puts or renamed) and not begun:
                    self._index.begin(state)
                    begun = True
                if puts or renamed:
                    self._index.write(puts, renamed=renamed)
                    self._counts["written"] += 1
                if touched:
                    self._index.touch(touched)
                done += len(batch)
                self._call.progress(done, len(found.unread), "files")
        if gone:
            self._index.write((), removed=sorted(gone))
            self._counts["removed"] += len(gone)
            self._counts["written"] += 1

    def _differing(self, batch: list[FileStat], known: Mapping[str, FileRow], generation: int) -> list[str]:
        """The paths of a batch that have to be read: not those with the bytes that are known."""
        rows = ((one, known.get(one.path)) for one in batch)
        return [
            one.path
            for one, row in rows
            if row is None or row.generation != generation or not self._is_same(one, row)
        ]

    def _read(
        self, batches: Iterable[list[str]], files: int, generation: int
    ) -> Generator[dict[str, IndexedFile | None]]:
        """The rows of each batch's files, by their paths."""
        waiting: deque[list[str]] = deque()

        def asked() -> Iterator[list[str]]:
            for paths in batches:
                waiting.append(paths)
                yield paths

        made = rows_of_batches(self._project.root, asked(), generation, processes=processes_for(files))
        with closing(made):
            for rows in made:
                yield dict(zip(waiting.popleft(), rows, strict=True))

    def _batches(self, unread: Iterable[FileStat]) -> Iterator[list[FileStat]]:
        batch: list[FileStat] = []
        size = 0
        for one in unread:
            if batch and (len(batch) >= BATCH_FILES or size + one.size > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(one)
            size += one.size
        if batch:
            yield batch

    def _sorted_out(
        self,
        batch: list[FileStat],
        read: Mapping[str, IndexedFile | None],
        known: Mapping[str, FileRow],
        gone: dict[str, FileRow],
    ) -> tuple[list[IndexedFile], list[FileRow], dict[str, str]]:
        """What to write, what only has another time, and what has another name."""
        puts: list[IndexedFile] = []
        touched: list[FileRow] = []
        renamed: dict[str, str] = {}
        for one in batch:
            row = known.get(one.path)
            if row is not None and one.path not in read:
                touched += self._restamped(one, row)
                continue
            made = read[one.path]
            if made is None:  # it went away, or became something else
                if row is not None:
                    gone[one.path] = row
                continue
            made = replace(made, file=replace(made.file, mtime_ns=self._stamp(made.file.mtime_ns)))
            if row is None:
                old = self._former_name(made.file, gone)
                if old is not None:
                    renamed[old] = one.path
                    del gone[old]
            self._counts[_what(row, one.path in renamed.values())] += 1
            self._counts["redacted"] += made.file.redacted
            puts.append(made)
        return puts, touched, renamed

    def _is_same(self, one: FileStat, row: FileRow) -> bool:
        return one.size == row.size and current_hash(self._project.root, one.path) == row.hash

    def _restamped(self, one: FileStat, row: FileRow) -> list[FileRow]:
        """The row with the time that the file has now, if that is another one."""
        stamp = self._stamp(one.mtime_ns)
        return [] if stamp == row.mtime_ns else [replace(row, mtime_ns=stamp)]

    def _stamp(self, mtime_ns: int) -> int:
        tick = FINE_TICK_NS if mtime_ns % 1_000_000_000 else COARSE_TICK_NS
        now_ns = int(self._call.engine.now().timestamp() * 1e9)
        return UNKNOWN_TIME if mtime_ns > now_ns - tick else mtime_ns

    def _former_name(self, source: FileRow, gone: Mapping[str, FileRow]) -> str | None:
        """The path that a new file had before: one that is gone, with the same bytes."""
        if not source.size:
            return None
        same = [path for path, row in gone.items() if row.hash == source.hash]
        name = source.path[source.path.rfind("/") + 1 :]
        return min(same, key=lambda path: (path[path.rfind("/") + 1 :] != name, path), default=None)

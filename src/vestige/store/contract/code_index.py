"""The contract of a code index: the derived file of a project, with sections of its files and their words.

It has no memory and nothing that the project itself does not have, so it may be deleted and built again at
any time. Texts are not in it: a reader takes the lines from the file, and sees at the hash whether they are
still those that were indexed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from pathlib import Path
from typing import Protocol

from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file as it was read. `hash` is that of its bytes. `skip` is why it has no sections, found on reading
    it. `redacted` counts the secrets that were removed before it was indexed."""

    path: str
    size: int
    mtime_ns: int
    hash: str
    generation: int
    skip: str = ""
    redacted: int = 0
    summary: str = ""
    words: tuple[str, ...] = ()
    """The words of its name, by which it is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionRow:
    """Lines of a file, counted from 1. `terms` are its words for the search, in order."""

    kind: str
    name: str
    symbol_path: str
    start_line: int
    end_line: int
    signature: str
    hash: str
    terms: tuple[str, ...]
    definitions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """A file with its sections in order."""

    file: FileRow
    sections: tuple[SectionRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSection:
    """A section of the index. `key` is its number there."""

    key: int
    path: str
    kind: str
    name: str
    symbol_path: str
    start_line: int
    end_line: int
    signature: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionWords:
    """A section with what ranking needs: the names it declares, how often it has each word that was asked
    for, and the number of all its words."""

    section: FoundSection
    definitions: tuple[str, ...]
    counts: Mapping[str, int]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionQuestion:
    """What to find sections by: words of their text, symbols they declare (in lower case), words of the names
    of their files, and paths or ends of paths."""

    terms: Sequence[str] = ()
    symbols: Sequence[str] = ()
    file_words: Sequence[str] = ()
    paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredSections:
    """Candidates for an answer, and the totals that weigh their words: the number of sections, their mean
    length, and how many sections have each word."""

    found: list[SectionWords]
    sections: int
    mean_length: float
    frequencies: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """What an index is of. Files with a smaller `generation` are to be read again. `complete` is whether
    the last pass reached its end. `skips` counts what the walk left out, by reason."""

    generation: int = 0
    extractor: str = ""
    complete: bool = False
    branch: str = ""
    commit: str = ""
    indexed_at: str = ""
    by_git: bool = False
    skips: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCounts:
    """How much an index has. `skips` counts files without sections, by the reason found on reading them."""

    files: int
    sections: int
    definitions: int
    references: int
    skips: Mapping[str, int]
    redacted: int
    size_bytes: int


class CodeIndex(Protocol):
    """Reads one consistent state. Orders are those of the paths, then of the lines."""

    def state(self) -> IndexState:
        """What it is of."""

    def counts(self) -> IndexCounts:
        """How much it has."""

    def skipped(self, reason: str, *, limit: int) -> list[str]:
        """The first files without sections for a reason, by path."""

    def files(self) -> dict[str, FileRow]:
        """Every file by its path."""

    def gather(self, question: SectionQuestion, *, limit: int) -> GatheredSections:
        """At most `limit` sections by their words, best first by BM25, then some by each other part of the
        question; none twice."""

    def sections(self, paths: Sequence[str]) -> dict[str, list[FoundSection]]:
        """The sections of each file in order; a path that is not there has none."""

    def defining(self, names: Sequence[str], *, limit: int) -> list[FoundSection]:
        """The sections that declare one of these names, in the given case."""

    def referring(self, names: Sequence[str], *, limit: int) -> list[FoundSection]:
        """The sections that call or import one of these names, in the given case."""

    def shown(self, session: str) -> frozenset[str]:
        """What a session has been shown."""

    def problems(self) -> list[str]:
        """What is wrong with the file; empty if nothing is."""


class CodeIndexWriter(CodeIndex, Protocol):
    """The one writer of an index. Every method is one transaction."""

    def begin(self, state: IndexState) -> None:
        """Record what the index will be of, and that it is not complete."""

    def write(
        self,
        put: Sequence[IndexedFile],
        *,
        removed: Sequence[str] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """Replace or add files, after removing and renaming others. `renamed` maps old paths to new ones."""

    def touch(self, rows: Sequence[FileRow]) -> None:
        """Replace what is known of files whose sections stay."""

    def finish(self, state: IndexState) -> None:
        """Record what the index is of, and that it is complete."""

    def show(self, session: str, keys: Sequence[str], *, keep: int) -> None:
        """Record what a session was shown; only the last `keep` sessions are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeIndexes:
    """Finds and opens indexes. `reading` raises NotFound without a file; `writing` makes one, waits for
    another writer, and raises StoreBusy when that takes too long. `watching` raises StoreBusy at once while
    another process watches the same project.

    A project's memory directory may have come with it. `known` is the index that this installation made
    there, `place` where it has it or will have it, `others` the indexes that were made elsewhere, which
    may never be opened, and `erase_others` deletes those and counts them.
    """

    known: Callable[[Path], Path | None]
    place: Callable[[Path], Path]
    others: Callable[[Path], list[Path]]
    erase_others: Callable[[Path], int]
    reading: Callable[[Path], AbstractContextManager[CodeIndex]]
    writing: Callable[[Path, str], AbstractContextManager[CodeIndexWriter]]
    erase: Callable[[Path], None]
    watching: Callable[[Path], AbstractContextManager[None]]


def _none(file: Path, purpose: str = "") -> AbstractContextManager[CodeIndexWriter]:
    raise NotFound(f"This program has no code index for {file.parent.name}.")


def _erase_none(file: Path) -> None:
    _none(file)


def _watch_none(file: Path) -> AbstractContextManager[None]:
    raise NotFound(f"This program has no code index for {file.parent.name}.")


NO_INDEXES = CodeIndexes(
    known=lambda _directory: None,
    place=lambda directory: directory / "code.db",
    others=lambda _directory: [],
    erase_others=lambda _directory: 0,
    reading=_none,
    writing=_none,
    erase=_erase_none,
    watching=_watch_none,
)
"""For programs without project memory."""

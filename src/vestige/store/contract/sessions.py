"""The index of sessions: what it keeps of transcripts, and how it is asked.

It is derived from the files of the clients and from the archive: a lost one is read again. It is a file of
its own beside the database, whatever backend the memories are in.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass
from vestige.core.transcripts import Action, EntryRole, Step

_COPY_NAME = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})\.gz")
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

PROMPT, TALK, WORK, OUTPUT = 0, 1, 2, 3
"""The fields of a passage: what the user wrote, what the model said, what it did, and what tools printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMark:
    """A file as it was read last, in the words of its checkpoint."""

    path: str
    client: str
    checkpoint: dict[str, Any]  # JSON values
    sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsOfFile:
    """Steps of a part of a file. They are stored with the checkpoint `after` them, if the file's checkpoint
    still is `before`: else another process was faster, and nothing is stored."""

    client: str
    path: str
    before: dict[str, Any] | None
    after: dict[str, Any]
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which sessions to look at. `cwd` is a folder with all below it; `repository` its name, path or address.
    `since` and `until` are seconds since 1970: the session was open in between."""

    clients: tuple[str, ...] = ()
    cwd: str | None = None
    repository: str | None = None
    since: float | None = None
    until: float | None = None
    session: str | None = None
    subagents: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session without its entries."""

    key: int
    client: str
    id: str
    cwd: str | None
    repository: str | None
    branch: str | None
    title: str | None
    parent: str | None
    subagent: bool
    started: float | None
    ended: float | None
    resume: str | None
    path: str
    prompts: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry of a session. `side`: it is of no branch that the session ended with."""

    key: int
    session: int
    uid: str
    group: str | None
    role: EntryRole
    at: float | None
    text: str
    thought: str
    output: str
    side: bool
    passage: int
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TermPostings:
    """Where a term of a query occurs: arrays with one number for each passage and field."""

    passages: Integers
    sessions: Integers
    fields: Integers
    counts: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPostings:
    """The postings of a query among the sessions of a filter, and the lengths that BM25 needs.

    `passage_lengths` and `session_lengths` have the number of terms by key, of the talk with the prompts, of
    the prompts alone, and of the work with the output.
    """

    terms: tuple[TermPostings, ...]
    passage_lengths: dict[int, tuple[int, int, int]]
    session_lengths: dict[int, tuple[int, int, int]]
    passages: int
    sessions: int
    mean_passage: tuple[float, float, float]
    mean_session: tuple[float, float, float]
    titles: tuple[Mapping[int, int], ...] = ()
    """For each term, how often it occurs in the titles of sessions; or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedFile:
    """A copy of a file: `name` in the archive's folder, with the hash and the size of what it holds."""

    path: str
    client: str
    name: str
    sha256: str
    size: int
    archived: float
    state: dict[str, Any] = field(default_factory=dict)  # JSON values: what its reader begins with

    @property
    def is_copy(self) -> bool:
        """Whether it names a file of the archive. One that was read back may name any: an index and a
        catalogue can come with a snapshot from elsewhere."""
        texts = all(isinstance(one, str) for one in (self.path, self.client, self.name))
        named = _COPY_NAME.fullmatch(self.name) if texts else None
        plain = isinstance(self.size, int) and isinstance(self.state, dict)
        return plain and named is not None and named[1] == self.sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCounts:
    """What an index holds."""

    files: int
    sessions: int
    entries: int
    passages: int
    bytes: int
    clients: dict[str, int]


class SessionIndex(Protocol):
    """The index of sessions. Several processes may read and write it at once."""

    def exists(self) -> bool:
        """Whether something was ever indexed here."""

    def reading_alone(self) -> AbstractContextManager[bool]:
        """Whether no other process reads in the background or makes copies; none begins to within the block.
        Several would do no harm, and the same work twice."""

    def marks(self) -> dict[str, FileMark]:
        """Every file that was read, by path."""

    def store(self, batch: StepsOfFile) -> bool:
        """Store steps and the checkpoint after them at once; False if another process was faster."""

    def postings(self, terms: Sequence[str], where: SessionFilter) -> SessionPostings: ...

    def titles(self, where: SessionFilter) -> dict[int, str]:
        """The titles that the user, the client or its model gave, by session."""

    def sessions(self, where: SessionFilter, *, limit: int, offset: int = 0) -> list[StoredSession]:
        """Sessions, the last used first."""

    def count(self, where: SessionFilter) -> int: ...

    def by_key(self, keys: Sequence[int]) -> dict[int, StoredSession]: ...

    def find(self, session: str) -> list[StoredSession]:
        """The sessions whose id is this or begins so."""

    def entries(self, session: int, *, first: int = 0, limit: int = 1_000) -> list[StoredEntry]:
        """The entries of a session in order, from number `first` on."""

    def passage_entries(self, passages: Sequence[int]) -> dict[int, list[StoredEntry]]:
        """The entries of passages, by passage."""

    def archived(self) -> list[ArchivedFile]: ...

    def archive(self, files: Sequence[ArchivedFile], *, replaced: Sequence[ArchivedFile] = ()) -> None:
        """Record copies of files, and that others are gone."""

    def counts(self) -> SessionCounts: ...

    def rebuild(self) -> None:
        """Forget how far files were read, so that each is read again; nothing that is stored is lost."""

    def close(self) -> None: ...


class SessionSource(Protocol):
    """Opens the index when it is first asked for."""

    def __call__(self) -> SessionIndex: ...

    def close(self) -> None:
        """Close the index, if it was opened."""

"""How far an index can be trusted: one word for every answer, and the reason."""

from enum import StrEnum

from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Call
from vestige.engine.project.files.source_file import current_hash
from vestige.engine.project.files.walk import walk
from vestige.engine.project.git import head_of
from vestige.engine.project.place import Project
from vestige.engine.project.refresh import index_gap
from vestige.store.contract.code_index import CodeIndex, FileRow, IndexState

MOST_FILES = 20_000
"""Larger projects are not walked for every answer."""
MOST_READ = 2_000
"""How many files are read to see whether their contents differ; each further one counts as changed."""


class FreshWord(StrEnum):
    """`fresh`: every file is as it was indexed. `stale`: some are not. `diverged`: another branch is checked
    out. `unknown`: it was not found out."""

    FRESH = "fresh"
    STALE = "stale"
    DIVERGED = "diverged"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The word, the number of files that differ, and the branches if they do."""

    word: FreshWord
    stale_files: int = 0
    branch: str = ""
    indexed_branch: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """The word as people read it."""
        match self.word:
            case FreshWord.STALE:
                return f"stale ({self.stale_files} files)"
            case FreshWord.DIVERGED:
                indexed = self.indexed_branch or "no branch"
                return f"diverged ({self.branch or 'no branch'}; indexed on {indexed})"
            case _:
                return f"{self.word.value} ({self.reason})" if self.reason else self.word.value


def freshness(call: Call, project: Project, index: CodeIndex) -> Freshness:
    """Compare an index with the files of its project."""
    state = index.state()
    head = head_of(project.root) if state.by_git else None
    if state.by_git and head is None:
        return Freshness(word=FreshWord.UNKNOWN, reason="git does not answer")
    known = index.files()
    if len(known) > MOST_FILES:
        moved = head is not None and head.branch != state.branch
        return (
            _diverged(state, head.branch if head else "", 0)
            if moved
            else Freshness(word=FreshWord.UNKNOWN, reason="the project is too large to compare for an answer")
        )
    walked = walk(project.root, call.check)
    if walked.by_git != state.by_git:
        return Freshness(word=FreshWord.UNKNOWN, reason="git lists the files now, or did before")
    found = index_gap(walked, known, state.generation)
    unread = [(one.path, known.get(one.path)) for one in found.unread]
    stale = len(found.gone) + _changed(project, unread, state)
    if head is not None and head.branch != state.branch:
        return _diverged(state, head.branch, stale)
    if stale or not state.complete:
        return Freshness(word=FreshWord.STALE, stale_files=stale)
    return Freshness(word=FreshWord.FRESH)


def _diverged(state: IndexState, branch: str, stale: int) -> Freshness:
    return Freshness(word=FreshWord.DIVERGED, stale_files=stale, branch=branch, indexed_branch=state.branch)


def _changed(project: Project, unread: list[tuple[str, FileRow | None]], state: IndexState) -> int:
    """How many of these files have other contents: a touched file has not changed."""
    count = max(0, len(unread) - MOST_READ)
    for path, row in unread[:MOST_READ]:
        if row is None or row.generation != state.generation:
            count += 1
            continue
        count += current_hash(project.root, path) != row.hash
    return count

"""What the operations on a project have in common: arguments, and the word that says how far to trust."""

from typing import Annotated, Literal

from pydantic import Field

from vestige.engine.project.freshness import Freshness
from vestige.operations.registry.arguments import FilePath, Wire
from vestige.operations.shared.text import Role, count, styled

ProjectPath = Annotated[
    FilePath | None, Field(description="Folder of the project. Default: the project you work in.")
]
EXAMPLE_PATH = "~/code"

FreshnessWord = Literal["fresh", "stale", "diverged", "unknown"]


class FreshnessView(Wire):
    """How far an answer can be trusted: `fresh` (every file is as it was indexed), `stale` (`staleFiles` are
    not; hits in them are read again), `diverged` (another branch is checked out), or `unknown`."""

    word: FreshnessWord
    stale_files: int = 0
    branch: str | None = None
    indexed_branch: str | None = None
    reason: str | None = None


def freshness_view(found: Freshness) -> FreshnessView:
    return FreshnessView(
        word=found.word.value,
        stale_files=found.stale_files,
        branch=found.branch or None,
        indexed_branch=found.indexed_branch or None,
        reason=found.reason or None,
    )


_ROLES: dict[str, Role] = {"fresh": "good", "stale": "fair", "diverged": "warning", "unknown": "warning"}


def freshness_text(found: FreshnessView) -> str:
    """The word as people read it."""
    word = styled(_ROLES[found.word], found.word)
    match found.word:
        case "stale":
            return f"{word} ({count(found.stale_files, 'file')})"
        case "diverged":
            indexed = found.indexed_branch or "no branch"
            return f"{word} (on {found.branch or 'no branch'}, indexed on {indexed})"
        case _:
            return f"{word} ({found.reason})" if found.reason else word

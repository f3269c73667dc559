"""What is remembered and what is asked, in one form for every set of data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.client import Json
from benchmarks.report import PROJECT

DEFAULT_DATA = PROJECT.parent / "shared" / "bench"
"""Where the data is looked for unless `--data` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text to remember. One with a `thread` is a part of something longer."""

    key: str
    content: str
    thread: str | None = None
    position: int | None = None
    author: str | None = None
    source: str | None = None
    occurred_at: datetime | None = None

    def item(self) -> Json:
        """As `smart_ingest` takes it. Texts outside threads must all be kept too, whatever the gate thinks:
        the other arms have them all."""
        facts: Json = {"content": self.content}
        for name in ("thread", "position", "author", "source"):
            if (value := getattr(self, name)) is not None:
                facts[name] = value
        if self.occurred_at is not None:
            facts["occurred_at"] = self.occurred_at.isoformat()
        if self.thread is None:
            facts["force_create"] = True
        return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something asked, and what ought to be found: keys of documents (or of threads) with their grades."""

    text: str
    gold: Mapping[str, float]
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Documents in one store, and questions about them."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]

    @property
    def threads(self) -> dict[str, str]:
        """The thread of each document that has one."""
        return {one.key: one.thread for one in self.documents if one.thread is not None}


class Missing(Exception):
    """A set of data is not there; the text says which file."""


def need(path: Path) -> Path:
    """The path, if there is something."""
    if not path.exists():
        raise Missing(f"no {path.name}")
    return path

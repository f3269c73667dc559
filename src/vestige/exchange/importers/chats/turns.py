"""Turns: a conversation becomes a memory for its title and one for each message, in one thread."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_LABEL_CHARS
from vestige.exchange.importers.bundles import Bundle, array_elements, bundle, is_archive
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.notes.markdown import sections, split
from vestige.exchange.importers.records import Brought, Target, derived_id

TURN, TITLE, DOCUMENT, PROFILE = "turn", "conversation", "document", "profile"
MESSAGE, FILE, ACCOUNT = "message", "file", "account"
"""Kinds of records that an account of an import names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatThread:
    """A conversation of a program; `at` is when it began, in the program's form."""

    tool: str
    id: str
    title: object
    at: object

    @property
    def short_title(self) -> str:
        """The title, as long as a label may be: it is kept with every turn."""
        return self.title[:MAX_LABEL_CHARS] if isinstance(self.title, str) else ""

    def title_memory(self, place: str, target: Target) -> Brought | None:
        """The title, which begins the thread: it says what the turns are about."""
        if not isinstance(self.title, str) or not self.title.strip():
            return None
        own = {"content": self.title, "node_type": TITLE, "created_at": self.at}
        return memory_of({**self._shared(target, "title", 0), **own}, place, target)

    def turn(self, own: Mapping[str, object], key: str, position: int, place: str, target: Target) -> Brought:
        """A message, known by a `key` that is unique in the conversation."""
        titled = {"title": self.short_title} if self.short_title else {}
        shared = self._shared(target, key, position)
        return memory_of({"created_at": self.at, **shared, "node_type": TURN, **titled, **own}, place, target)

    def _shared(self, target: Target, key: str, position: int) -> dict[str, object]:
        return {
            "id": derived_id(self.tool, target.scope, self.id, key),
            "source": self.tool,
            "session_id": self.id,
            "thread": f"{self.tool}:{self.id}"[:MAX_LABEL_CHARS],
            "position": position,
        }


def parts_of(text: str, title: str) -> Iterator[tuple[str, int]]:
    """A long text in sections of a sensible size, each below its headings, with its number."""
    pieces = [
        " › ".join(one.headings) + "\n\n" + part for one in sections(text, title) for part in split(one.text)
    ]
    yield from ((piece, number) for number, piece in enumerate(pieces, start=1))


def document_memories(
    text: object, title: str, known_by: Iterable[str], fields: Mapping[str, object], target: Target
) -> Iterator[Brought]:
    """The memories of a document: its parts follow each other in a thread."""
    if not isinstance(text, str) or not text.strip():
        return
    tool, *known_by = (one[:MAX_LABEL_CHARS] for one in known_by)
    for piece, number in parts_of(text, title):
        own = {
            "id": derived_id(tool, target.scope, *known_by, str(number), piece),
            "content": piece,
            "thread": ":".join((tool, *known_by))[:MAX_LABEL_CHARS],
            "position": number,
            "source": tool,
            "node_type": DOCUMENT,
        }
        yield memory_of({**own, **fields}, f"{title[:MAX_LABEL_CHARS]} § {number}", target)


@contextmanager
def exported(path: Path) -> Iterator[Bundle | None]:
    """The files of an export; None for a single JSON file."""
    if path.is_dir() or is_archive(path):
        with bundle(path) as files:
            yield files
    else:
        yield None


def elements_of(path: Path) -> Iterator[object]:
    """The elements of a JSON file that is an array."""
    with path.open("rb") as file:
        yield from array_elements(file, str(path))

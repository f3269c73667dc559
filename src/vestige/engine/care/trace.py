"""Finding every record that holds a phrase, letter by letter, in earlier revisions too."""

from collections import defaultdict
from dataclasses import field

from vestige.core.documents import Document
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.engine.care.scan_secrets import texts_of
from vestige.engine.context import Call
from vestige.engine.ingest.secrets import texts_in
from vestige.store.merge.histories import DocumentHistory, EntityHistory, MemoryHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRecord:
    """A record that holds the phrase: the fields of a memory (`now` has it as it is), the numbers of its
    earlier revisions that hold it, or a `document` of this kind."""

    id: str
    document: str | None = None
    now: Memory | None = None
    fields: tuple[str, ...] = ()
    revisions: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Traced:
    """What was read, and what holds the phrase."""

    memories: int = 0
    documents: int = 0
    found: list[TracedRecord] = field(default_factory=list)


def trace(call: Call, phrase: str) -> Traced:
    """Read every accessible memory with its wordings, tags, origin, metadata and earlier revisions, and every
    other record. Upper and lower case are the same."""
    traced, wanted = Traced(), phrase.casefold()
    for batch in call.engine.store.histories(access=call.access):
        call.check()
        for history in batch:
            traced.memories += isinstance(history, MemoryHistory) and bool(history.versions)
            traced.documents += isinstance(history, DocumentHistory) and history.document is not None
            found = _holding(history, wanted)
            if found is not None:
                traced.found.append(found)
    return traced


def _holding(history: EntityHistory, wanted: str) -> TracedRecord | None:
    match history:
        case MemoryHistory(versions=versions) if versions:
            return _in_versions(history.memory_id, versions, wanted)
        case DocumentHistory(document=Document() as document):
            held = any(wanted in text.casefold() for text in texts_in(document.body))
            return TracedRecord(id=document.id, document=document.kind) if held else None
        case _:
            return None


def _in_versions(memory_id: str, versions: tuple[Memory, ...], wanted: str) -> TracedRecord | None:
    fields: defaultdict[int, list[str]] = defaultdict(list)
    for version in versions:
        for name, value in texts_of(version).items():
            if any(wanted in text.casefold() for text in texts_in(value)):
                fields[version.revision].append(name)
    if not fields:
        return None
    last = versions[-1]
    return TracedRecord(
        id=memory_id,
        now=last,
        fields=tuple(fields.get(last.revision, ())),
        revisions=tuple(number for number in fields if number != last.revision),
    )

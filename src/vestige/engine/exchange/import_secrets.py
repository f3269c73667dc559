"""Secrets in data that another store sends.

A merge can neither refuse nor redact them: two stores that have synchronised would not hold the same. So the
records are listed, for their owner to redact on every machine (`engine.care.scan_secrets`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from vestige.core.documents import Document
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Memory
from vestige.engine.care.scan_secrets import secrets_in
from vestige.engine.context import Call
from vestige.engine.ingest.secrets import find_in_fields
from vestige.store.merge.histories import DocumentHistory, EntityHistory, MemoryHistory

MEMORY = "memory"
Named = tuple[str, str]
"""A record: `memory` or the kind of a document, and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """An imported record that holds secrets: `memory` or a kind of document, its id, the kinds of secrets."""

    entity: str
    id: str
    secrets: tuple[str, ...]


class ImportedSecrets:
    """Scans histories before they are merged, unless the settings allow secrets."""

    def __init__(self, call: Call) -> None:
        self._store = call.engine.store
        self._wanted = call.engine.settings.memory.secrets != "allow"
        self._found: defaultdict[Named, set[str]] = defaultdict(set)

    def watch(self, batch: Sequence[EntityHistory]) -> None:
        """Scan the histories of a batch that differ from what is here."""
        if not self._wanted:
            return
        memories = [one for one in batch if isinstance(one, MemoryHistory) and one.versions]
        documents = [one for one in batch if isinstance(one, DocumentHistory) and one.document is not None]
        here = self._memories([one.memory_id for one in memories])
        kept = self._documents([(one.kind, one.id) for one in documents])
        new: list[EntityHistory] = [one for one in memories if here.get(one.memory_id) != one.versions[-1]]
        new += [one for one in documents if kept.get((one.kind, one.id)) != one.document]
        for one in (finding for history in new for finding in secrets_in(history)):
            self._found[one.document or MEMORY, one.id].add(one.sighting.kind)

    def expected(self) -> tuple[Holding, ...]:
        """The findings that would be imported: what is deleted here does not come back."""
        return _holdings({one: kinds for one, kinds in self._found.items() if not self._is_deleted(one)})

    def held(self) -> tuple[Holding, ...]:
        """The findings that are here, after the merge."""
        here = self._memories([name for entity, name in self._found if entity == MEMORY])
        held: set[Named] = {(MEMORY, name) for name in here}
        documents = self._documents([one for one in self._found if one[0] != MEMORY])
        held |= {one for one, document in documents.items() if find_in_fields({"body": document.body})[1]}
        return _holdings({one: kinds for one, kinds in self._found.items() if one in held})

    def _is_deleted(self, one: Named) -> bool:
        return one[0] == MEMORY and self._store.tombstone(one[1], access=EVERYTHING) is not None

    def _memories(self, ids: Sequence[str]) -> dict[str, Memory]:
        return {one.memory.id: one.memory for one in self._store.get_many(ids, access=EVERYTHING)}

    def _documents(self, named: Sequence[Named]) -> dict[Named, Document]:
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for kind, name in named:
            ids[kind].append(name)
        return {
            (kind, one.id): one
            for kind, some in ids.items()
            for one in self._store.documents(kind, ids=some, access=EVERYTHING, limit=len(some))
        }


def merge_holdings(several: Sequence[Sequence[Holding]]) -> tuple[Holding, ...]:
    found: defaultdict[Named, set[str]] = defaultdict(set)
    for holdings in several:
        for one in holdings:
            found[one.entity, one.id].update(one.secrets)
    return _holdings(found)


def _holdings(found: Mapping[Named, set[str]]) -> tuple[Holding, ...]:
    return tuple(
        Holding(entity=entity, id=name, secrets=tuple(sorted(kinds)))
        for (entity, name), kinds in sorted(found.items())
    )

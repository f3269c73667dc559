"""Secrets that come in with what another store tells.

A merge can neither refuse them nor black them out: two stores that have met would not hold the same. So what
came in with one is named, for its owner to black out everywhere (`engine.scanning`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Memory
from vestige.engine.care.scan_secrets import found_in
from vestige.engine.context import Call
from vestige.engine.ingest.secrets import look
from vestige.store.merge.histories import DocumentHistory, EntityHistory, MemoryHistory

MEMORY = "memory"
Named = tuple[str, str]
"""A record: `memory` or the kind of a document, and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A record that came in with secrets in it: `memory` or the kind of a document, and what they are."""

    entity: str
    id: str
    secrets: tuple[str, ...]


class Arrivals:
    """Looks through lives before they are taken in, where the settings do not allow secrets anyway."""

    def __init__(self, call: Call) -> None:
        self._store = call.engine.store
        self._wanted = call.engine.settings.memory.secrets != "allow"
        self._found: defaultdict[Named, set[str]] = defaultdict(set)

    def watch(self, batch: Sequence[EntityHistory]) -> None:
        """Look through those of these lives that tell anything else than what is here."""
        if not self._wanted:
            return
        memories = [life for life in batch if isinstance(life, MemoryHistory) and life.versions]
        told = [life for life in batch if isinstance(life, DocumentHistory) and life.document is not None]
        here = self._memories([life.memory_id for life in memories])
        kept = self._documents([(life.kind, life.id) for life in told])
        new: list[EntityHistory] = [
            life for life in memories if here.get(life.memory_id) != life.versions[-1]
        ]
        new += [life for life in told if kept.get((life.kind, life.id)) != life.document]
        for one in (finding for life in new for finding in found_in(life)):
            self._found[one.document or MEMORY, one.id].add(one.sighting.kind)

    def expected(self) -> tuple[Holding, ...]:
        """What was seen and would come in: nothing brings back what is deleted here."""
        return _holdings({one: kinds for one, kinds in self._found.items() if not self._is_buried(one)})

    def held(self) -> tuple[Holding, ...]:
        """What was seen and is here, now that it was taken in."""
        here = self._memories([name for entity, name in self._found if entity == MEMORY])
        held: set[Named] = {(MEMORY, name) for name in here}
        documents = self._documents([one for one in self._found if one[0] != MEMORY])
        held |= {one for one, document in documents.items() if look({"body": document.body})[1]}
        return _holdings({one: kinds for one, kinds in self._found.items() if one in held})

    def _is_buried(self, one: Named) -> bool:
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


def united(several: Sequence[Sequence[Holding]]) -> tuple[Holding, ...]:
    """What came in from several places, each record once."""
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

"""Taking in what a reader of a foreign file yields: checked record by record, written in batches.

A record that cannot be taken costs only itself. Running an import again adds nothing: ids are kept, or
derived from what a record says, and what was deleted, cut or dropped here since does not come back.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

from vestige.cognition.decay import W20
from vestige.documents import Document
from vestige.engine import hygiene
from vestige.engine.context import Call
from vestige.engine.embedding import backfill, embedder_or_none
from vestige.engine.foreign_documents import Documents
from vestige.engine.intake import REDACTED, Bring, Decided, Intake
from vestige.engine.linking import FADED, LINKS
from vestige.engine.scanning import texts_of
from vestige.engine.tally import Outcome
from vestige.errors import EmbedderError, Forbidden, InvalidInput, ModelMismatch
from vestige.events import Place, StoreMerged
from vestige.importers.brought import (
    Brought,
    BroughtEdge,
    BroughtInsight,
    BroughtIntention,
    BroughtMemory,
    Reading,
    Target,
    Unread,
)
from vestige.importers.links import CONNECTION
from vestige.importers.memories import MEMORY
from vestige.importers.recognition import Format, reading
from vestige.models import ANYTHING, EVERYTHING, covers
from vestige.store.changes import UNLINKED, Add, Carry, Change, Link, Put

BATCH = 200
"""Records in one transaction."""

EdgeKey = tuple[str, str, str]
One = TypeVar("One", BroughtMemory, BroughtEdge, BroughtIntention, BroughtInsight, Unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """What became of a foreign file; `embedded` memories got vectors afterwards, `note` says why none did."""

    outcome: Outcome
    embedded: int = 0
    note: str | None = None


def import_foreign(call: Call, path: Path, form: Format, scope: str, *, dry_run: bool) -> Foreign:
    """Take in every record of a file that can be; with `dry_run` only say what would become of each.

    Cancelling takes effect between batches; what is in by then stays, and the next run goes on from it.
    """
    target = _target(call, scope)
    with _reading(path, form, target) as found:
        outcome = _bring(call, found, target, dry_run=dry_run)
    memories = outcome.tallies.get(MEMORY)
    if dry_run or memories is None or memories.left == memories.read:
        return Foreign(outcome=outcome)
    if memories.imported:
        now = call.engine.now()
        call.engine.events.emit(
            StoreMerged(
                timestamp=now,
                places=(Place(scope=scope),),
                source=path.name,
                added=memories.imported,
                changed=0,
                ended=0,
            )
        )
    return _embedded(call, outcome)


def _embedded(call: Call, outcome: Outcome) -> Foreign:
    """Make the vectors; also where all memories were here already: the run that brought them may have been
    stopped before it came to this."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return Foreign(outcome=outcome, note="No model is there: the texts are embedded once there is one.")
    try:
        return Foreign(outcome=outcome, embedded=backfill(call, embedder))
    except (EmbedderError, ModelMismatch) as exc:
        return Foreign(outcome=outcome, note=exc.message)


@contextmanager
def _reading(path: Path, form: Format, target: Target) -> Iterator[Reading]:
    try:
        with reading(path, form, target) as found:
            yield found
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror}.", details={"argument": "path"}) from exc


def _target(call: Call, scope: str) -> Target:
    """Where foreign records go; Forbidden where this caller may not write."""
    reach = call.access
    if reach.domains is not None or not any(covers(one, scope) for one in reach.scopes or ("/",)):
        raise Forbidden(f"This caller may not write into the scope {scope}.", details={"scope": scope})
    some = call.engine.store.find(ANYTHING, access=EVERYTHING, limit=1)
    return Target(scope=scope, now=call.engine.now(), curve=some[0].strength.curve if some else W20)


def _bring(call: Call, found: Reading, target: Target, *, dry_run: bool) -> Outcome:
    intake = Intake(call, target, dry_run=dry_run)
    memories, links, documents = Memories(intake), Links(intake), Documents(intake)
    done = 0
    for batch in _batches(found.records):
        call.check()
        match batch[0]:
            case Unread():
                for one in _only(Unread, batch):
                    intake.account.left(one.kind, one.place, one.reason, one.count)
            case BroughtMemory():
                memories.take(_only(BroughtMemory, batch))
            case BroughtEdge():
                links.take(_only(BroughtEdge, batch))
            case BroughtIntention():
                documents.take_intentions(_only(BroughtIntention, batch))
            case BroughtInsight():
                documents.take_insights(_only(BroughtInsight, batch))
        done += len(batch)
        call.progress(done, max(done, found.total or done), f"{done:,} records read")
    return intake.account.outcome()


def _batches(records: Iterator[Brought]) -> Iterator[list[Brought]]:
    """The records in their order, batches of one kind each."""
    for _, same in groupby(records, key=type):
        while batch := list(islice(same, BATCH)):
            yield batch


def _only(kind: type[One], batch: Sequence[Brought]) -> list[One]:
    """A batch as what it is: all of one kind."""
    return [one for one in batch if isinstance(one, kind)]


class Memories:
    """The memories of an import. What was deleted here does not come back."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def take(self, batch: Sequence[BroughtMemory]) -> None:
        """Take in some memories."""
        self._intake.memories |= here(self._intake, [one.memory.id for one in batch])
        self._intake.take(MEMORY, batch, self._memory)

    def _memory(self, one: BroughtMemory) -> Decided:
        intake, memory_id = self._intake, one.memory.id
        if memory_id in intake.memories:
            return None
        if intake.store.tombstone(memory_id, access=intake.access) is not None:
            return "it was deleted here"
        clean = hygiene.screened(intake.call, texts_of(one.memory))
        changes: tuple[Change, ...] = (Add(memory=replace(one.memory, **clean)),)
        if one.strength is not None:
            changes += (Carry(memory_id=memory_id, strength=one.strength, at=intake.target.now),)
        intake.memories.add(memory_id)
        return Bring(changes=changes, notes=(REDACTED,) if clean else ())


class Links:
    """The links of an import. What was cut here does not come back."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._linked: set[EdgeKey] = set()
        """Links that are here by now, or would be."""

    def take(self, batch: Sequence[BroughtEdge]) -> None:
        """Take in some links."""
        intake = self._intake
        ends = sorted({end for one in batch for end in (one.edge.source_id, one.edge.target_id)})
        intake.memories |= here(intake, ends)
        edges = intake.store.edges(ends, access=intake.access, among=True)
        self._linked |= {(edge.source_id, edge.target_id, edge.kind) for edge in edges}
        self._begin_fading()
        intake.take(CONNECTION, batch, self._edge)

    def _edge(self, one: BroughtEdge) -> Decided:
        source, end = one.edge.source_id, one.edge.target_id
        key = (source, end, one.edge.kind)
        if key in self._linked:
            return None
        if not self._intake.memories >= {source, end}:
            return "a memory at its end is not here"
        if key in self._cut:
            return "it was cut here"
        self._linked.add(key)
        return Bring(changes=(Link(edge=one.edge),))

    @cached_property
    def _cut(self) -> set[EdgeKey]:
        """The links that have ended here."""
        return {
            (str(event.memory_id), event.payload["target"], event.payload["kind"])
            for event in self._intake.logged(UNLINKED)
        }

    def _begin_fading(self) -> None:
        """Say that links have faded until now, where none ever have: what time has done to a foreign link is
        in its weight, and must not be done again."""
        intake, now = self._intake, self._intake.target.now
        if intake.dry_run or intake.access != EVERYTHING:
            return
        if not intake.store.documents(FADED, ids=[LINKS], access=EVERYTHING, limit=1):
            mark = Document(kind=FADED, id=LINKS, created_at=now, updated_at=now)
            intake.store.commit([Put(document=mark, logged=False)], access=EVERYTHING)


def here(intake: Intake, memory_ids: Sequence[str]) -> set[str]:
    """Those of these memories that the store has."""
    return {record.memory.id for record in intake.store.get_many(memory_ids, access=intake.access)}

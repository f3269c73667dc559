"""Import of foreign files: records of a reader are checked one by one, and written in batches.

A record that cannot be imported costs only itself. A second import adds nothing: ids are kept, or derived
from the content, and what was deleted, cut or dropped here since does not come back.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

from vestige.cognition.fsrs.formulas import W20
from vestige.cognition.intentions.serialise import body_of
from vestige.cognition.text.analyser import text_hash
from vestige.core.documents import PENDING, Document
from vestige.core.errors import EmbedderError, Forbidden, InvalidInput, ModelMismatch
from vestige.core.events import EventScope, StoreMerged
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, EVERYTHING, Filter, Memory, covers
from vestige.engine.care.scan_secrets import texts_of
from vestige.engine.context import Call
from vestige.engine.domains.arrivals import catch_up
from vestige.engine.embedding import backfill, embedder_or_none, vectors_for
from vestige.engine.exchange.import_batches import REDACTED, AcceptedRecord, Decided, ImportOutcome, Intake
from vestige.engine.ingest import secrets
from vestige.engine.ingest.inbox import document_of, flags_in, pending_import, policy_of
from vestige.engine.ingest.orders import MEANING, is_judged, new_orders
from vestige.engine.intentions import KIND, MOST, intentions
from vestige.engine.memory.link import FADED, LINKS
from vestige.engine.revise import find_document, put_document
from vestige.engine.sleep.insights import INSIGHT
from vestige.exchange.importers.memories import KEPT
from vestige.exchange.importers.recognition import ImportFormat, reading
from vestige.exchange.importers.records import (
    CONNECTION,
    INTENTION,
    MEMORY,
    Brought,
    BroughtEdge,
    BroughtInsight,
    BroughtIntention,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
)
from vestige.store.contract.changes import DROPPED, UNLINKED, Add, Carry, Change, Embedded, Link, Put

# -- Intentions and insights

GONE = "it was dropped here"
HELD = "it may give orders to an agent: it waits in the review inbox"


class DocumentImport:
    """Imports intentions and insights. What was deleted here does not come back."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._open: int | None = None

    @cached_property
    def _dropped(self) -> set[tuple[str, str]]:
        return {(event.payload["kind"], event.payload["id"]) for event in self._intake.logged(DROPPED)}

    def _there(self, kind: str, ids: Sequence[str]) -> set[str]:
        found = self._intake.store.documents(kind, ids=ids, access=self._intake.access, limit=len(ids))
        return {one.id for one in found}

    def take_intentions(self, batch: Sequence[BroughtIntention]) -> None:
        there = self._there(KIND, [one.intention.id for one in batch])
        self._intake.take(INTENTION, batch, lambda one: self._intention(one, there))

    def _intention(self, one: BroughtIntention, there: set[str]) -> Decided:
        intention = one.intention
        if intention.id in there:
            return None
        if (KIND, intention.id) in self._dropped:
            return GONE
        body = body_of(intention)
        clean = secrets.screen_fields(self._intake.call, {"body": body})
        if intention.ended is None and not self._room():
            return f"the scope {intention.scope} has {MOST:,} open intentions, which is the limit"
        document = Document(
            kind=KIND,
            id=intention.id,
            body=clean.get("body", body),
            scope=intention.scope,
            created_at=intention.created_at,
            updated_at=intention.updated_at,
        )
        return AcceptedRecord(changes=(Put(document=document),), notes=(REDACTED,) if clean else ())

    def _room(self) -> bool:
        """Whether one more open intention fits; it is then counted."""
        if self._open is None:
            scope = self._intake.target.scope
            held = intentions(self._intake.call, Filter(scope=scope))
            self._open = sum(one.ended is None and one.scope == scope for one in held)
        self._open += 1
        return self._open <= MOST

    def take_insights(self, batch: Sequence[BroughtInsight]) -> None:
        """Import some insights. An insight is valid while its sources say what they say now."""
        intake = self._intake
        there = self._there(INSIGHT, [one.id for one in batch])
        sources = sorted({name for one in batch for name in one.sources})
        found = intake.store.get_many(sources, access=intake.access)
        texts = dict.fromkeys(intake.memories if intake.dry_run else (), "")
        texts |= {record.memory.id: text_hash(record.memory) for record in found}
        intake.take(INSIGHT, batch, lambda one: self._insight(one, there, texts))

    def _insight(self, one: BroughtInsight, there: set[str], texts: Mapping[str, str]) -> Decided:
        if one.id in there:
            return None
        if (INSIGHT, one.id) in self._dropped:
            return GONE
        if not texts.keys() >= set(one.sources):
            return "a memory it comes from is not here"
        given = {"text": one.text, "extra": dict(one.extra)}
        clean = secrets.screen_fields(self._intake.call, given)
        text, extra = (clean.get(name, given[name]) for name in ("text", "extra"))
        body = {
            **({KEPT: extra} if extra else {}),
            "type": one.kind,
            "insight": text,
            "confidence": one.confidence,
            "novelty": one.novelty,
            "texts": [texts[name] for name in one.sources],
        }
        scope, cites = self._intake.target.scope, one.sources
        put = put_document(INSIGHT, one.id, None, one.at, body=body, scope=scope, cites=cites, logged=True)
        return AcceptedRecord(changes=(put,), notes=(REDACTED,) if clean else ())


# -- The import

BATCH = 200
"""Records in one transaction."""

EdgeKey = tuple[str, str, str]
One = TypeVar("One", BroughtMemory, BroughtEdge, BroughtIntention, BroughtInsight, UnreadRecords)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignImport:
    """The result of an import; `embedded` memories got vectors, `note` says why none did."""

    outcome: ImportOutcome
    embedded: int = 0
    note: str | None = None


def import_foreign(call: Call, path: Path, form: ImportFormat, scope: str, *, dry_run: bool) -> ForeignImport:
    """Import every record of a file that can be imported; with `dry_run`, only report what would happen.
    After a cancellation, between batches, the next run continues with the rest."""
    target = import_target(call, scope)
    with _reading(path, form, target) as found:
        return import_reading(call, found, target, name=path.name, dry_run=dry_run)


def import_reading(
    call: Call, found: Reading, target: Target, *, name: str, dry_run: bool = False
) -> ForeignImport:
    """Import records that are read from anywhere; `name` says where from."""
    outcome, embedded = _import_records(call, found, target, dry_run=dry_run)
    memories = outcome.tallies.get(MEMORY)
    if dry_run or memories is None or memories.left == memories.read:
        return ForeignImport(outcome=outcome)
    if memories.imported:
        now, here, added = call.engine.now(), (EventScope(scope=target.scope),), memories.imported
        call.engine.events.emit(
            StoreMerged(timestamp=now, scopes=here, source=name, added=added, changed=0, ended=0)
        )
    made = _embed(call, outcome, embedded)
    if memories.imported:
        catch_up(call)
    return made


def _embed(call: Call, outcome: ImportOutcome, embedded: int) -> ForeignImport:
    """Embed the imported memories, also those that were here: an earlier run may have stopped before that."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return ForeignImport(
            outcome=outcome, note="There is no embedding model; the texts are embedded once there is one."
        )
    try:
        return ForeignImport(outcome=outcome, embedded=embedded + backfill(call, embedder))
    except (EmbedderError, ModelMismatch) as exc:
        return ForeignImport(outcome=outcome, note=exc.message)


@contextmanager
def _reading(path: Path, form: ImportFormat, target: Target) -> Iterator[Reading]:
    try:
        with reading(path, form, target) as found:
            yield found
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror}.", details={"argument": "path"}) from exc


def import_target(call: Call, scope: str) -> Target:
    """The scope for foreign records. Raises Forbidden if the caller may not write there."""
    access = call.access
    if access.domains is not None or not any(covers(one, scope) for one in access.scopes or ("/",)):
        raise Forbidden(f"This caller may not write into the scope {scope}.", details={"scope": scope})
    some = call.engine.store.find(ANYTHING, access=EVERYTHING, limit=1)
    return Target(scope=scope, now=call.engine.now(), curve=some[0].strength.curve if some else W20)


def _import_records(
    call: Call, found: Reading, target: Target, *, dry_run: bool
) -> tuple[ImportOutcome, int]:
    """The outcome, and how many memories were embedded on the way."""
    intake = Intake(call, target, dry_run=dry_run)
    links, documents = LinkImport(intake), DocumentImport(intake)
    done, began = 0, call.engine.monotonic()
    for batch in _batches(found.records):
        call.check()
        match batch[0]:
            case UnreadRecords():
                for one in _only(UnreadRecords, batch):
                    intake.account.left(one.kind, one.place, one.reason, one.count)
            case BroughtMemory():
                take_memories(intake, _only(BroughtMemory, batch))
            case BroughtEdge():
                links.take(_only(BroughtEdge, batch))
            case BroughtIntention():
                documents.take_intentions(_only(BroughtIntention, batch))
            case BroughtInsight():
                documents.take_insights(_only(BroughtInsight, batch))
        done += len(batch)
        call.progress(done, max(done, found.total or done), _progress(done, call.engine.monotonic() - began))
    return intake.account.outcome(), intake.embedded


def _progress(done: int, seconds: float) -> str:
    rate = f", {done / seconds:,.0f} a second" if seconds > 0 else ""
    return f"{done:,} records read{rate}"


def _batches(records: Iterator[Brought]) -> Iterator[list[Brought]]:
    """The records in their order, in batches of one kind each."""
    for _, same in groupby(records, key=type):
        while batch := list(islice(same, BATCH)):
            yield batch


def _only(kind: type[One], batch: Sequence[Brought]) -> list[One]:
    """A batch with its type: all records are of one kind."""
    return [one for one in batch if isinstance(one, kind)]


def take_memories(intake: Intake, batch: Sequence[BroughtMemory]) -> None:
    """Import some memories. What was deleted here does not come back."""
    intake.memories |= stored_ids(intake, [one.memory.id for one in batch])
    new = [one.memory for one in batch if one.memory.id not in intake.memories]
    intake.vectors = {} if intake.dry_run else _vectors(intake.call, new)
    intake.take(MEMORY, batch, lambda one: _memory(intake, one))


def _vectors(call: Call, memories: Sequence[Memory]) -> dict[str, Embedded]:
    """The vectors by which memories are judged before they are stored; none without the model for that."""
    embedder = embedder_or_none(call.engine)
    if embedder is None or not is_judged(embedder.signature):
        return {}
    quiet = Call(engine=call.engine, cancelled=call.cancelled, deadline=call.deadline)
    made = vectors_for(quiet, memories)
    return {memory.id: one for memory, one in zip(memories, made, strict=False)}


def _memory(intake: Intake, one: BroughtMemory) -> Decided:
    memory_id = one.memory.id
    if memory_id in intake.memories:
        return None
    if intake.store.tombstone(memory_id, access=intake.access) is not None:
        return "it was deleted here"
    clean = intake.screen(texts_of(one.memory))
    memory = replace(one.memory, **clean)
    made = intake.vectors.get(memory_id) if memory.content == one.memory.content else None
    flags = flags_in(texts_of(memory), memory.origin)
    if not flags and made is not None and new_orders(memory, made):
        flags = MEANING
    if flags and policy_of(intake.call, memory.scope) != "off":
        return _held(intake, memory, flags)
    changes: tuple[Change, ...] = (Add(memory=memory, embedded=made),)
    if one.strength is not None:
        changes += (Carry(memory_id=memory_id, strength=one.strength, at=intake.target.now),)
    intake.memories.add(memory_id)
    intake.embedded += made is not None
    return AcceptedRecord(changes=changes, notes=(REDACTED,) if clean else ())


def _held(intake: Intake, memory: Memory, flags: tuple[str, ...]) -> Decided:
    """Let a memory wait in the review inbox, unless it does already or was decided about."""
    if find_document(intake.call, PENDING, memory.id) is not None:
        return None
    if any(event.payload == {"kind": PENDING, "id": memory.id} for event in intake.logged(DROPPED)):
        return GONE
    put = Put(document=document_of(pending_import(memory, flags, intake.target.now)))
    return AcceptedRecord(changes=(put,), notes=(HELD,))


class LinkImport:
    """Imports links. What was cut here does not come back."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._linked: set[EdgeKey] = set()
        """Links that exist here now, or would after a dry run."""

    def take(self, batch: Sequence[BroughtEdge]) -> None:
        intake = self._intake
        ends = sorted({end for one in batch for end in (one.edge.source_id, one.edge.target_id)})
        intake.memories |= stored_ids(intake, ends)
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
        return AcceptedRecord(changes=(Link(edge=one.edge),))

    @cached_property
    def _cut(self) -> set[EdgeKey]:
        return {
            (str(event.memory_id), event.payload["target"], event.payload["kind"])
            for event in self._intake.logged(UNLINKED)
        }

    def _begin_fading(self) -> None:
        """Record that links have faded until now, if no run ever recorded that. The weight of a foreign link
        already includes its fading, which must not be applied twice."""
        intake, now = self._intake, self._intake.target.now
        if intake.dry_run or intake.access != EVERYTHING:
            return
        if find_document(intake.call, FADED, LINKS) is None:
            intake.store.commit([put_document(FADED, LINKS, None, now, body={})], access=EVERYTHING)


def stored_ids(intake: Intake, memory_ids: Sequence[str]) -> set[str]:
    return {record.memory.id for record in intake.store.get_many(memory_ids, access=intake.access)}

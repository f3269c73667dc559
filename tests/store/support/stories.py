"""What happens to a few stores that are changed apart and tell each other of it now and then."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from hypothesis import strategies as st

from tests.store.support.generators import DAY, HOUR, T0, a_memory
from vestige.cognition.fsrs.strength import encode
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Edge, Evidence, Memory, MemoryState
from vestige.store.contract.changes import (
    Add,
    Carry,
    Change,
    ChangeState,
    Drop,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Tune,
    Unlink,
)
from vestige.store.contract.store import MemoryStore

TEXTS = ("zinc cobalt", "Zinc, cobalt.", "zinc zinc", "日本語 über", "copper 16", "copper 14")
SCOPES = ("/", "/a", "/a/b")
NAMES = ("m0", "m1", "m2", "m3", "m4")
KINDS = ("near", "cause")
FILED = ("note", "sample", "finding")
EVIDENCE = [evidence for evidence in Evidence if evidence is not Evidence.ENCODED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """A change that somebody makes in one of the stores, of whatever is there."""

    where: int
    kind: str
    pick: int
    other: int
    choice: int
    hours: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One store tells another one its first batches, or all."""

    giver: int
    taker: int
    size: int
    batches: int | None


deeds = st.builds(
    Deed,
    where=st.integers(0, 2),
    kind=st.sampled_from(
        (
            *(
                "add",
                "add",
                "add",
                "revise",
                "revise",
                "revise",
                "remark",
                "remark",
                "link",
                "link",
                "unlink",
            ),
            *("put", "put", "put", "drop", "tune", "settle", "carry", "hush", "forget"),
        )
    ),
    pick=st.integers(0, 4),
    other=st.integers(0, 4),
    choice=st.integers(0, 11),
    hours=st.integers(-2_000, 2_000),
)
visits = st.builds(
    Visit,
    giver=st.integers(0, 2),
    taker=st.integers(0, 2),
    size=st.integers(1, 5),
    batches=st.one_of(st.none(), st.integers(1, 3)),
)
stories = st.lists(st.one_of(deeds, deeds, deeds, visits), min_size=10, max_size=40)

Edit = Callable[[Memory, Deed, datetime], Memory]
EDITS: tuple[Edit, ...] = (
    lambda memory, deed, at: replace(memory, content=TEXTS[deed.other]),
    lambda memory, deed, at: replace(memory, content=TEXTS[deed.other], phrasings=(memory.content,)),
    lambda memory, deed, at: replace(memory, tags=("red", f"t{deed.other}")),
    lambda memory, deed, at: replace(memory, valid_from=at, valid_until=at + deed.other * DAY),
    lambda memory, deed, at: replace(memory, superseded_by=NAMES[deed.other], valid_from=None),
    lambda memory, deed, at: replace(memory, pinned=not memory.pinned),
    lambda memory, deed, at: replace(memory, scope=SCOPES[deed.other % 3]),
    lambda memory, deed, at: replace(memory, archived_at=None if memory.archived_at else at),
    lambda memory, deed, at: replace(memory, domains=("home",), domain_scores={"home": deed.other / 4}),
    lambda memory, deed, at: replace(memory, thread="t", position=deed.other % 2 or None),
    lambda memory, deed, at: replace(memory, metadata={"n": deed.other}, node_type="event"),
    lambda memory, deed, at: memory,
)


def change(store: MemoryStore, deed: Deed, number: int) -> Change | None:
    """The deed as a change of what the store holds; None where nothing fits."""
    at = T0 + deed.hours * HOUR + timedelta(microseconds=number)
    name = NAMES[deed.pick]
    here = {record.memory.id: record.memory for record in store.get_many(NAMES, access=EVERYTHING)}
    if deed.kind == "tune":
        return Tune(w20=0.1 + deed.choice / 20, at=at)
    if deed.kind in ("put", "drop"):
        return filed(store, deed, at, list(here))
    if deed.kind in ("link", "unlink"):
        return linked(store, deed, at, here)
    if name not in here:
        gone = store.tombstone(name, access=EVERYTHING) is not None
        thread = "t" if deed.choice % 2 else None
        new = replace(
            a_memory(name, TEXTS[deed.choice % 6], at), thread=thread, scope=SCOPES[deed.choice % 3]
        )
        return None if gone else Add(memory=new)
    return about(here[name], deed, at)


def about(memory: Memory, deed: Deed, at: datetime) -> Change:
    """A change of one memory."""
    next_one = replace(memory, revision=memory.revision + 1, updated_at=at)
    match deed.kind:
        case "forget":
            return Forget(memory_id=memory.id, at=at, reason="asked to")
        case "remark":
            evidence = EVIDENCE[(deed.choice + deed.other) % len(EVIDENCE)]
            return RecordEvidence(memory_id=memory.id, evidence=evidence, at=at, amount=deed.other / 4)
        case "settle":
            before, after = MemoryState.ACTIVE, MemoryState.DORMANT
            return ChangeState(memory_id=memory.id, at=at, before=before, after=after, reason="time")
        case "carry":
            brought = replace(encode(at), stability=1.0 + deed.choice, reps=deed.other)
            return Carry(memory_id=memory.id, strength=brought, at=at)
        case "hush":
            hushed = replace(next_one, suppression_count=deed.other, suppressed_at=at if deed.other else None)
            return Revise(memory=hushed, reason="suppressed")
        case _:
            return Revise(memory=EDITS[deed.choice](next_one, deed, at), reason=f"edit {deed.choice}")


def linked(store: MemoryStore, deed: Deed, at: datetime, here: Container[str]) -> Change | None:
    """An edge between two of the first memories, made, weighed anew or ended."""
    source, target, kind = NAMES[deed.pick % 3], NAMES[(deed.pick + 1) % 3], KINDS[deed.other % 2]
    if source not in here or target not in here:
        return None
    if deed.kind == "link":
        weight = deed.choice / 11
        return Link(edge=Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=at))
    known = store.edges([source], access=EVERYTHING)
    if (source, target, kind) in {(edge.source_id, edge.target_id, edge.kind) for edge in known}:
        return Unlink(source_id=source, target_id=target, kind=kind, at=at)
    return None


def filed(store: MemoryStore, deed: Deed, at: datetime, here: Sequence[str]) -> Change | None:
    """A document in its next version, or its end."""
    kind, name = FILED[deed.choice % 3], f"d{deed.pick % 2}"
    known = store.documents(kind, access=EVERYTHING, ids=[name], limit=1)
    if deed.kind == "drop":
        return Drop(kind=kind, id=name, at=at) if known else None
    document = Document(
        kind=kind,
        id=name,
        body={"seen": deed.choice, "terms": {f"t{deed.other}": deed.hours / 8}, "last": at.isoformat()},
        scope=SCOPES[deed.other % 3],
        cites=tuple(one for one in here if one == NAMES[deed.other]),
        version=known[0].version + 1 if known else 1,
        created_at=at,
        updated_at=at,
    )
    return Put(document=document, logged=deed.choice % 4 < 2)


def visit(giver: MemoryStore, taker: MemoryStore, size: int = 500, batches: int | None = None) -> None:
    for batch in islice(giver.histories(access=EVERYTHING, batch=size), batches):
        taker.absorb(batch, access=EVERYTHING)


def live(stores: Sequence[MemoryStore], story: Sequence[Deed | Visit]) -> None:
    """Three memories that all stores know, then the story."""
    stores[0].commit([Add(memory=a_memory(name, TEXTS[0])) for name in NAMES[:3]], access=EVERYTHING)
    for taker in stores[1:]:
        visit(stores[0], taker)
    go_on(stores, story)


def go_on(stores: Sequence[MemoryStore], story: Sequence[Deed | Visit], first: int = 1) -> None:
    for number, step in enumerate(story, start=first):
        if isinstance(step, Visit):
            if step.giver != step.taker:
                visit(stores[step.giver], stores[step.taker], step.size, step.batches)
            continue
        made = change(stores[step.where], step, number)
        if made is not None:
            stores[step.where].commit([made], access=EVERYTHING)

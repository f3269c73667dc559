"""Lives of every kind, with awkward texts, numbers and times, each of them whole in itself."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

from vestige.core.documents import Document
from vestige.core.models import ROOT_SCOPE, LogEvent, Memory
from vestige.embed.protocol import Signature
from vestige.store.contract.changes import Embedded, Piece, Tokens
from vestige.store.merge.histories import (
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
)
from vestige.store.merge.union import GROUPED

SIGNATURE = Signature(name="test", revision="1", dimension=12)
BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)

letters = st.characters(codec="utf-8", exclude_characters="\0")
texts = st.text(letters, min_size=1, max_size=20).filter(lambda said: bool(said.strip()))
names = st.sampled_from(["a", "b", "Ä", "日本", "🦀", "x/y", "line\nbreak", '"quoted"', "a\u2028b"])
moments = st.datetimes(timezones=st.just(UTC))
numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
bodies: st.SearchStrategy[Mapping[str, Any]] = st.dictionaries(
    texts,
    st.recursive(
        numbers | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_size=3,
)
scopes = st.sampled_from(["/", "/project/a", "/user/ada", "/project/日本"])


def an_event(number: int, kind: str, memory_id: str | None, **fields: Any) -> LogEvent:
    """The event of this number; numbers are the order."""
    return LogEvent(
        position=0,
        node=fields.get("node", "node-1"),
        seq=number + 1,
        clock=(number + 1) << 16,
        at=fields.get("at", BEGIN + timedelta(microseconds=number)),
        kind=kind,
        memory_id=memory_id,
        scope=fields.get("scope", ROOT_SCOPE),
        payload=fields.get("payload", {}),
    )


@st.composite
def memories(draw: st.DrawFn, memory_id: str, revision: int) -> Memory:
    """A state of a memory with any of its fields set."""
    start, end = sorted((draw(moments), draw(moments)))
    created = draw(moments)
    return Memory(
        id=memory_id,
        content=draw(texts),
        created_at=created,
        updated_at=created,
        node_type=draw(names),
        tags=tuple(draw(st.lists(names, max_size=2, unique=True))),
        scope=draw(scopes),
        source=draw(st.none() | names),
        author=draw(st.none() | names),
        agent_id=draw(st.none() | names),
        session_id=draw(st.none() | names),
        thread=draw(st.none() | names),
        position=draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        occurred_at=draw(st.none() | moments),
        valid_from=draw(st.none() | st.just(start)),
        valid_until=draw(st.none() | st.just(end)),
        superseded_by=draw(st.none() | names),
        pinned=draw(st.booleans()),
        suppression_count=draw(st.integers(0, 3)),
        suppressed_at=draw(st.none() | moments),
        archived_at=draw(st.none() | moments),
        revision=revision,
        phrasings=tuple(draw(st.lists(texts, max_size=2))),
        domains=tuple(draw(st.lists(names, max_size=2, unique=True))),
        domain_scores=draw(st.dictionaries(names, st.floats(0, 1), max_size=2)),
        metadata=draw(bodies),
    )


@st.composite
def vectors(draw: st.DrawFn) -> Embedded:
    """Up to three pieces, with no tokens, none, or some."""
    pieces = []
    for at in range(draw(st.integers(0, 3))):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        held = draw(st.none() | st.integers(0, 17))
        tokens = None
        if held is not None:
            bits = rng.integers(0, 256, size=(held, 2), dtype=np.uint8)
            tokens = Tokens(bits=bits, asked=rng.integers(0, 2, size=held).astype(np.bool_))
        vector = rng.normal(size=SIGNATURE.dimension).astype(np.float32)
        pieces.append(Piece(start=at, end=at + 1, vector=vector, tokens=tokens))
    return Embedded(signature=SIGNATURE, text_hash=draw(names), pieces=tuple(pieces))


@st.composite
def memory_lives(draw: st.DrawFn, memory_id: str) -> MemoryHistory:
    """A memory with its revisions and remarks, or what is left of a deleted one."""
    kinds = draw(st.lists(st.sampled_from(["memory.revised", "memory.remarked"]), max_size=4))
    events = [an_event(0, "memory.created", memory_id, scope=draw(scopes))]
    for number, kind in enumerate(kinds, 1):
        said: dict[str, Any] = {"fields": sorted(GROUPED), "reason": "edited"}
        if kind == "memory.remarked":
            said = {"evidence": "good", "details": draw(bodies)}
        events.append(an_event(number, kind, memory_id, payload=said, scope=draw(scopes), at=draw(moments)))
    if draw(st.booleans()):
        gone = an_event(len(events), "memory.deleted", memory_id, payload={"reason": "asked to"})
        return MemoryHistory(memory_id=memory_id, events=(*events, gone), versions=())
    count = 1 + kinds.count("memory.revised")
    first, *later = (draw(memories(memory_id, revision + 1)) for revision in range(count))
    versions = (first, *(replace(one, created_at=first.created_at) for one in later))
    embedded = draw(st.none() | vectors())
    return MemoryHistory(memory_id=memory_id, events=tuple(events), versions=versions, embedded=embedded)


@st.composite
def edge_lives(draw: st.DrawFn, source: str) -> EdgeHistory:
    """An edge that came, and perhaps went."""
    target, kind = source + "-target", draw(names)
    said: dict[str, Any] = {"target": target, "kind": kind}
    weight = draw(st.floats(0, 1))
    events = [an_event(0, "edge.linked", source, payload={**said, "weight": weight})]
    if draw(st.booleans()):
        events.append(an_event(1, "edge.unlinked", source, payload=said))
    return EdgeHistory(source_id=source, target_id=target, kind=kind, events=tuple(events))


@st.composite
def document_lives(draw: st.DrawFn, name: str) -> DocumentHistory:
    """A document that is there, or was."""
    kind, scope, created = draw(names), draw(scopes), draw(moments)
    said = {"kind": kind, "id": name}
    put = an_event(0, "document.put", None, payload=said, scope=scope)
    if draw(st.booleans()):
        dropped = an_event(1, "document.dropped", None, payload=said, scope=scope)
        return DocumentHistory(kind=kind, id=name, events=(put, dropped), document=None)
    document = Document(
        kind=kind,
        id=name,
        body=draw(bodies),
        scope=scope,
        cites=tuple(draw(st.lists(names, max_size=2, unique=True))),
        version=draw(st.integers(1, 9)),
        created_at=created,
        updated_at=created,
    )
    return DocumentHistory(
        kind=kind, id=name, events=(put,), document=document, clock=put.clock, node=put.node
    )


curve_lives = st.lists(st.floats(0.01, 1), min_size=1, max_size=3).map(
    lambda found: CurveHistory(
        events=tuple(
            an_event(number, "curve.tuned", None, payload={"w20": w20}) for number, w20 in enumerate(found)
        )
    )
)

lives: st.SearchStrategy[EntityHistory] = st.one_of(
    names.flatmap(memory_lives), names.flatmap(edge_lives), names.flatmap(document_lives), curve_lives
)

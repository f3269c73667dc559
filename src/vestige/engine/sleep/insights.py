"""Insights of dreams: stored as documents that cite their sources, and shown while those are unchanged.

An insight quotes memories, so it must not outlast them: it is deleted with a source, and not shown if a
source is suppressed, archived, no longer valid, or reworded.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from vestige.cognition.graph.dreams.insights import Insight, digest
from vestige.cognition.text.analyser import text_hash
from vestige.core.documents import Document
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Memory
from vestige.core.origin import lowest
from vestige.engine.context import Call
from vestige.engine.revise import (
    find_document,
    load_passing,
    put_document,
    retry_on_conflict,
    save,
    with_body,
)
from vestige.store.contract.changes import Drop, Put

INSIGHT = "insight"
PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInsight:
    id: str
    kind: str
    text: str
    sources: tuple[str, ...]
    confidence: float
    novelty: float
    scope: str
    at: datetime
    origin: str | None = None


def insight_put(insight: Insight, memories: Mapping[str, Memory], now: datetime) -> Put:
    """The change that stores an insight, in the innermost scope of its sources."""
    sources = [memories[name] for name in insight.sources]
    name, scope = digest(insight, memories), max((one.scope for one in sources), key=len)
    body = {
        "type": insight.kind.value,
        "insight": insight.text,
        "confidence": round(insight.confidence, 4),
        "novelty": round(insight.novelty, 4),
        "texts": [text_hash(one) for one in sources],
    }
    return put_document(INSIGHT, name, None, now, body=body, scope=scope, cites=insight.sources, logged=True)


def insight_from(document: Document, sources: Mapping[str, Memory]) -> KeptInsight:
    """The insight of a document that was not dismissed. Its origin is the lowest of its sources, by id."""
    body = document.body
    return KeptInsight(
        id=document.id,
        kind=body["type"],
        text=body["insight"],
        sources=document.cites,
        confidence=body["confidence"],
        novelty=body["novelty"],
        scope=document.scope,
        at=document.created_at,
        origin=lowest(sources[name].origin for name in document.cites if name in sources),
    )


def known_insights(call: Call, memory_ids: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """(kind, sources) of every insight into any of these memories, including dismissed ones."""
    found = call.engine.store.documents(INSIGHT, access=call.access, citing=memory_ids, limit=5 * PAGE)
    return [(str(one.body["type"]), frozenset(one.cites)) for one in found]


def insights(call: Call, *, scope: str | None, inherited: bool, limit: int) -> list[KeptInsight]:
    """The latest insights of a scope whose sources are unchanged."""
    found: list[KeptInsight] = []
    store, offset = call.engine.store, 0
    while page := store.documents(
        INSIGHT, access=call.access, scope=scope, inherited=inherited, limit=PAGE, offset=offset
    ):
        call.check()
        found += _with_unchanged_sources(call, page, None)
        offset += PAGE
        if len(found) >= limit or len(page) < PAGE:
            break
    return found[:limit]


def insights_into(
    call: Call, memory_ids: Sequence[str], *, limit: int, known_at: datetime | None = None
) -> list[KeptInsight]:
    """The latest insights with unchanged sources that cite any of these memories, as known at `known_at`."""
    if not memory_ids:
        return []
    page = call.engine.store.documents(INSIGHT, access=call.access, citing=memory_ids, limit=PAGE)
    return _with_unchanged_sources(call, page, known_at)[:limit]


def _with_unchanged_sources(
    call: Call, documents: Sequence[Document], known_at: datetime | None
) -> list[KeptInsight]:
    """The insights that are not dismissed and whose sources are unchanged."""
    there = [
        one for one in documents if "insight" in one.body and (known_at is None or one.created_at <= known_at)
    ]
    names = list(dict.fromkeys(name for one in there for name in one.cites))
    where = Filter(valid_at=call.engine.now(), include_suppressed=False)
    sources = {one.memory.id: one.memory for one in load_passing(call, names, where)}
    texts = {name: text_hash(memory) for name, memory in sources.items()}
    return [
        insight_from(one, sources)
        for one in there
        if [texts.get(name) for name in one.cites] == one.body["texts"]
    ]


def dismiss(call: Call, insight_id: str) -> Document:
    """Dismiss an insight: its text is deleted, and a marker stays so that it does not come back."""

    def attempt() -> Document:
        found, now = find_document(call, INSIGHT, insight_id), call.engine.now()
        if found is None:
            raise NotFound(
                f"There is no insight {insight_id}.",
                hint="`insights` with the action `list` shows the ids.",
                details={"id": insight_id},
            )
        if "insight" not in found.body:
            return found
        put = with_body(found, {"type": found.body["type"], "dismissed": now.isoformat()}, now)
        call.engine.store.commit([put], access=call.access)
        return put.document

    return retry_on_conflict(call, attempt)


def drop_stale(call: Call) -> int:
    """Delete the insights whose sources have changed; returns how many. A suppressed source may come back."""
    offset, gone, read = 0, 0, PAGE
    while read == PAGE:
        call.check()
        read, dropped = retry_on_conflict(call, partial(_drop_stale_page, call, offset))
        gone += dropped
        offset += read - dropped
    return gone


def _drop_stale_page(call: Call, offset: int) -> tuple[int, int]:
    """Check one page: how many insights were read, and how many deleted."""
    page = call.engine.store.documents(INSIGHT, access=call.access, limit=PAGE, offset=offset)
    outlived, now = _stale(call, page), call.engine.now()
    if outlived:
        save(call, [Drop(kind=INSIGHT, id=one, at=now) for one in outlived])
    return len(page), len(outlived)


def _stale(call: Call, documents: Sequence[Document]) -> list[str]:
    names = list(dict.fromkeys(name for one in documents for name in one.cites))
    records = call.engine.store.get_many(names, access=call.access)
    texts = {record.memory.id: text_hash(record.memory) for record in records}
    return [
        one.id
        for one in documents
        if "texts" in one.body and [texts.get(name) for name in one.cites] != one.body["texts"]
    ]

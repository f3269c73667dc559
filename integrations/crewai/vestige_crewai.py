"""The storage of CrewAI's memory in Vestige.

CrewAI asks a storage by vectors of its own embedder. Vestige ranks by more than one vector, with its own
model. So the storage has an `embedder` for CrewAI whose vectors only stand for their texts, and it searches
by the text that a vector stands for. No key and no other model is needed:

    storage = VestigeStorage(vestige.Memory())
    memory = crewai.Memory(storage=storage, embedder=storage.embedder, consolidation_threshold=1.0)
"""

import asyncio
import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from crewai.memory.types import MemoryRecord, ScopeInfo

from vestige.client import Operations

KIND = "crewai"
PAGE = 200
MOST_RANKED = 100
REMEMBERED_TEXTS = 10_000

Node = Mapping[str, Any]  # a memory, as JSON


class TextVectors:
    """An embedder whose vectors stand for their texts: equal for equal texts, and unlike otherwise."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[float, ...], str] = OrderedDict()
        self._lock = Lock()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = [[byte / 127.5 - 1.0 for byte in hashlib.sha256(text.encode()).digest()] for text in texts]
        with self._lock:
            for vector, text in zip(vectors, texts, strict=True):
                self._texts[tuple(vector)] = text
                self._texts.move_to_end(tuple(vector))
            while len(self._texts) > REMEMBERED_TEXTS:
                self._texts.popitem(last=False)
        return vectors

    def text_of(self, vector: Sequence[float]) -> str:
        with self._lock:
            found = self._texts.get(tuple(vector))
        if found is None:
            raise ValueError(
                "This vector is from another embedder: make the memory with `embedder=storage.embedder`."
            )
        return found


class VestigeStorage:
    """`memory` is a `vestige.Memory` or a `vestige.client.Client`. The scopes of CrewAI are below `scope`."""

    def __init__(self, memory: Operations, *, scope: str = "/crewai") -> None:
        self._memory = memory
        self._root = scope.rstrip("/")
        self.embedder = TextVectors()

    # -- records -------------------------------------------------------------------------------------

    def save(self, records: list[MemoryRecord]) -> None:
        for start in range(0, len(records), PAGE):
            items = [self._item(record) for record in records[start : start + PAGE]]
            self._memory.smart_ingest(items=items)

    def update(self, record: MemoryRecord) -> None:
        """Store a record in place of the one with its id, which stays in the past of the memory."""
        before = list(self._nodes("/", source=_source(record.id)))
        self.save([record])
        for node in before:
            self._memory.memory.set_validity(node["id"], valid_until=datetime.now(UTC))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        return next(map(_record, self._nodes("/", source=_source(record_id))), None)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        found = sorted(self._records(scope_prefix), key=lambda one: one.created_at, reverse=True)
        return found[offset : offset + limit]

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        found = self._memory.search(
            self.embedder.text_of(query_embedding),
            scope=self._scope(scope_prefix),
            tags=categories,
            include_types=[KIND],
            limit=MOST_RANKED if metadata_filter else min(limit, MOST_RANKED),
            detail_level="full",
            all=True,
            min_confidence=0.0,  # a storage ranks what it has; whether it answers is for its caller
        )
        ranked = [
            (_record(hit), hit["combinedScore"])
            for hit in found["results"]
            if not hit.get("ended") and hit["combinedScore"] >= min_score and self._is_latest(hit)
        ]
        return [(one, score) for one, score in ranked if _has(one, metadata_filter)][:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that fit all of these, with every earlier version of them."""
        ids = {
            one.id
            for one in self._records(scope_prefix)
            if (record_ids is None or one.id in record_ids)
            and (categories is None or set(categories) & set(one.categories))
            and (older_than is None or _utc(one.created_at) < _utc(older_than))
            and _has(one, metadata_filter)
        }
        for record_id in ids:
            for node in list(self._nodes("/", current=None, source=_source(record_id))):
                self._memory.forget(node["id"], even_pinned=True)
        return len(ids)

    def reset(self, scope_prefix: str | None = None) -> None:
        self.delete(scope_prefix)

    # -- scopes --------------------------------------------------------------------------------------

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = list(self._records(scope))
        times = [one.created_at for one in records]
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted({category for one in records for category in one.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=_children(scope, (one.scope for one in records)),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        return _children(parent, (one.scope for one in self._records(parent)))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return dict(Counter(name for one in self._records(scope_prefix) for name in one.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        return sum(1 for _ in self._records(scope_prefix))

    # -- awaited -------------------------------------------------------------------------------------

    async def asave(self, records: list[MemoryRecord]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(self, *given: Any, **named: Any) -> list[tuple[MemoryRecord, float]]:
        return await asyncio.to_thread(self.search, *given, **named)

    async def adelete(self, *given: Any, **named: Any) -> int:
        return await asyncio.to_thread(self.delete, *given, **named)

    def close(self) -> None:
        """Nothing: the memory belongs to whoever made it."""

    # -- memories ------------------------------------------------------------------------------------

    def _item(self, record: MemoryRecord) -> Any:
        return {
            "content": record.content,
            "scope": self._scope(record.scope),
            "tags": record.categories,
            "source": _source(record.id),
            "author": record.source,
            "node_type": KIND,
            "metadata": {KIND: record.model_dump(mode="json")},
            "pinned": True,  # CrewAI decides about its records
            "force_create": True,
        }

    def _scope(self, scope: str | None) -> str:
        return f"{self._root}/{(scope or '').strip('/')}".rstrip("/") or "/"

    def _records(self, scope: str | None) -> Iterator[MemoryRecord]:
        """The records, each once: the newest version comes first."""
        seen: set[str] = set()
        for record in map(_record, self._nodes(scope)):
            if record.id not in seen:
                seen.add(record.id)
                yield record

    def _is_latest(self, node: Node) -> bool:
        """Whether a version is the one that counts. An update stores the new version, which counts from then
        on, and then ends the old one: a reader between the two, or after a crash there, must not see both."""
        latest = next(self._nodes("/", source=_source(_record(node).id)), None)
        return latest is not None and latest["id"] == node["id"]

    def _nodes(
        self, scope: str | None, *, source: str | None = None, current: bool | None = True
    ) -> Iterator[Node]:
        offset = 0
        while True:
            page = self._memory.memory.list(
                scope=self._scope(scope),
                source=source,
                current=current,
                include_types=[KIND],
                include_suppressed=True,
                detail_level="full",
                limit=PAGE,
                offset=offset,
            )["results"]
            yield from page
            offset += len(page)
            if len(page) < PAGE:
                return


def _source(record_id: str) -> str:
    return f"{KIND}:{record_id}"


def _record(node: Node) -> MemoryRecord:
    return MemoryRecord.model_validate(node["metadata"][KIND])


def _has(record: MemoryRecord, wanted: Mapping[str, Any] | None) -> bool:
    return all(record.metadata.get(name) == value for name, value in (wanted or {}).items())


def _utc(moment: datetime) -> datetime:
    """CrewAI's times are UTC without saying so."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _children(parent: str, scopes: Iterator[str]) -> list[str]:
    above = parent.strip("/")
    prefix = f"/{above}/" if above else "/"
    below = (f"/{scope.strip('/')}" for scope in scopes)
    parts = {scope[len(prefix) :].split("/")[0] for scope in below if scope.startswith(prefix)}
    return sorted(f"{prefix}{part}" for part in parts if part)

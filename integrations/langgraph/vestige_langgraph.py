"""A LangGraph store in Vestige: `put`, `get`, `search`, `delete` and `list_namespaces`, called or awaited.

An item is a memory: its namespace is the scope, its key the source, its value is in the metadata, and the
text of its fields is what searches find. A new value for a key ends the validity of the old one, so that the
past stays readable (`as_of`); `delete` removes every version.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from vestige.client import Operations

KIND = "langgraph"
UNINDEXED = "langgraph-unindexed"
"""The type of items that searches with a query leave out (`index=False`)."""
PAGE = 200
MOST_RANKED = 100
"""The hits that a search ranks; a filter beside a query is applied to these."""
LONGEST_SOURCE = 200

Node = Mapping[str, Any]  # a memory, as JSON


def utc_now() -> datetime:
    return datetime.now(UTC)


class VestigeStore(BaseStore):
    """`memory` is a `vestige.Memory` or a `vestige.client.Client`. Everything is stored below `scope`.

    `fields` are the paths of a value that searches find, by default all of it. `ttl` is as for every store of
    LangGraph: minutes after the last write or read; an item whose time is over is not found any more.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Operations,
        *,
        scope: str = "/langgraph",
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._root = scope.rstrip("/")
        self._fields = tuple(fields)
        self._now = now
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: what reads sees the state before the batch, and of two puts the last one counts."""
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        results: list[Result] = [None if isinstance(op, PutOp) else self._read(op) for op in given]
        puts = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
        for put in puts.values():
            self._put(put)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
        raise ValueError(f"Unknown operation type: {type(op)}")

    # -- one item ------------------------------------------------------------------------------------

    def _get(self, op: GetOp) -> Item | None:
        nodes = self._versions(op.namespace, op.key, current=True)
        if not nodes:
            return None
        self._refresh(nodes[0], op.refresh_ttl)
        return Item(**_item(nodes[0]))

    def _put(self, op: PutOp) -> None:
        before = self._versions(op.namespace, op.key, current=op.value is not None)
        if op.value is None:
            for node in before:
                self._memory.forget(node["id"], even_pinned=True)
            return
        now = self._now()
        created = _held(before[0])["createdAt"] if before else now.isoformat()
        held = {
            "namespace": list(op.namespace),
            "key": op.key,
            "value": dict(op.value),
            "createdAt": created,
            "updatedAt": now.isoformat(),
            "ttl": op.ttl,
        }
        self._memory.add(
            op.key if op.index is False else self._text(op),
            scope=self._scope(op.namespace),
            source=_source(op.namespace, op.key),
            node_type=UNINDEXED if op.index is False else KIND,
            metadata={KIND: held},
            valid_until=now + timedelta(minutes=op.ttl) if op.ttl is not None else None,
            # Nothing else that is stored may change an item: it is what was put under the key.
            pinned=True,
            force_create=True,
        )
        for node in before:
            self._memory.memory.set_validity(node["id"], valid_until=now)

    def _versions(self, namespace: tuple[str, ...], key: str, *, current: bool) -> list[Node]:
        """The memories under a key, newest first."""
        found = self._pages(self._scope(namespace), source=_source(namespace, key), current=current or None)
        return [
            node for node in found if (_held(node)["namespace"], _held(node)["key"]) == ([*namespace], key)
        ]

    def _is_latest(self, node: Node) -> bool:
        """Whether a version is the one that counts. A put stores the new version, which counts from then on,
        and then ends the old one: a reader between the two, or after a crash there, must not see both."""
        held = _held(node)
        versions = self._versions(tuple(held["namespace"]), held["key"], current=True)
        return bool(versions) and versions[0]["id"] == node["id"]

    def _refresh(self, node: Node, wanted: bool) -> None:
        minutes = _held(node).get("ttl")
        if wanted and minutes is not None:
            until = self._now() + timedelta(minutes=minutes)
            self._memory.memory.set_validity(node["id"], valid_until=until)

    def _text(self, op: PutOp) -> str:
        value = dict(op.value or {})
        texts = [
            text
            for path in (op.index or self._fields)
            for text in ([_words(value)] if path == "$" else get_text_at_path(value, tokenize_path(path)))
        ]
        return "\n".join(text for text in texts if text.strip()) or op.key

    # -- many items ----------------------------------------------------------------------------------

    def _search(self, op: SearchOp) -> list[SearchItem]:
        ranked = self._ranked(op) if op.query else ((node, None) for node in self._in(op.namespace_prefix))
        kept: list[SearchItem] = []
        passed = 0
        for node, score in ranked:
            if len(kept) == op.limit:
                break
            if _matches(_held(node)["value"], op.filter or {}):
                passed += 1
                if passed > op.offset:
                    self._refresh(node, op.refresh_ttl)
                    kept.append(SearchItem(**_item(node), score=score))
        return kept

    def _ranked(self, op: SearchOp) -> Iterator[tuple[Node, float | None]]:
        wanted = MOST_RANKED if op.filter else min(MOST_RANKED, op.offset + op.limit)
        found = self._memory.search(
            op.query or "",
            scope=self._scope(op.namespace_prefix),
            include_types=[KIND],
            limit=max(1, wanted),
            detail_level="full",
            all=True,
            min_confidence=0.0,  # a store ranks what it has; whether it answers is for its caller
        )
        for hit in found["results"]:
            if not hit.get("ended") and KIND in hit.get("metadata", {}) and self._is_latest(hit):
                yield hit, hit["combinedScore"]

    def _in(self, namespace: tuple[str, ...]) -> Iterator[Node]:
        """The items, each once: the newest version comes first."""
        seen: set[tuple[str, ...]] = set()
        for node in self._pages(self._scope(namespace), current=True):
            name = (*_held(node)["namespace"], _held(node)["key"])
            if name not in seen:
                seen.add(name)
                yield node

    def _pages(self, scope: str, **filters: Any) -> Iterator[Node]:
        """The items in a scope, newest first."""
        offset = 0
        while True:
            page = self._memory.memory.list(
                scope=scope,
                include_types=[KIND, UNINDEXED],
                include_suppressed=True,
                detail_level="full",
                order="newest",
                limit=PAGE,
                offset=offset,
                **filters,
            )["results"]
            yield from page
            offset += len(page)
            if len(page) < PAGE:
                return

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        known = {tuple(_held(node)["namespace"]) for node in self._in(())}
        conditions = op.match_conditions or ()
        matching = [one for one in known if all(_is_under(condition, one) for condition in conditions)]
        depth = op.max_depth
        shown = sorted({one[:depth] for one in matching} if depth is not None else matching)
        return shown[op.offset : op.offset + op.limit]

    def _scope(self, namespace: tuple[str, ...]) -> str:
        return (
            "/".join([self._root, *(quote(label, safe=" ").replace(" ", "%20") for label in namespace)])
            or "/"
        )


def _source(namespace: tuple[str, ...], key: str) -> str:
    whole = f"{KIND}:{'/'.join(quote(one, safe='') for one in (*namespace, key))}"
    if len(whole) <= LONGEST_SOURCE:
        return whole
    return f"{KIND}:{hashlib.sha256(whole.encode()).hexdigest()}"


def _held(node: Node) -> dict[str, Any]:
    held: dict[str, Any] = node["metadata"][KIND]
    return held


def _item(node: Node) -> dict[str, Any]:
    held = _held(node)
    return {
        "namespace": tuple(held["namespace"]),
        "key": held["key"],
        "value": held["value"],
        "created_at": datetime.fromisoformat(held["createdAt"]),
        "updated_at": datetime.fromisoformat(held["updatedAt"]),
    }


def _words(value: object, name: str = "") -> str:
    """A value as text for searching: a text as it is, other fields with their names."""
    if isinstance(value, Mapping):
        texts = [value[key] for key in value if isinstance(value[key], str)]
        if len(value) == len(texts) == 1:
            return str(texts[0])
        return "\n".join(_words(inner, str(key)) for key, inner in value.items())
    said = ", ".join(_words(one) for one in value) if isinstance(value, list | tuple) else str(value)
    return f"{name}: {said}" if name else said


def _is_under(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _matches(value: object, wanted: Mapping[str, Any]) -> bool:
    """Whether a value has these fields, each equal or as its operators say."""
    return isinstance(value, Mapping) and all(_fits(value.get(name), one) for name, one in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compared(value, operator, other) for operator, other in wanted.items())
        return _matches(value, wanted)
    if isinstance(wanted, list | tuple):
        same_form = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same_form and all(map(_fits, value, wanted))
    return bool(value == wanted)


def _compared(value: Any, operator: str, other: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == other)
        case "$ne":
            return bool(value != other)
        case "$gt":
            return value is not None and float(value) > float(other)
        case "$gte":
            return value is not None and float(value) >= float(other)
        case "$lt":
            return value is not None and float(value) < float(other)
        case "$lte":
            return value is not None and float(value) <= float(other)
    raise ValueError(f"Unsupported operator: {operator}")

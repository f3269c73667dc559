"""The state of an in-memory store, as one value that is copied before it is changed.

A published `StoreState` is never written to again: a commit changes a copy and publishes it when every change
has succeeded. That makes a commit all-or-nothing, and a read consistent without a lock.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import field, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson

from vestige.cognition.fsrs.formulas import W20
from vestige.cognition.fsrs.strength import encode
from vestige.cognition.text import analyser
from vestige.cognition.text.analyser import text_hash
from vestige.core.api_key import ApiKey
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    EVERYTHING,
    Access,
    Edge,
    LogEvent,
    Memory,
    Record,
    Revision,
    Strength,
    Tombstone,
    covers,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Notice
from vestige.store.contract.changes import DROPPED, LINKED, PUT, UNLINKED, Claim, Piece, Tokens
from vestige.store.merge.strength_log import FOLDED_FROM

EdgeKey = tuple[str, str, str]
DocumentKey = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One memory with everything that belongs to it. `arrival` is its number in the order of adding, `beside`
    are its vectors of signatures that are not in use."""

    arrival: int
    memory: Memory
    strength: Strength
    words: Mapping[str, int]
    fingerprints: frozenset[str]
    past: tuple[Revision, ...] = ()
    pieces: tuple[Piece, ...] = ()
    beside: Mapping[Signature, tuple[Piece, ...]] = field(default_factory=dict)

    def record(self) -> Record:
        """The memory as the store hands it out."""
        return Record(memory=apart(self.memory), strength=self.strength, embedded=bool(self.pieces))

    def known_at(self, moment: datetime) -> Memory | None:
        """The state of the memory at a moment; None before it existed."""
        return None if self.memory.created_at > moment else self.version_at(moment)

    def version_at(self, moment: datetime) -> Memory:
        """Its last revision by then; the first one also when it was written with a later time of update."""
        versions = [*(revision.memory for revision in self.past), self.memory]
        return next((one for one in reversed(versions) if one.updated_at <= moment), versions[0])

    def tokens(self) -> Tokens | None:
        """The tokens of all its pieces, or None without any."""
        given = [piece.tokens for piece in self.pieces if piece.tokens is not None]
        if not given:
            return None
        return Tokens(
            bits=np.concatenate([one.bits for one in given]),
            asked=np.concatenate([one.asked for one in given]),
        )

    def wordings(self) -> set[str]:
        """Every text this memory has or had."""
        versions = (self.memory, *(revision.memory for revision in self.past))
        return {wording for memory in versions for wording in (memory.content, *memory.phrasings)}


@dataclass(slots=True, kw_only=True)
class StoreState:
    """Plain containers of frozen values, so that a shallow copy is a whole one.

    `clock` is its last reading, `seq` the last number this node gave; `stamps` are those of the last put of
    each document, (clock, node). A tombstone has the scope that decides who may read it, a claim the memories
    its request touched.
    """

    arrivals: int = 0
    clock: int = 0
    seq: int = 0
    curve: float = W20
    signature: Signature | None = None
    coming: Signature | None = None
    former: Signature | None = None
    held: dict[str, MemoryEntry] = field(default_factory=dict)
    edges: dict[EdgeKey, Edge] = field(default_factory=dict)
    buried: dict[str, tuple[Tombstone, str]] = field(default_factory=dict)
    claims: dict[str, tuple[Claim, frozenset[str]]] = field(default_factory=dict)
    documents: dict[DocumentKey, Document] = field(default_factory=dict)
    stamps: dict[DocumentKey, tuple[int, str]] = field(default_factory=dict)
    log: list[LogEvent] = field(default_factory=list)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    ended_logins: dict[str, datetime] = field(default_factory=dict)
    noticed: int = 0
    notices: tuple[Notice, ...] = ()

    def copy(self) -> "StoreState":
        """A state that can be changed without changing this one."""
        return StoreState(**{one.name: copy(getattr(self, one.name)) for one in fields(self)})

    def seen_by(self, access: Access) -> "StoreState":
        """The same state as if it held only the accessible memories."""
        if access == EVERYTHING:
            return self
        return replace(self, held={held.memory.id: held for held in self.within(access)})

    def within(self, access: Access) -> list[MemoryEntry]:
        """The accessible memories, in the order of arrival."""
        visible = (held for held in self.held.values() if access.allows(held.memory))
        return sorted(visible, key=lambda held: held.arrival)

    def accessible(self, memory_id: str, access: Access) -> MemoryEntry | None:
        """One memory, or None when it does not exist or is not accessible."""
        held = self.held.get(memory_id)
        return held if held is not None and access.allows(held.memory) else None

    def edges_within(self, access: Access) -> list[Edge]:
        """The edges with both ends accessible, sorted by (source, target, kind)."""
        return [
            edge
            for _, edge in sorted(self.edges.items())
            if self.accessible(edge.source_id, access) and self.accessible(edge.target_id, access)
        ]

    def log_within(self, access: Access) -> list[LogEvent]:
        return [event for event in self.log if access == EVERYTHING or self._may_read(event, access)]

    def remarked_after(self, position: int) -> set[str | None]:
        """The memories with an event after a position that their strength is folded from."""
        return {one.memory_id for one in self.log if one.position > position and one.kind in FOLDED_FROM}

    def hold(self, memory: Memory, past: tuple[Revision, ...]) -> None:
        """Keep a memory with everything derived from it; its vectors only while its text is the same."""
        known = self.held.get(memory.id)
        same_text = known is not None and text_hash(known.memory) == text_hash(memory)
        self.arrivals += known is None
        self.held[memory.id] = MemoryEntry(
            arrival=self.arrivals if known is None else known.arrival,
            memory=memory,
            strength=encode(memory.created_at, self.curve) if known is None else known.strength,
            words=words_of(memory),
            fingerprints=fingerprints_of(memory),
            past=past,
            pieces=known.pieces if known is not None and same_text else (),
            beside=known.beside if known is not None and same_text else {},
        )

    def end(self, gone: str, at: datetime, scope: str) -> None:
        """Leave a tombstone of a memory, and remove its edges and everything that cites or quotes it."""
        self.buried[gone] = (Tombstone(memory_id=gone, deleted_at=at), scope)
        held = self.held.pop(gone, None)
        if held is None:
            return
        self.edges = {key: edge for key, edge in self.edges.items() if gone not in key[:2]}
        for kind, name in [key for key, one in self.documents.items() if gone in one.cites]:
            self.lose(kind, name)
        # an answer kept for a retry must not keep deleted text alive
        self.claims = {
            key: (claim, touched)
            for key, (claim, touched) in self.claims.items()
            if gone not in touched or not quotes(claim.answer, held.wordings())
        }
        self.notices = ()  # they may quote it

    def lose(self, kind: str, name: str) -> None:
        """Remove a document, with the stamp of its last put."""
        del self.documents[kind, name], self.stamps[kind, name]

    def _may_read(self, event: LogEvent, access: Access) -> bool:
        if access.scopes is not None and not any(covers(scope, event.scope) for scope in access.scopes):
            return False
        if event.kind in (LINKED, UNLINKED) and self.accessible(event.payload["target"], access) is None:
            return False
        if event.kind in (PUT, DROPPED):
            document = self.documents.get((event.payload["kind"], event.payload["id"]))
            if document is None or not self.may_read(document, access):
                return False
        held = self.held.get(event.memory_id or "")
        return access.domains is None if held is None else access.allows(held.memory)

    def may_read(self, document: Document, access: Access) -> bool:
        """Whether a document and every memory it cites are within the access."""
        cited = (self.accessible(memory_id, access) for memory_id in document.cites)
        return may_hold(document, access) and all(held is not None for held in cited)


class PublishedState:
    """The present state of a store. A write changes a copy of it, which is published at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._published: StoreState | None = StoreState()

    def _state(self) -> StoreState:
        state = self._published
        if state is None:
            raise StoreError("This store is closed.", hint="Open it again.")
        return state

    @contextmanager
    def _writing(self) -> Iterator[StoreState]:
        with self._lock:
            draft = self._state().copy()
            yield draft
            self._published = draft


def may_hold(document: Document, access: Access) -> bool:
    """Whether an access can include such a document; domains come from the memories it cites."""
    if access.scopes is not None and not any(covers(scope, document.scope) for scope in access.scopes):
        return False
    return access.domains is None or bool(document.cites)


def words_of(memory: Memory) -> Mapping[str, int]:
    return Counter(analyser.memory_terms(memory))


def fingerprints_of(memory: Memory) -> frozenset[str]:
    return frozenset(analyser.fingerprint(wording) for wording in (memory.content, *memory.phrasings))


def quotes(answer: str, wordings: set[str]) -> bool:
    """Whether an answer holds one of the texts, plain or inside JSON."""
    return any(text in answer or orjson.dumps(text).decode("utf-8")[1:-1] in answer for text in wordings)


def apart(memory: Memory) -> Memory:
    """A copy of the memory with its own metadata, so that callers cannot change what is stored."""
    if not memory.metadata and not memory.domain_scores:
        return memory
    return replace(
        memory, metadata=as_json(memory.metadata), domain_scores=MappingProxyType(dict(memory.domain_scores))
    )


def as_json(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """A copy holding what JSON can hold; InvalidInput for anything else.

    Stores on disk keep metadata and payloads as JSON. The oracle must not be more faithful than they.
    """
    try:
        copied: dict[str, Any] = orjson.loads(orjson.dumps(dict(mapping), default=_plain))
    except (TypeError, ValueError) as exc:
        raise InvalidInput(
            f"This cannot be kept as JSON: {exc}.",
            hint="Use text, numbers, booleans, null, and lists and objects of them.",
        ) from exc
    return MappingProxyType(copied)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")

"""Histories as lines of JSON, and back."""

from collections.abc import Mapping
from typing import assert_never

import orjson

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput
from vestige.core.models import NO_METADATA, ROOT_SCOPE, LogEvent
from vestige.embed.protocol import Signature
from vestige.exchange.portable.values import (
    ObjectFields,
    count,
    items,
    mapping,
    moment,
    moment_text,
    text,
    texts,
)
from vestige.exchange.portable.vectors import decode_vectors, encode_vectors
from vestige.exchange.portable.versions import decode_versions, encode_versions
from vestige.store.merge.histories import CurveLife, DocumentLife, EdgeLife, Life, MemoryLife

Place = tuple[int, str, str, str]
"""The sort key of a line: lines ascend, so none can come twice."""


def line(value: Mapping[str, object]) -> bytes:
    """A value as canonical JSON with its line end: sorted keys, no spaces, the shortest form of a number."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def place(life: Life) -> Place:
    """The curve, then memories by id, edges by (source, target, kind), documents by (kind, id)."""
    match life:
        case CurveLife():
            return (0, "", "", "")
        case MemoryLife():
            return (1, life.memory_id, "", "")
        case EdgeLife():
            return (2, life.source_id, life.target_id, life.kind)
        case DocumentLife():
            return (3, life.kind, life.id, "")
        case _:
            assert_never(life)


def encode_history(life: Life, signature: Signature | None) -> dict[str, object]:
    """A history as it is in the file; vectors only those of the signature."""
    events = [_encode_event(event) for event in life.events]
    match life:
        case CurveLife():
            return {"type": "curve", "events": events}
        case MemoryLife():
            fields: dict[str, object] = {"type": "memory", "id": life.memory_id, "events": events}
            if life.versions:
                fields["versions"] = encode_versions(life.versions)
            if life.embedded is not None and life.embedded.signature == signature:
                fields["vectors"] = encode_vectors(life.embedded)
            return fields
        case EdgeLife():
            ends = {"source": life.source_id, "target": life.target_id, "kind": life.kind}
            return {"type": "edge", **ends, "events": events}
        case DocumentLife():
            fields = {"type": "document", "kind": life.kind, "id": life.id, "events": events}
            if life.document is not None:
                fields |= {"put": _encode_document(life.document), "clock": life.clock, "node": life.node}
            return fields
        case _:
            assert_never(life)


def decode_history(kind: str, given: ObjectFields, signature: Signature | None) -> Life:
    """The history of a line of this type; InvalidInput for an unknown type."""
    match kind:
        case "curve":
            return CurveLife(events=_events(given, None))
        case "memory":
            return _memory(given, signature)
        case "edge":
            source = given.take("source", text)
            return EdgeLife(
                source_id=source,
                target_id=given.take("target", text),
                kind=given.take("kind", text),
                events=_events(given, source),
            )
        case "document":
            return _document(given)
        case _:
            raise InvalidInput(f"Lines of the type {kind[:40]!r} are not known.")


def _memory(given: ObjectFields, signature: Signature | None) -> MemoryLife:
    memory_id = given.take("id", text)
    vectors = given.maybe("vectors", _anything, None)
    if vectors is not None and signature is None:
        raise InvalidInput("`vectors` are here, but the first line does not say of which model.")
    return MemoryLife(
        memory_id=memory_id,
        events=_events(given, memory_id),
        versions=given.maybe("versions", lambda given: decode_versions(memory_id, given), ()),
        embedded=None if vectors is None or signature is None else decode_vectors(vectors, signature),
    )


def _document(given: ObjectFields) -> DocumentLife:
    kind, name = given.take("kind", text), given.take("id", text)
    events, put = _events(given, None), given.maybe("put", _anything, None)
    if put is None:
        return DocumentLife(kind=kind, id=name, events=events, document=None)
    return DocumentLife(
        kind=kind,
        id=name,
        events=events,
        document=_document_read(kind, name, put),
        clock=given.take("clock", count),
        node=given.take("node", text),
    )


def _encode_document(document: Document) -> dict[str, object]:
    return {
        "body": document.body,
        "scope": document.scope,
        "cites": document.cites,
        "version": document.version,
        "created_at": moment_text(document.created_at),
        "updated_at": moment_text(document.updated_at),
    }


def _document_read(kind: str, name: str, value: object) -> Document:
    given = ObjectFields("put", value)
    document = Document(
        kind=kind,
        id=name,
        body=given.take("body", mapping),
        scope=given.take("scope", text),
        cites=given.take("cites", texts),
        version=given.take("version", count),
        created_at=given.take("created_at", moment),
        updated_at=given.take("updated_at", moment),
    )
    given.end()
    return document


def _encode_event(event: LogEvent) -> dict[str, object]:
    fields: dict[str, object] = {
        "node": event.node,
        "seq": event.seq,
        "clock": event.clock,
        "at": moment_text(event.at),
        "kind": event.kind,
    }
    if event.scope != ROOT_SCOPE:
        fields["scope"] = event.scope
    if event.payload:
        fields["payload"] = event.payload
    return fields


def _events(given: ObjectFields, memory_id: str | None) -> tuple[LogEvent, ...]:
    return tuple(_event_read(one, memory_id) for one in given.take("events", items))


def _event_read(value: object, memory_id: str | None) -> LogEvent:
    given = ObjectFields("events", value)
    event = LogEvent(
        position=0,
        node=given.take("node", text),
        seq=given.take("seq", count),
        clock=given.take("clock", count),
        at=given.take("at", moment),
        kind=given.take("kind", text),
        memory_id=memory_id,
        scope=given.maybe("scope", text, ROOT_SCOPE),
        payload=given.maybe("payload", mapping, NO_METADATA),
    )
    given.end()
    return event


def _anything(value: object) -> object:
    return value


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError

"""Documents of an in-memory store: access to them, and their changes."""

from collections.abc import Sequence
from dataclasses import replace

from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, NotFound
from vestige.core.models import Access
from vestige.store.contract.changes import Drop, Put
from vestige.store.inmemory.state import StoreState, as_json, may_hold


def of_kind(
    state: StoreState,
    kind: str,
    *,
    access: Access,
    ids: Sequence[str] | None,
    citing: Sequence[str] | None,
    terms: Sequence[str] | None,
) -> list[Document]:
    """The accessible documents, the one changed last first."""
    found = [
        replace(one, body=as_json(one.body))
        for one in state.documents.values()
        if one.kind == kind
        and (ids is None or one.id in ids)
        and (citing is None or not set(citing).isdisjoint(one.cites))
        and (terms is None or not set(terms).isdisjoint(one.body.get("terms", ())))
        and state.may_read(one, access)
    ]
    found.sort(key=lambda one: one.id)
    return sorted(found, key=lambda one: one.updated_at, reverse=True)


def put(state: StoreState, change: Put, access: Access) -> Document:
    """Put a document, new or in its next version."""
    given = replace(change.document, body=as_json(change.document.body))
    for memory_id in given.cites:
        if state.accessible(memory_id, access) is None:
            raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
    if not may_hold(given, access):
        raise Forbidden(
            f"This caller may not write into the scope {given.scope}.", details={"scope": given.scope}
        )
    present = state.documents.get((given.kind, given.id))
    version = 0 if present is None else present.version
    if given.version != version + 1:
        raise Conflict(
            f"The {given.kind} {given.id} is at version {version}; {given.version} cannot follow it.",
            hint="Load it again and repeat the change.",
            details={"kind": given.kind, "id": given.id, "version": version},
        )
    made = given if present is None else replace(given, created_at=present.created_at)
    state.documents[given.kind, given.id] = made
    return made


def drop(state: StoreState, change: Drop, access: Access) -> Document:
    """Delete a document."""
    present = state.documents.get((change.kind, change.id))
    if present is None or not state.may_read(present, access):
        raise NotFound(f"There is no {change.kind} {change.id}.", details={"id": change.id})
    state.lose(change.kind, change.id)
    return present

"""The domains of a store: canonical documents with their labels, and derived centroids with thresholds.

Membership is `Memory.domains`; the first known domain there is the home of a memory. Centroids and thresholds
are computed from the members that have their home in a domain, and belong to one profile of vectors.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import numpy as np

from vestige.cognition.graph.domains.assignment import DomainRange, Vectors, centroid, member_range
from vestige.cognition.graph.domains.names import slug
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, NotFound, nearest_name
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.revise import put_document, with_body
from vestige.store.contract.changes import Change, Drop, Put
from vestige.store.contract.store import MemoryStore

DOMAIN, CENTROIDS, HAND = "domain", "domain_centroids", "domain_hand"
"""Kinds of documents: a domain, its centroid and threshold, and what was assigned by hand to a memory."""
RESERVED = frozenset({"discover", "proposals", "explain", "map", "unclassified"})
"""Ids that would be paths of the API."""
PAGE, BATCH, ROWS = 500, 500, 20
LEAST_MEMBERS = 3
"""A domain with fewer members has no threshold, so that nothing is assigned to it by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRecord:
    """A domain as it is stored. `into` are the domains that replaced it; then it is only an old name."""

    id: str
    document: Document

    @property
    def label(self) -> str:
        return str(self.document.body["label"])

    @property
    def found(self) -> bool:
        return bool(self.document.body["origin"] == "found")

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(self.document.body["terms"])

    @property
    def into(self) -> tuple[str, ...]:
        return tuple(self.document.body.get("into", ()))

    @property
    def split_from(self) -> str | None:
        return self.document.body.get("split_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainCentre:
    """The centroid of a domain, with the cosines of its members."""

    id: str
    label: str
    terms: tuple[str, ...]
    vector: Vectors
    range: DomainRange
    size: int


def documents_of(store: MemoryStore, kind: str, *, access: Access = EVERYTHING) -> list[Document]:
    """All documents of a kind, by id."""
    found: list[Document] = []
    while True:
        page = store.documents(kind, access=access, limit=PAGE, offset=len(found))
        found += page
        if len(page) < PAGE:
            return sorted(found, key=lambda one: one.id)


def all_domains(store: MemoryStore) -> dict[str, DomainRecord]:
    """Every domain by id, replaced ones too."""
    return {one.id: DomainRecord(id=one.id, document=one) for one in documents_of(store, DOMAIN)}


def by_hand(store: MemoryStore) -> set[str]:
    """The memories whose domains were decided by hand. A decision on domains that are not here does not
    count: they were removed, or found by another installation."""
    known = all_domains(store)

    def is_decided(body: Mapping[str, Any]) -> bool:
        return any(name in known for name in (*body["assigned"], *body["unassigned"]))

    return {one.id for one in documents_of(store, HAND) if is_decided(one.body)}


def active_domains(store: MemoryStore) -> dict[str, DomainRecord]:
    return {name: one for name, one in all_domains(store).items() if not one.into}


def current_ids(known: Mapping[str, DomainRecord], names: Iterable[str]) -> tuple[str, ...]:
    """The ids of these domains, given by id or label; of replaced ones those that replaced them. Other names
    stay as they are: a memory may carry any name."""
    by_label = {one.label.casefold(): one.id for one in known.values() if not one.into}
    found: dict[str, None] = {}
    waiting = list(names)
    followed: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        name = name if name in known else by_label.get(name.casefold(), name)
        if name in known and known[name].into and name not in followed:
            followed.add(name)
            waiting = [*known[name].into, *waiting]
        else:
            found[name] = None
    return tuple(found)


def resolved(store: MemoryStore, names: Sequence[str], access: Access) -> tuple[str, ...]:
    """`ids_within` of these names, without a look at the store for no names."""
    return ids_within(all_domains(store), names, access) if names else ()


def ids_within(known: Mapping[str, DomainRecord], names: Iterable[str], access: Access) -> tuple[str, ...]:
    """`current_ids` of the names that a caller gives. Labels, and where an old name leads, are of the whole
    store: a caller with limited access names ids, and old ids of its own domains."""
    if access == EVERYTHING:
        return current_ids(known, names)
    own = set(access.domains or ())
    found: dict[str, None] = {}
    for name in names:
        led = current_ids(known, [name]) if name in known else (name,)
        found |= dict.fromkeys(led if own.issuperset(led) else (name,))
    return tuple(found)


def covered(store: MemoryStore, names: Sequence[str], since: datetime) -> tuple[str, ...]:
    """The domains in which the memories are that these domains had then, or have got: a merged one counts as
    the one it was merged into, and what was split off `since` then is added."""
    known = all_domains(store) if names else {}
    parts = [one for one in known.values() if one.split_from and one.document.created_at > since]
    found = list(current_ids(known, names))
    wider = set(found) | set(names)
    for one in sorted(parts, key=lambda part: (part.document.created_at, part.id)):
        if one.split_from in wider:
            wider.add(one.id)
            found += current_ids(known, [one.id])
    return tuple(dict.fromkeys(found))


def find_domain(call: Call, name: str) -> DomainRecord:
    """The domain with this id or label; NotFound names the nearest one."""
    known = all_domains(call.engine.store)
    (found, *more) = current_ids(known, [name])
    if found in known and not more:
        return known[found]
    if more:
        raise InvalidInput(
            f"The domain {name!r} was split into {', '.join((found, *more))}.",
            hint="Name one of these.",
            details={"domain": name, "into": [found, *more]},
        )
    labels = [one.label for one in known.values() if not one.into]
    close = nearest_name(name, [*(key for key, one in known.items() if not one.into), *labels])
    raise NotFound(
        f"There is no domain {name!r}.",
        hint=f"Did you mean {close!r}?" if close else "`domains list` shows the domains.",
        details={"domain": name},
    )


def free_id(known: Iterable[str], wanted: str) -> str:
    """An id made of a label that no domain has."""
    base = slug(wanted) or "domain"
    taken = {*known, *RESERVED}
    numbers = (f"{base}-{number}" for number in range(2, len(taken) + 3))
    return base if base not in taken else next(one for one in numbers if one not in taken)


def found_id(known: Iterable[str], members: Iterable[str]) -> str:
    """The id of a found domain: a digest of its first members. It shows no word of a text, because callers
    without access to these texts see it on their own memories."""
    digest = sha256("\n".join(sorted(members)).encode()).hexdigest()
    return free_id(known, f"topic-{digest[:8]}")


def require_free_label(known: Mapping[str, DomainRecord], label: str, *, besides: str | None = None) -> None:
    """Raise InvalidInput for a label, or an id, that another domain has."""
    for one in known.values():
        if one.id != besides and not one.into and label.casefold() in (one.label.casefold(), one.id):
            raise InvalidInput(
                f"The domain {one.id} has the label {one.label!r} already.",
                hint="Choose another label, or merge the two domains.",
                details={"domain": one.id, "label": one.label},
            )


def home_of(memory: Memory, known: Mapping[str, Any]) -> str | None:
    """The first domain of a memory that is one of `known`."""
    return next((name for name in memory.domains if name in known), None)


# -- Centroids and thresholds, derived from the members


def centres(store: MemoryStore) -> dict[str, DomainCentre]:
    """The centroids of the vectors in use, by domain; empty if they are of other vectors."""
    pages = store.documents(CENTROIDS, access=EVERYTHING, limit=PAGE)
    signature = store.signature() if pages else None  # many stores have no domains
    if signature is None:
        return {}
    found: dict[str, DomainCentre] = {}
    for page in pages:
        if page.body["profile"] == signature.profile:
            found |= {row[0]: _centre(row) for row in page.body["rows"]}
    shape = (signature.dimension,)
    return {name: one for name, one in found.items() if one.vector.shape == shape}


def _centre(row: Sequence[Any]) -> DomainCentre:
    name, label, terms, vector, cut, low, high, size = row
    return DomainCentre(
        id=name,
        label=label,
        terms=tuple(terms),
        vector=np.frombuffer(b64decode(vector), dtype="<f2").astype(np.float32),
        range=DomainRange(cut=cut, low=low, high=high),
        size=size,
    )


def _row(one: DomainCentre) -> list[Any]:
    vector = b64encode(one.vector.astype("<f2").tobytes()).decode("ascii")
    numbers = (one.range.cut, one.range.low, one.range.high)
    return [one.id, one.label, list(one.terms), vector, *numbers, one.size]


def centre_changes(call: Call, wanted: Iterable[DomainCentre]) -> list[Change]:
    """The changes that make these the only centroids."""
    store, now = call.engine.store, call.engine.now()
    signature = store.signature()
    held = {one.id: one for one in documents_of(store, CENTROIDS)}
    rows = [_row(one) for one in sorted(wanted, key=lambda one: one.id)] if signature else []
    changes: list[Change] = []
    for number, begin in enumerate(range(0, len(rows), ROWS)):
        body = {"profile": signature.profile if signature else "", "rows": rows[begin : begin + ROWS]}
        before = held.pop(f"{number:04}", None)
        if before is None or before.body != body:
            changes.append(put_document(CENTROIDS, f"{number:04}", before, now, body=body))
    return [*changes, *(Drop(kind=CENTROIDS, id=name, at=now) for name in held)]


def refresh_centres(call: Call) -> None:
    """Compute the centroids and thresholds of all domains again from their members."""
    store = call.engine.store
    known = active_domains(store)
    vectors: dict[str, list[Vectors]] = {name: [] for name in known}
    where = Filter(domains=tuple(known), valid_at=call.engine.now(), include_suppressed=False)
    for records in store.stream(where, access=EVERYTHING, batch=BATCH) if known else ():
        call.check()
        held = memory_vectors(call, [one.memory for one in records])
        for one in records:
            home = home_of(one.memory, known)
            if home is not None and one.memory.id in held:
                vectors[home].append(held[one.memory.id])
    made = [
        centre_of(call, known[name], np.stack(rows))
        for name, rows in vectors.items()
        if len(rows) >= LEAST_MEMBERS
    ]
    changes = centre_changes(call, made)
    if changes:
        store.commit(changes, access=EVERYTHING)


def centre_of(call: Call, domain: DomainRecord, vectors: Vectors) -> DomainCentre:
    return make_centre(call, domain.id, domain.label, domain.terms, vectors)


def make_centre(call: Call, name: str, label: str, terms: Sequence[str], vectors: Vectors) -> DomainCentre:
    settings = call.engine.settings.domains
    middle = centroid(vectors)
    found = member_range(vectors, middle, settings.assign_quantile)
    if settings.assign_threshold is not None:
        found = DomainRange(cut=settings.assign_threshold, low=found.low, high=found.high)
    return DomainCentre(
        id=name, label=label, terms=tuple(terms), vector=middle, range=found, size=len(vectors)
    )


def memory_vectors(call: Call, memories: Sequence[Memory]) -> dict[str, Vectors]:
    """One unit vector for each of these memories that has any: the direction of the mean of its pieces."""
    store = call.engine.store
    signature = store.signature()
    if signature is None or not memories:
        return {}
    pieces = store.vectors([one.id for one in memories], signature, access=EVERYTHING)
    return {name: centroid(rows) for name, rows in pieces.items()}


# -- Documents


def domain_put(call: Call, name: str, body: Mapping[str, Any]) -> Put:
    return put_document(DOMAIN, name, None, call.engine.now(), body=body, logged=True)


def domain_change(call: Call, domain: DomainRecord, **fields: Any) -> Put:
    """The change that gives a domain other fields; None removes one."""
    body = {**domain.document.body, **fields}
    kept = {name: value for name, value in body.items() if value is not None}
    return with_body(domain.document, kept, call.engine.now())


def score_line(label: str, score: float, centre: DomainCentre) -> str:
    """The score of a domain beside those of its members: "infra .47 (its members .38-.71, cut .36)"."""
    low, high, cut = (short(one) for one in (centre.range.low, centre.range.high, centre.range.cut))
    return f"{label} {short(score)} (its members {low}-{high}, cut {cut})"


def short(number: float) -> str:
    return f"{number:.2f}".replace("0.", ".", 1) if -1 < number < 1 else f"{number:.2f}"

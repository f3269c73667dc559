"""Deleting memories from every surface, at a user's explicit request.

Words that only deleted memories held are also removed from what was learned from searches, and from what
another installation sends about deleted memories. Whether another memory holds a word is decided by those
that every reader of the learned search may read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from vestige.cognition.graph.kinds import MERGES, SUPERSEDES
from vestige.cognition.text.analyser import memory_terms, terms
from vestige.core.documents import Document
from vestige.core.errors import Conflict
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, EVERYTHING, Access, Edge, Memory
from vestige.engine.care.backup import BACKUPS
from vestige.engine.context import Call
from vestige.engine.exchange.export import EXPORTS
from vestige.engine.memory.merge import MERGED
from vestige.engine.reactions.searches import ATTENTION, PATTERN
from vestige.engine.revise import deleted_event, load, next_revision, retry_on_conflict, with_body
from vestige.store.contract.changes import Change, Forget, Link, Put, Revise
from vestige.store.merge.histories import EntityHistory, MemoryHistory

# -- Removing words of deleted memories from what was learned of searches

EVERY = 1_000_000
FEW = 20
"""How many memories with a word are read: deleted ones, their neighbours, and one that stays."""


def forget_search_words(call: Call, gone: Collection[Memory], now: datetime) -> None:
    """Remove the words that only these memories have or had from learned searches, in every scope."""
    _forget_words(call, _terms_of(_versions(call, gone)), {memory.id for memory in gone}, now)


class RemoteDeletions:
    """The words of memories that an import deletes, or that were deleted here and come back in it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._said: set[str] = set()
        self._gone: set[str] = set()

    def before_merge(self, histories: Iterable[EntityHistory]) -> None:
        """Remove learned words of memories that these histories end, before the merge: an interrupted import
        starts over."""
        store = self._call.engine.store
        arriving = {one.memory_id: one for one in histories if isinstance(one, MemoryHistory)}
        here = [record.memory for record in store.get_many(list(arriving), access=EVERYTHING)]
        gone = [memory for memory in here if not arriving[memory.id].versions]
        new = [arriving[name] for name in arriving.keys() - {memory.id for memory in here}]
        returning = [one for one in new if one.versions and store.tombstone(one.memory_id, access=EVERYTHING)]
        versions = [*_versions(self._call, gone), *(one for each in returning for one in each.versions)]
        if versions:
            self._said |= _terms_of(versions)
            self._gone |= {memory.id for memory in versions}
            self.after_merge()

    def after_merge(self) -> None:
        """Remove the words once more, from what the merge brought."""
        if self._said:
            call = self._call
            retry_on_conflict(call, lambda: _forget_words(call, self._said, self._gone, call.engine.now()))


def _forget_words(call: Call, said: set[str], ids: Collection[str], now: datetime) -> None:
    # What others searched stays as it is: a change would show them what they may not see.
    find = partial(call.engine.store.documents, access=call.access, terms=list(said), limit=EVERY)
    learned = [*find(ATTENTION), *find(PATTERN)]
    cited = list({one: None for document in learned for one in document.cites if one not in ids})
    found = call.engine.store.get_many(cited, access=EVERYTHING) if cited else []
    memories = {record.memory.id: record.memory for record in found}
    used = cache(partial(_is_used_elsewhere, call, frozenset(ids)))
    changes = []
    for document in learned:
        accesses = _accesses(document, memories)
        words = {
            word
            for word in said & document.body["terms"].keys()
            if not any(used(word, one) for one in accesses)
        }
        if words:
            changes.append(_without(document, words, now))
    if changes:
        call.engine.store.commit(changes, access=EVERYTHING)


def _accesses(document: Document, memories: Mapping[str, Memory]) -> set[Access]:
    """Accesses that everyone who may read a document has: to its scope and, if its memories are in domains,
    to that of one of them. What a reader may not see must not decide which words stay in it."""
    domains = {memories[one].domains for one in document.cites if one in memories}
    if not domains or () in domains:
        return {Access(scopes=(document.scope,))}
    return {Access(scopes=(document.scope,), domains=one) for one in domains if len(one) == 1}


def _versions(call: Call, gone: Collection[Memory]) -> list[Memory]:
    # Also versions that the caller had no access to: they are not shown, and none of their words may stay.
    past = (call.engine.store.history(memory.id, access=EVERYTHING) for memory in gone)
    return [*gone, *(revision.memory for several in past for revision in several)]


def _terms_of(versions: Sequence[Memory]) -> set[str]:
    return {term for one in versions for term in (*memory_terms(one), *terms(one.source or ""))}


def _is_used_elsewhere(call: Call, gone: Collection[str], word: str, access: Access) -> bool:
    found = call.engine.store.lexical([word], ANYTHING, access=access, limit=len(gone) + FEW)
    return any(one.own > 0 and one.memory_id not in gone for one in found)


def _without(document: Document, words: Collection[str], now: datetime) -> Put:
    left = {term: held for term, held in document.body["terms"].items() if term not in words}
    return with_body(document, {**document.body, "terms": left}, now, logged=False)


# -- Deleting

ENDING, ENDED = (SUPERSEDES, MERGES), ("superseded", MERGED)
"""The links from a memory to those it ended, and the reasons of the revisions that ended them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was deleted and revived, and where words remain: `still_in` are memories it was merged into or
    from, `lingers_in` a file that holds them until a process that reads an older state of the store has
    finished."""

    deleted: tuple[str, ...]
    revived: tuple[str, ...]
    still_in: tuple[str, ...]
    lingers_in: str | None


def forget(
    call: Call, memory_id: str, *, even_pinned: bool, with_merges: bool = False, with_parts: bool = False
) -> Forgotten:
    """Delete a memory from every surface; what it had superseded or merged is revived. `with_merges` also
    deletes the memories it was merged into, `with_parts` those it was merged from."""

    def attempt() -> Forgotten:
        load(call, memory_id)
        parts = _merged(call, [memory_id], up=False)
        wanted = [memory_id, *(parts if with_parts else ())]
        merges = _merged(call, wanted, up=True)
        gone = dict.fromkeys([*wanted, *(merges if with_merges else ())])
        still_in = tuple(one for one in (*merges, *parts) if one not in gone)
        return _forget(call, list(gone), still_in, even_pinned)

    with call.engine.store.alone("purge"):
        return retry_on_conflict(call, attempt)


def file_copies(call: Call) -> list[str]:
    """The backups and exports in the data directory: the user's own files, which are not changed."""
    folder = call.engine.settings.data_dir
    found = (path for name in (BACKUPS, EXPORTS) for path in (folder / name).glob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _merged(call: Call, start: Collection[str], *, up: bool) -> list[str]:
    """The memories that these were merged into, over any number of merges; without `up`, merged from."""
    met, level = dict.fromkeys(start), set(start)
    while level:
        edges = call.engine.store.edges(list(level), access=call.access)
        ends = ((edge.source_id, edge.target_id) for edge in edges if edge.kind == MERGES)
        steps = (pair if up else pair[::-1] for pair in ends)
        level = {to for to, at in steps if at in level and to not in met}
        met.update(dict.fromkeys(sorted(level)))
    return [one for one in met if one not in start]


def _forget(call: Call, ids: list[str], still_in: tuple[str, ...], even_pinned: bool) -> Forgotten:
    now = call.engine.now()
    gone = {record.memory.id: record.memory for record in call.engine.store.get_many(ids, access=call.access)}
    _check_pins(gone.values(), even_pinned)
    forget_search_words(call, gone.values(), now)  # first: an interrupted deletion can be repeated
    heirs = _heirs(call, gone, now)
    endings = [Forget(memory_id=one, at=now, reason="deleted") for one in gone]
    call.engine.store.commit([*heirs, *endings], access=call.access)
    call.engine.events.emit(*(deleted_event(memory, now) for memory in gone.values()))
    revived = tuple(one.memory.id for one in heirs if isinstance(one, Revise) and one.reason == "revived")
    lingers_in = call.engine.store.lingers_in
    return Forgotten(deleted=tuple(gone), revived=revived, still_in=still_in, lingers_in=lingers_in)


def _check_pins(memories: Iterable[Memory], even_pinned: bool) -> None:
    pinned = next((memory.id for memory in memories if memory.pinned), None)
    if pinned is not None and not even_pinned:
        raise Conflict(
            f"The memory {pinned} is pinned.",
            hint="Unpin it first, or set `even_pinned`.",
            details={"id": pinned},
        )


def _heirs(call: Call, gone: Mapping[str, Memory], now: datetime) -> list[Change]:
    """The changes to memories that the deleted ones had superseded or merged: a wrong correction must not
    leave the right memory ended. If the deleted one was itself superseded, its successor takes over."""
    store = call.engine.store
    edges = [edge for edge in store.edges(list(gone), access=call.access) if edge.kind in ENDING]
    ended = [edge.target_id for edge in edges if edge.source_id in gone and edge.target_id not in gone]
    changes: list[Change] = []
    for record in store.get_many(list(dict.fromkeys(ended)), access=call.access):
        memory = record.memory
        last = _last(gone, memory)
        if last is None:
            continue
        if last.superseded_by is not None:
            wanted, reason = replace(memory, superseded_by=last.superseded_by), "handed on"
            changes += _handed_on_links(edges, last, memory.id, now)
        else:
            before = store.history(memory.id, access=call.access)
            until = next((r.memory.valid_until for r in reversed(before) if r.reason in ENDED), None)
            wanted = replace(memory, superseded_by=None, valid_until=until, archived_at=None)
            reason = "revived"
        changes.append(Revise(memory=next_revision(wanted, now), reason=reason))
    return changes


def _last(gone: Mapping[str, Memory], memory: Memory) -> Memory | None:
    """The last deleted memory in the chain that ended a memory; None if its successor was not deleted."""
    last, ending = None, memory.superseded_by
    while ending is not None and ending in gone:
        last = gone[ending]
        ending = last.superseded_by
    return last


def _handed_on_links(edges: Iterable[Edge], gone: Memory, memory_id: str, now: datetime) -> list[Change]:
    """The links from the successor of a deleted memory to what that one had ended."""
    return [
        Link(edge=Edge(source_id=edge.source_id, target_id=memory_id, kind=edge.kind, created_at=now))
        for edge in edges
        if edge.target_id == gone.id and edge.source_id == gone.superseded_by
    ]

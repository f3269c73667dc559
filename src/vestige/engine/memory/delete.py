"""Deleting memories, everywhere, on somebody's explicit word."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vestige.cognition.graph.kinds import MERGES, SUPERSEDES
from vestige.cognition.text.analyser import memory_terms, terms
from vestige.core.documents import Document
from vestige.core.errors import Conflict
from vestige.core.models import ANYTHING, EVERYTHING, Edge, Memory
from vestige.engine.care.backup import BACKUPS
from vestige.engine.context import Call
from vestige.engine.exchange.export import EXPORTS
from vestige.engine.memory.merge import MERGED
from vestige.engine.reactions.searches import ATTENTION, PATTERN
from vestige.engine.revise import deleted, load, next_revision, persistently
from vestige.store.contract.changes import Change, Forget, Link, Put, Revise
from vestige.store.merge.histories import EntityHistory, MemoryHistory

# -- Taking words that only deleted memories held out of what was learned from searches.

EVERY = 1_000_000
FEW = 20
"""How many memories with a word are looked at: those that go, their neighbours, and one that stays."""


def unlearn(call: Call, gone: Collection[Memory], now: datetime) -> None:
    """Forget the words that only these memories have or had, whoever may see where they are kept."""
    _forget_words(call, _said(_versions(call, gone)), {memory.id for memory in gone}, now)


class Partings:
    """The words of memories that end by what another installation tells, or that have ended here and are
    told by one that has not heard of it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._said: set[str] = set()
        self._gone: set[str] = set()

    def meet(self, lives: Iterable[EntityHistory]) -> None:
        """Unlearn what these lives end, before the words go: who is interrupted here can begin again."""
        told = {life.memory_id: life for life in lives if isinstance(life, MemoryHistory)}
        here = [record.memory for record in self._call.engine.store.get_many(list(told), access=EVERYTHING)]
        gone = [memory for memory in here if not told[memory.id].versions]
        there = told.keys() - {memory.id for memory in here}
        unheard = [told[one] for one in there if told[one].versions and self._has_ended(one)]
        versions = [*_versions(self._call, gone), *(one for life in unheard for one in life.versions)]
        if versions:
            self._said |= _said(versions)
            self._gone |= {memory.id for memory in versions}
            self.part()

    def part(self) -> None:
        """Unlearn once more, in what came in since."""
        if self._said:
            call = self._call
            persistently(call, lambda: _forget_words(call, self._said, self._gone, call.engine.now()))

    def _has_ended(self, memory_id: str) -> bool:
        return self._call.engine.store.tombstone(memory_id, access=EVERYTHING) is not None


def _forget_words(call: Call, said: set[str], ids: Collection[str], now: datetime) -> None:
    learned = [document for kind in (ATTENTION, PATTERN) for document in _naming(call, kind, said)]
    kept = {term for document in learned for term in document.body["terms"]}
    words = {word for word in kept & said if not _said_elsewhere(call, word, ids)}
    changes = [_without(document, words, now) for document in learned if words & set(document.body["terms"])]
    if changes:
        call.engine.store.commit(changes, access=EVERYTHING)


def _naming(call: Call, kind: str, terms: Collection[str]) -> list[Document]:
    return call.engine.store.documents(kind, access=EVERYTHING, terms=list(terms), limit=EVERY)


def _versions(call: Call, gone: Collection[Memory]) -> list[Memory]:
    """Everything these memories ever were."""
    # Those too that their deleter never reached: nobody is told of them, and nothing of them may stay.
    past = (call.engine.store.history(memory.id, access=EVERYTHING) for memory in gone)
    return [*gone, *(revision.memory for several in past for revision in several)]


def _said(versions: Sequence[Memory]) -> set[str]:
    return {term for one in versions for term in (*memory_terms(one), *terms(one.source or ""))}


def _said_elsewhere(call: Call, word: str, gone: Collection[str]) -> bool:
    found = call.engine.store.lexical([word], ANYTHING, access=EVERYTHING, limit=len(gone) + FEW)
    return any(one.own > 0 and one.memory_id not in gone for one in found)


def _without(document: Document, words: Collection[str], now: datetime) -> Put:
    left = {term: held for term, held in document.body["terms"].items() if term not in words}
    body = {**document.body, "terms": left}
    changed = replace(
        document, body=body, version=document.version + 1, updated_at=max(now, document.updated_at)
    )
    return Put(document=changed, logged=False)


# -- forgetting

ENDING, ENDED = (SUPERSEDES, MERGES), ("superseded", MERGED)
"""The links from a memory to what it ended, and the reasons of the revisions that did so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was deleted, what lives again, and what still holds words of the memory: memories because of
    merging, and a file (`lingers_in`) because somebody reads the store as it was before."""

    deleted: tuple[str, ...]
    revived: tuple[str, ...]
    still_in: tuple[str, ...]
    lingers_in: str | None


def forget(
    call: Call, memory_id: str, *, even_pinned: bool, with_merges: bool = False, with_parts: bool = False
) -> Forgotten:
    """Delete a memory from every surface. What it had superseded or merged lives again.

    `with_merges` deletes also what it was merged into, `with_parts` what it was merged from.
    """

    def attempt() -> Forgotten:
        load(call, memory_id)
        parts = _merged(call, [memory_id], up=False)
        wanted = [memory_id, *(parts if with_parts else ())]
        merges = _merged(call, wanted, up=True)
        gone = dict.fromkeys([*wanted, *(merges if with_merges else ())])
        still_in = tuple(one for one in (*merges, *parts) if one not in gone)
        return _forget(call, list(gone), still_in, even_pinned)

    with call.engine.store.alone("purge"):
        return persistently(call, attempt)


def copies(call: Call) -> list[str]:
    """The backups and exports in the data directory: files of the user's own, which keep what they hold."""
    folder = call.engine.settings.data_dir
    found = (path for name in (BACKUPS, EXPORTS) for path in (folder / name).glob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _merged(call: Call, start: Collection[str], *, up: bool) -> list[str]:
    """What these were merged into, over any number of merges; without `up`, what they were merged from."""
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
    unlearn(call, gone.values(), now)  # before the words go: who is interrupted here can begin again
    heirs = _heirs(call, gone, now)
    endings = [Forget(memory_id=one, at=now, reason="deleted") for one in gone]
    call.engine.store.commit([*heirs, *endings], access=call.access)
    call.engine.events.emit(*(deleted(memory, now) for memory in gone.values()))
    revived = (one.memory.id for one in heirs if isinstance(one, Revise) and one.reason == "revived")
    return Forgotten(
        deleted=tuple(gone),
        revived=tuple(revived),
        still_in=still_in,
        lingers_in=call.engine.store.lingers_in,
    )


def _check_pins(memories: Iterable[Memory], even_pinned: bool) -> None:
    pinned = next((memory.id for memory in memories if memory.pinned), None)
    if pinned is not None and not even_pinned:
        raise Conflict(
            f"The memory {pinned} is pinned.",
            hint="Unpin it first, or say `even_pinned`.",
            details={"id": pinned},
        )


def _heirs(call: Call, gone: Mapping[str, Memory], now: datetime) -> list[Change]:
    """What becomes of the facts that these had superseded or merged.

    A wrong correction that is taken back must not leave the right fact ended; one that was corrected
    itself hands them on to what corrected it.
    """
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
            changes += _passed_on(edges, last, memory.id, now)
        else:
            before = store.history(memory.id, access=call.access)
            until = next((r.memory.valid_until for r in reversed(before) if r.reason in ENDED), None)
            wanted = replace(memory, superseded_by=None, valid_until=until, archived_at=None)
            reason = "revived"
        changes.append(Revise(memory=next_revision(wanted, now), reason=reason))
    return changes


def _last(gone: Mapping[str, Memory], memory: Memory) -> Memory | None:
    """What ended a memory, or what ended that in turn, as far as it is gone; None where it is not."""
    last, ending = None, memory.superseded_by
    while ending is not None and ending in gone:
        last = gone[ending]
        ending = last.superseded_by
    return last


def _passed_on(edges: Iterable[Edge], gone: Memory, memory_id: str, now: datetime) -> list[Change]:
    """The link by which something was ended, to what it had ended: so that its end is known as theirs too."""
    return [
        Link(edge=Edge(source_id=edge.source_id, target_id=memory_id, kind=edge.kind, created_at=now))
        for edge in edges
        if edge.target_id == gone.id and edge.source_id == gone.superseded_by
    ]

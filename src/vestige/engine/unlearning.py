"""Taking words that only deleted memories held out of what was learned from searches.

Who looks for a memory types its words, and they are kept beside other memories (`engine.patterns`). A word
that some other memory has too stays: it tells nothing of what is gone.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from vestige.cognition.text import memory_terms, terms
from vestige.documents import Document
from vestige.engine.context import Call
from vestige.engine.patterns import ATTENTION, PATTERN
from vestige.engine.revising import persistently
from vestige.models import ANYTHING, EVERYTHING, Memory
from vestige.store.changes import Put
from vestige.store.lives import Life, MemoryLife

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

    def meet(self, lives: Iterable[Life]) -> None:
        """Unlearn what these lives end, before the words go: who is interrupted here can begin again."""
        told = {life.memory_id: life for life in lives if isinstance(life, MemoryLife)}
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

"""Taking words that only deleted memories held out of what was learned from searches.

Who looks for a memory types its words, and they are kept beside other memories (`engine.patterns`). A word
that some other memory has too stays: it tells nothing of what is gone.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from vestige.cognition.text import memory_terms, terms
from vestige.documents import Document
from vestige.engine.context import Call
from vestige.engine.patterns import ATTENTION, PATTERN
from vestige.models import ANYTHING, EVERYTHING, Memory
from vestige.store.changes import Put

EVERY = 1_000_000
FEW = 20
"""How many memories with a word are looked at: those that go, their neighbours, and one that stays."""


def unlearn(call: Call, gone: Collection[Memory], now: datetime) -> None:
    """Forget the words that only these memories have or had, whoever may see where they are kept."""
    said = _said(call, gone)
    learned = [document for kind in (ATTENTION, PATTERN) for document in _naming(call, kind, said)]
    kept = {term for document in learned for term in document.body["terms"]}
    ids = {memory.id for memory in gone}
    words = {word for word in kept & said if not _said_elsewhere(call, word, ids)}
    changes = [_without(document, words, now) for document in learned if words & set(document.body["terms"])]
    if changes:
        call.engine.store.commit(changes, access=EVERYTHING)


def _naming(call: Call, kind: str, terms: Collection[str]) -> list[Document]:
    return call.engine.store.documents(kind, access=EVERYTHING, terms=list(terms), limit=EVERY)


def _said(call: Call, gone: Collection[Memory]) -> set[str]:
    """The terms of everything these memories ever said."""
    versions = list(gone)
    for memory in gone:
        versions += (past.memory for past in call.engine.store.history(memory.id, access=call.access))
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

"""Assignment of new memories to domains, in the transaction that stores them."""

from collections.abc import Mapping
from dataclasses import replace

from vestige.cognition.graph.domains.assignment import Vectors, assigned, clamped, context_priors
from vestige.cognition.text.form import is_threaded
from vestige.core.models import EVERYTHING, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import (
    HAND,
    DomainCentre,
    DomainRecord,
    all_domains,
    centres,
    ids_within,
)
from vestige.engine.revise import put_document
from vestige.store.contract.changes import Put


class Classifier:
    """The domains of the store, read once for a batch of new memories when the first one needs them."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._centres: dict[str, DomainCentre] | None = None
        self._known: dict[str, DomainRecord] | None = None
        self._threads: dict[tuple[str, str], tuple[str, ...]] = {}

    def classified(self, memory: Memory, vector: Vectors | None) -> Memory:
        """A new memory with its domains and scores. Domains that the caller named stay the only ones, so that
        a key limited to domains writes to no other. A turn of a thread is where its thread is."""
        if not self._call.engine.settings.domains.enabled:
            return memory
        if memory.domains:
            return replace(memory, domains=ids_within(self._domains(), memory.domains, self._call.access))
        if vector is None or not self._middles():
            return memory
        scores = scores_of(self._call, memory, vector, self._middles())
        cuts = {name: one.range.cut for name, one in self._middles().items()}
        vectors = {name: one.vector for name, one in self._middles().items()}
        domains = assigned(scores, cuts, vectors) if scores else ()
        if is_threaded(memory):
            place = (memory.scope, memory.thread or memory.source or "")
            domains = self._threads.setdefault(place, self._of_thread(memory, domains))
        return replace(memory, domains=domains, domain_scores=scores)

    def by_hand(self, memory: Memory, named: bool) -> list[Put]:
        """The record that the caller named the domains of a new memory, where they are known ones. A caller
        with limited access is not shown which are known: it gets a record of all."""
        limited = self._call.access != EVERYTHING
        known = [name for name in memory.domains if named and (limited or name in self._domains())]
        if not known:
            return []
        body = {"assigned": known, "unassigned": []}
        now, cites = self._call.engine.now(), (memory.id,)
        return [
            put_document(HAND, memory.id, None, now, body=body, scope=memory.scope, cites=cites, logged=True)
        ]

    def _of_thread(self, memory: Memory, domains: tuple[str, ...]) -> tuple[str, ...]:
        where = Filter(scope=memory.scope, scope_only=True, thread=memory.thread)
        if memory.thread is None:
            where = replace(where, source=memory.source)
        earlier = self._call.engine.store.find(where, access=EVERYTHING, limit=1)
        if not earlier or not (earlier[0].memory.domains or earlier[0].memory.domain_scores):
            return domains  # it is the first one, or the thread came from a file
        return tuple(name for name in earlier[0].memory.domains if name in self._middles())

    def _middles(self) -> dict[str, DomainCentre]:
        if self._centres is None:
            self._centres = centres(self._call.engine.store)
        return self._centres

    def _domains(self) -> dict[str, DomainRecord]:
        if self._known is None:
            self._known = all_domains(self._call.engine.store)
        return self._known


def scores_of(
    call: Call, memory: Memory, vector: Vectors, middles: Mapping[str, DomainCentre]
) -> dict[str, float]:
    """The score of a memory for each domain, with what its metadata adds; empty for other vectors."""
    signals = call.engine.settings.domains.signals
    terms = {name: one.terms for name, one in middles.items()}
    boosts = context_priors(
        memory.metadata,
        terms,
        signals.git_boost if signals.git else 0.0,
        signals.ide_boost if signals.ide else 0.0,
    )
    return {
        name: round(clamped(float(vector @ one.vector) + boosts.get(name, 0.0)), 4)
        for name, one in middles.items()
        if one.vector.shape == vector.shape
    }

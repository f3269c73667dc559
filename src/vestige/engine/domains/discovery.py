"""Discovery: load the memories, find communities, and apply them (the first time) or propose changes.

A thread counts as one text, because its members must share their domains to stay neighbours in a search.
Memories that were assigned by hand, and the members of domains made by hand, take no part.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from vestige.cognition.graph.domains.assignment import Vectors, assigned, centroid, clamped
from vestige.cognition.graph.domains.discovery import (
    SAMPLES,
    Community,
    Discovery,
    discover,
    discover_by_density,
    resampled,
    stable_part,
)
from vestige.cognition.graph.domains.names import (
    Said,
    exemplars,
    label_of,
    said_in,
    terms_of_groups,
    with_tags,
)
from vestige.cognition.graph.domains.neighbours import nearest_neighbours, neighbours_by_lists
from vestige.cognition.graph.domains.proposals import DomainProposal, FoundDomain, matched, propose
from vestige.cognition.graph.neighbour_lists import Ints
from vestige.cognition.text.form import is_threaded
from vestige.core.errors import Conflict, InvalidInput
from vestige.core.events import DomainsChanged
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Filter, Memory
from vestige.engine.context import Call
from vestige.engine.domains.arrivals import assign_unscored, catch_up
from vestige.engine.domains.catalogue import (
    BATCH,
    DomainCentre,
    DomainRecord,
    active_domains,
    all_domains,
    by_hand,
    centre_changes,
    domain_put,
    found_id,
    home_of,
    make_centre,
    memory_vectors,
)
from vestige.engine.domains.moves import member_count, membership_changes
from vestige.engine.domains.proposals import ProposalPart, keep_proposals
from vestige.engine.revise import retry_on_conflict
from vestige.engine.sleep.runs import alone
from vestige.store.contract.changes import Change

logger = logging.getLogger(__name__)

RUN = "domains"
"""The name of the lease of a discovery."""
MOST_TOPICS = 20
Method = Literal["leiden", "hdbscan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTopic:
    """A community with its names and the ids of its exemplars."""

    label: str
    terms: tuple[str, ...]
    members: tuple[str, ...]
    exemplars: tuple[str, ...]
    topics: tuple[tuple[str, int], ...]
    community: Community
    vectors: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryRun:
    """What a discovery did. `applied`: its domains are in use now, all but `weak` ones; else the differences
    wait as `proposals`."""

    memories: int
    clusters: int
    applied: bool
    domains: tuple[str, ...] = ()
    unclassified: int = 0
    several: int = 0
    weak: int = 0
    proposals: int = 0
    shown: int = 0


@dataclass(slots=True, kw_only=True)
class Corpus:
    """The texts that take part: threads and single memories, in the order of their first id."""

    names: list[str]
    members: list[list[Memory]]
    vectors: Vectors
    memories: int
    tags: Counter[str] = field(default_factory=Counter)

    def text(self, row: int) -> str:
        return "\n".join(memory.content for memory in self.members[row])

    def ids(self, rows: Sequence[int]) -> tuple[str, ...]:
        return tuple(memory.id for row in rows for memory in self.members[row])


def run_discovery(
    call: Call, *, least_size: int | None = None, method: Method = "leiden", force: bool = False
) -> DiscoveryRun:
    """Find domains. Without any found before, they are applied; else they only become proposals. `force`:
    also with fewer memories than the threshold."""
    call.require_everything()
    settings = call.engine.settings.domains
    size = settings.min_cluster_size if least_size is None else least_size
    _require_one_model(call)
    with alone(call, RUN) as call:
        corpus = _corpus(call, 0 if force else settings.discovery_threshold)
        old = {name: one for name, one in active_domains(call.engine.store).items() if one.found}
        neighbours = _neighbours(call, corpus) if method == "leiden" else None
        discovery = _discovered(call, corpus, size, neighbours, first=not old)
        if not old:
            run = _apply(call, corpus, discovery)
            assign_unscored(call)
            return run
        run = _propose(call, corpus, discovery, neighbours, old, size)
        catch_up(call)
        return run


def look_again(call: Call) -> None:
    """Propose what has changed, where there are domains; nothing while another discovery runs, or if too few
    memories are left."""
    if any(one.found for one in active_domains(call.engine.store).values()):
        try:
            run_discovery(call)
        except (Conflict, InvalidInput) as exc:
            logger.info("No discovery of domains after this dream: %s", exc.message)


def _require_one_model(call: Call) -> None:
    """Raise InvalidInput if new memories get no vectors, or others than those in the store."""
    held, configured = call.engine.store.signature(), call.engine.embedders.status().signature
    if held is not None and configured is not None and held != configured:
        raise InvalidInput(
            f"The store holds vectors of {held.profile}, and the settings name {configured.profile}: vectors "
            "of two models cannot be compared.",
            hint=f"Run `vestige migrate --reembed` to embed every memory with {configured.name}, or set the "
            f"embeddings back to {held.name}.",
            details={"held": held.profile, "configured": configured.profile},
        )


def _corpus(call: Call, least: int) -> Corpus:
    """The current memories with vectors; InvalidInput for too few."""
    store = call.engine.store
    known = {name for name, one in active_domains(store).items() if one.found}
    pinned = by_hand(store)
    groups: dict[tuple[str, ...], list[Memory]] = {}
    vectors: dict[str, Vectors] = {}
    seen = 0
    tags: Counter[str] = Counter()
    where = Filter(valid_at=call.engine.now(), include_suppressed=False)
    for batch in store.stream(where, access=EVERYTHING, batch=BATCH):
        call.check()
        seen += len(batch)
        memories = [record.memory for record in batch]
        tags.update(tag for memory in memories for tag in set(memory.tags))
        free = [one for one in memories if one.id not in pinned and known.issuperset(one.domains)]
        made = memory_vectors(call, free)
        vectors |= made
        for memory in free:
            if memory.id in made:
                groups.setdefault(_unit(memory), []).append(memory)
    _check_enough(call, seen, len(vectors), least)
    units = sorted(
        (sorted(one, key=lambda memory: memory.id) for one in groups.values()), key=lambda u: u[0].id
    )
    rows = [
        vectors[unit[0].id] if len(unit) == 1 else centroid(np.stack([vectors[memory.id] for memory in unit]))
        for unit in units
    ]
    return Corpus(
        names=[unit[0].id for unit in units],
        members=units,
        vectors=np.stack(rows) if rows else np.zeros((0, 1), dtype=np.float32),
        memories=len(vectors),
        tags=tags,
    )


def _unit(memory: Memory) -> tuple[str, ...]:
    if is_threaded(memory):
        return memory.scope, memory.thread or memory.source or ""
    return (memory.id,)


def _check_enough(call: Call, memories: int, embedded: int, least: int) -> None:
    if memories and not embedded and call.engine.store.signature() is None:
        raise InvalidInput(
            "The memories have no vectors, and domains are found by them.",
            hint="Install the model with `vestige model install`; the memories are then embedded.",
            details={"memories": memories},
        )
    if embedded < least:
        raise InvalidInput(
            f"A discovery needs {least} memories with vectors that are not assigned by hand; there are "
            f"{embedded}.",
            hint="Store more memories first, or lower `domains.discovery_threshold`.",
            details={"memories": embedded, "needed": least},
        )


def _discovered(call: Call, corpus: Corpus, size: int, neighbours: Ints | None, *, first: bool) -> Discovery:
    """The communities by these neighbours, by density without. After the `first` discovery there are no
    topics, and samples are only compared if there is something to propose."""
    if neighbours is None:
        samples = call.engine.settings.domains.min_samples
        return discover_by_density(corpus.vectors, least_size=size, min_samples=samples)
    return discover(
        corpus.vectors,
        least_size=size,
        samples=SAMPLES if first else 0,
        neighbours=neighbours,
        topics=first,
        check=call.check,
    )


def _neighbours(call: Call, corpus: Corpus) -> Ints:
    """The neighbours of the texts, by the stored lists if the store keeps any. A thread has no list, nor has
    a memory that changed since the corpus was read."""
    kept = call.engine.store.neighbours(access=EVERYTHING, check=call.check)
    if kept is None:
        return nearest_neighbours(corpus.vectors)[0]
    known = {name: at for at, name in enumerate(kept.ids)}
    places = [known.get(unit[0].id, -1) if len(unit) == 1 else -1 for unit in corpus.members]
    return neighbours_by_lists(corpus.vectors, kept.lists, np.array(places, dtype=np.int64), check=call.check)


def named(call: Call, corpus: Corpus, discovery: Discovery, *, with_topics: bool = True) -> list[FoundTopic]:
    """The communities with their names, and with those of their topics."""
    count = call.engine.settings.domains.top_terms_k
    said = [said_in(corpus.text(row)) for row in range(len(corpus.members))]
    groups = [[said[row] for row in one.rows.tolist()] for one in discovery.communities]
    loose = [said[row] for row in np.flatnonzero(discovery.domain_of < 0).tolist()]
    call.check()
    terms = terms_of_groups(groups, loose, count)
    topics = _topics(said, discovery) if with_topics else {}
    found = []
    for number, one in enumerate(discovery.communities):
        tags = [sorted({tag for memory in corpus.members[row] for tag in memory.tags}) for row in one.rows]
        words = with_tags(terms[number], tags, corpus.tags)[:count]
        vectors = corpus.vectors[one.rows]
        found.append(
            FoundTopic(
                label=label_of(words) or f"domain {number + 1}",
                terms=tuple(words),
                members=corpus.ids(one.rows.tolist()),
                exemplars=tuple(corpus.names[int(one.rows[at])] for at in exemplars(vectors)),
                topics=topics.get(number, ()),
                community=one,
                vectors=vectors,
            )
        )
    return found


def _topics(said: Sequence[Said], discovery: Discovery) -> dict[int, tuple[tuple[str, int], ...]]:
    """The named topics of each domain with the number of their texts, largest first."""
    numbers = sorted(set(discovery.topic_of.tolist()) - {-1})
    rows = [np.flatnonzero(discovery.topic_of == number) for number in numbers]
    terms = terms_of_groups([[said[row] for row in one.tolist()] for one in rows], count=2)
    found: dict[int, list[tuple[str, int]]] = {}
    for one, words in zip(rows, terms, strict=True):
        if words:
            found.setdefault(int(discovery.domain_of[one[0]]), []).append((label_of(words), len(one)))
    return {
        domain: tuple(sorted(topics, key=lambda topic: (-topic[1], topic[0]))[:MOST_TOPICS])
        for domain, topics in found.items()
    }


# -- The first discovery


def _apply(call: Call, corpus: Corpus, discovery: Discovery) -> DiscoveryRun:
    found = named(call, corpus, stable_part(discovery))

    def attempt() -> DiscoveryRun:
        taken = set(all_domains(call.engine.store))
        labels: dict[str, FoundTopic] = {}
        for one in found:
            name = found_id({*taken, *labels}, one.members)
            labels[name] = one
        middles = {
            name: make_centre(call, name, label, one.terms, one.vectors)
            for (name, one), label in zip(labels.items(), distinct_labels(labels), strict=True)
        }
        wanted = _memberships(corpus, labels, middles)
        changes: list[Change] = [
            domain_put(call, name, domain_body(middles[name].label, one)) for name, one in labels.items()
        ]
        changes += membership_changes(call, wanted, reason="domains found")
        changes += centre_changes(call, middles.values())
        call.check()
        call.engine.store.commit(changes, access=EVERYTHING)
        return DiscoveryRun(
            memories=corpus.memories,
            clusters=len(discovery.communities),
            applied=True,
            weak=len(discovery.communities) - len(found),
            domains=tuple(labels),
            unclassified=corpus.memories - sum(bool(domains) for domains, _ in wanted.values()),
            several=sum(len(domains) > 1 for domains, _ in wanted.values()),
        )

    run = retry_on_conflict(call, attempt)
    now = call.engine.now()
    call.engine.events.emit(
        DomainsChanged(timestamp=now, scopes=None, action="discover", domains=run.domains, moved=run.memories)
    )
    return run


def distinct_labels(found: Mapping[str, FoundTopic]) -> list[str]:
    """The label of each domain; the id where two would have the same."""
    count = Counter(one.label.casefold() for one in found.values())
    return [one.label if count[one.label.casefold()] == 1 else name for name, one in found.items()]


def domain_body(label: str, one: FoundTopic) -> dict[str, Any]:
    """The body of the document of a found domain."""
    evidence = {
        "cohesion": clamped(one.community.cohesion),
        "conductance": one.community.conductance,
        "recurrence": one.community.recurrence,
    }
    return {
        "label": label,
        "origin": "found",
        "terms": list(one.terms),
        "topics": [list(topic) for topic in one.topics],
        "evidence": evidence,
    }


def _memberships(
    corpus: Corpus, found: Mapping[str, FoundTopic], middles: Mapping[str, DomainCentre]
) -> dict[str, tuple[tuple[str, ...], dict[str, float]]]:
    """The domains and scores of each memory: its community first, then others whose threshold it passes."""
    if not found:
        return {}
    names = list(found)
    home = {member: name for name, one in found.items() for member in one.members}
    vectors = {name: middles[name].vector for name in names}
    scores = corpus.vectors @ np.stack(list(vectors.values())).T
    cuts = {name: middles[name].range.cut for name in names}
    wanted: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {}
    for row, unit in enumerate(corpus.members):
        own = {name: round(clamped(float(score)), 4) for name, score in zip(names, scores[row], strict=True)}
        domains = assigned(own, cuts, vectors, home=home.get(unit[0].id))
        wanted |= {memory.id: (domains, own) for memory in unit}
    return wanted


# -- Later discoveries


def _propose(
    call: Call,
    corpus: Corpus,
    discovery: Discovery,
    neighbours: Ints | None,
    old: Mapping[str, DomainRecord],
    size: int,
) -> DiscoveryRun:
    """Keep the differences between the domains in use and those found as proposals. Samples are compared and
    names looked for only if there are any, because that takes longer than all the rest."""
    homes = {unit[0].id: home for unit in corpus.members if (home := home_of(unit[0], old)) is not None}
    before = {name: frozenset(unit for unit, home in homes.items() if home == name) for name in old}
    units = {memory.id: unit[0].id for unit in corpus.members for memory in unit}
    new = _found_domains(corpus, discovery)
    proposals = propose(before, new, least_size=size)
    if proposals and neighbours is not None:
        discovery = resampled(discovery, neighbours, check=call.check)
        new = _found_domains(corpus, discovery)
        proposals = propose(before, new, least_size=size)
    # Those put there by hand take no part in the discovery, but they are members.
    proposals = [
        one for one in proposals if one.kind != "retire" or member_count(call, one.targets[0]) < size
    ]
    found = named(call, corpus, discovery, with_topics=False) if proposals else []
    parts = {
        number: ProposalPart(
            label=one.label,
            terms=one.terms,
            exemplars=one.exemplars,
            members=tuple((member, homes.get(units[member], "")) for member in one.members),
        )
        for number, one in enumerate(found)
    }
    kept, shown = keep_proposals(call, [_narrowed(one, parts) for one in proposals], before)
    if shown:
        now, targets = call.engine.now(), {target for one in proposals for target in one.targets}
        call.engine.events.emit(
            DomainsChanged(
                timestamp=now, scopes=None, action="propose", domains=tuple(sorted(targets)), moved=0
            )
        )
    continued = matched(before, [one.members for one in new])
    return DiscoveryRun(
        memories=corpus.memories,
        clusters=len(discovery.communities),
        applied=False,
        domains=tuple(sorted(continued)),
        unclassified=sum(not unit[0].domains for unit in corpus.members),
        proposals=kept,
        shown=shown,
    )


def _found_domains(corpus: Corpus, discovery: Discovery) -> list[FoundDomain]:
    return [
        FoundDomain(
            members=frozenset(corpus.names[row] for row in one.rows.tolist()),
            confidence=round(clamped(one.confidence), 4),
            stable=one.stable,
        )
        for one in discovery.communities
    ]


def _narrowed(
    proposal: DomainProposal, parts: Mapping[int, ProposalPart]
) -> tuple[DomainProposal, list[ProposalPart]]:
    """A proposal with its parts: of a split only members of the domain that is split."""
    chosen = [parts[number] for number in proposal.parts]
    if proposal.kind == "split":
        (parent,) = proposal.targets
        chosen = [
            replace(part, members=tuple(one for one in part.members if one[1] == parent)) for part in chosen
        ]
    return proposal, chosen

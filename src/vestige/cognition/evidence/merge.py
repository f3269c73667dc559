"""Merging memories: one text that leaves out nothing any of them says, and says nothing twice."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import combinations
from typing import Any

from vestige.cognition.evidence.duplicates import apart, comparable, unfit
from vestige.cognition.gate.relation import repeats, stated_at
from vestige.cognition.text.analyser import fingerprint
from vestige.core.models import Memory
from vestige.core.origin import lowest
from vestige.core.patterns import lazy_pattern

Restates = Callable[[str, str], bool]
"""Whether a sentence says nothing that another one does not say."""
MERGED_FROM = "merged_from"  # The metadata key for the ids of a merged memory's parts.

_BLOCK = lazy_pattern(r"\n[^\S\n]*\n\s*")
_SENTENCE = lazy_pattern(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[^\sa-z])|(?<=[。！？])")
_ABBREVIATION = lazy_pattern(r"(?:^|\W)(?:\w|\w\.\w|[Cc]f|[Vv]s|[Ee]tc|[Nn]o|[DM]r|Mrs|Ms|St|Prof)\.$")
_FENCE = "```"


def refusals(parts: Sequence[Memory], now: datetime) -> list[str]:
    """Every reason why these must not be merged."""
    alone = [reason for part in parts if (reason := unfit(part, now))]
    return alone or [reason for pair in combinations(parts, 2) if (reason := apart(*pair))]


def unchecked(parts: Sequence[Memory]) -> bool:
    """Whether some are too long to be checked for contradictions, and not the same text."""
    return any(
        not comparable(one, other) and fingerprint(one.content) != fingerprint(other.content)
        for one, other in combinations(parts, 2)
    )


def since(memory: Memory) -> datetime:
    """When a memory's statement begins, at the latest when it was stored."""
    return memory.valid_from or min(stated_at(memory), memory.created_at)


def in_order(parts: Iterable[Memory]) -> list[Memory]:
    """The leading memory first: the longest, then the latest. The others by time."""
    by_time = sorted(parts, key=lambda one: (since(one), one.created_at, one.id))
    lead = max(reversed(by_time), key=lambda one: len(one.content))
    return [lead, *(one for one in by_time if one is not lead)]


def join(parts: Sequence[Memory], *, memory_id: str, now: datetime, restates: Restates = repeats) -> Memory:
    """The merged memory of its parts (`in_order`). It is valid from when the latest part begins, so at any
    time either the parts are true or it is. `restates` says whether a sentence says no more than another."""
    lead, (content, reworded) = parts[0], joined_text([part.content for part in parts], restates)
    latest = max(parts, key=lambda one: (since(one), one.created_at, one.id))
    return Memory(
        id=memory_id,
        content=content,
        created_at=now,
        updated_at=now,
        node_type=latest.node_type,
        tags=_united(part.tags for part in parts),
        scope=lead.scope,
        source=_common([part.source for part in parts]),
        author=_common([part.author for part in parts]),
        agent_id=_common([part.agent_id for part in parts]),
        session_id=_common([part.session_id for part in parts]),
        occurred_at=next((part.occurred_at for part in parts if part.occurred_at), None),
        valid_from=since(latest),
        valid_until=lead.valid_until,
        phrasings=_phrasings(content, parts, reworded),
        domains=_united(part.domains for part in parts),
        domain_scores=_highest(parts),
        metadata=_metadata(parts),
        origin=lowest(part.origin for part in parts),
    )


def plan_id(parts: Sequence[Memory], merged: Memory) -> str:
    """A digest of the parts and of the result."""
    facts: tuple[object, ...] = (
        sorted((part.id, part.revision) for part in parts),
        merged.content,
        merged.phrasings,
        merged.tags,
        merged.valid_from,
        merged.valid_until,
    )
    return blake2b(repr(facts).encode(), digest_size=12).hexdigest()


def joined_text(texts: Sequence[str], restates: Restates = repeats) -> tuple[str, tuple[str, ...]]:
    """One text of several, and the sentences that it leaves out because it says them in other words.

    It is the first text, and from each other one, as a paragraph, what no text before it says. A sentence
    that says all of an earlier one and more takes its place.
    """
    kept = [texts[0]]
    said = _sentences_of(texts[0])
    known = {fingerprint(unit) for block in _blocks(texts[0]) for unit in block} | {fingerprint(texts[0])}
    reworded: list[str] = []
    for text in texts[1:]:
        if fingerprint(text) in known:
            continue
        blocks = _blocks(text)
        new = [[unit for unit in block if fingerprint(unit) not in known] for block in blocks]
        known.update((fingerprint(text), *(fingerprint(unit) for block in new for unit in block)))
        fresh = [
            [unit for unit in block if not _is_said(unit, said, kept, reworded, restates)] for block in new
        ]
        said += [unit for block in fresh for unit in block if "\n" not in unit]
        # Untouched where nothing is left out of it.
        kept.append(text if fresh == blocks else "\n\n".join(" ".join(block) for block in fresh if block))
    return "\n\n".join(text for text in kept if text), tuple(reworded)


def _is_said(unit: str, said: list[str], kept: list[str], reworded: list[str], restates: Restates) -> bool:
    """Whether what a sentence says is in the kept texts, or is now, because it took the place of another."""
    if "\n" in unit:
        return False
    if any(restates(unit, other) for other in said):
        reworded.append(unit)
        return True
    shorter = next((other for other in said if repeats(other, unit)), None)
    if shorter is None or sum(text.count(shorter) for text in kept) > 1:
        return False  # which of the places is the sentence itself, and not a part of another, is unknown
    kept[:] = [text.replace(shorter, unit, 1) for text in kept]
    said[said.index(shorter)] = unit
    reworded.append(shorter)
    return True


def sentences_to_compare(texts: Iterable[str]) -> list[str]:
    """The sentences of some texts, each once: what `joined_text` compares by meaning."""
    return list(dict.fromkeys(unit for text in texts for unit in _sentences_of(text)))


def _sentences_of(text: str) -> list[str]:
    return [unit for block in _blocks(text) for unit in block if "\n" not in unit]


def _blocks(text: str) -> list[list[str]]:
    """The units of a text: sentences; a block of several lines, and code, stay whole."""
    if _FENCE in text:
        return [[text]]
    blocks = (block.strip() for block in _BLOCK.split(text))
    return [_sentences(block) if "\n" not in block else [block] for block in blocks if block]


def _sentences(line: str) -> list[str]:
    units: list[str] = []
    start = 0
    for border in _SENTENCE.finditer(line):
        if not _ABBREVIATION.search(line[start : border.start()]):
            units.append(line[start : border.end()].strip())
            start = border.end()
    return [unit for unit in (*units, line[start:].strip()) if unit]


def _united(several: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for some in several for one in some))


def _common(values: Sequence[str | None]) -> str | None:
    """The value that all parts share, or None."""
    return values[0] if len(set(values)) == 1 else None


def _phrasings(content: str, parts: Sequence[Memory], reworded: Sequence[str]) -> tuple[str, ...]:
    """The other wordings of all parts, and what the merged text says in other words, each once."""
    found = {fingerprint(content): content}
    for wording in (*(wording for part in parts for wording in part.phrasings), *reworded):
        found.setdefault(fingerprint(wording), wording)
    return tuple(found.values())[1:]


def _highest(parts: Sequence[Memory]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for part in parts:
        for domain, score in part.domain_scores.items():
            scores[domain] = max(score, scores.get(domain, score))
    return scores


def _metadata(parts: Sequence[Memory]) -> dict[str, Any]:  # Any: metadata is any JSON
    """The metadata of all parts, the latest taking precedence, with their ids."""
    facts: dict[str, Any] = {}
    for part in sorted(parts, key=lambda one: (since(one), one.created_at, one.id)):
        facts |= part.metadata
    return facts | {MERGED_FROM: [part.id for part in parts]}

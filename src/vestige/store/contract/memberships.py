"""The part of the domains of a memory that belongs to one installation: those it found, with their scores.

The id separates found domains from others, so that every store decides this without a look at documents. A
merge takes the hand-made part from the last change anywhere, and leaves the found one as it is here.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

FOUND = lazy_pattern(r"topic-[0-9a-f]{8}(-[0-9]+)?")
MEMBERSHIP = frozenset({"domains", "domain_scores"})
FOUND_DOMAINS, SCORES = "found_domains", "scores"
"""What the event of a revision names instead of `MEMBERSHIP`, where no hand-made domain changed: found
domains and their scores, and the scores of hand-made ones."""
MOVES = MEMBERSHIP | {FOUND_DOMAINS, SCORES}
UNLOGGED = frozenset({"revision", "updated_at"})
"""Fields that change with every revision."""


def is_found(name: str) -> bool:
    """Whether this is the id of a domain that was found, not made by hand."""
    return FOUND.fullmatch(name) is not None


def hand_made(domains: Iterable[str]) -> tuple[str, ...]:
    """These domains without found ones."""
    return tuple(name for name in domains if not is_found(name))


def has_local_part(memory: Memory) -> bool:
    """Whether a memory has found domains, or scores of them."""
    return any(map(is_found, (*memory.domains, *memory.domain_scores)))


def without_local_part(memory: Memory) -> Memory:
    return replace(memory, domains=hand_made(memory.domains), domain_scores=_scores(memory, found=False))


def revised_fields(old: Memory, new: Memory) -> list[str]:
    """The fields that the event of a revision names."""
    names = {field.name for field in fields(Memory)} - UNLOGGED
    changed = {name for name in names if getattr(old, name) != getattr(new, name)}
    if changed & MEMBERSHIP and hand_made(old.domains) == hand_made(new.domains):
        found = old.domains != new.domains or _scores(old, found=True) != _scores(new, found=True)
        scores = _scores(old, found=False) != _scores(new, found=False)
        changed -= MEMBERSHIP
        changed |= {name for name, is_so in ((FOUND_DOMAINS, found), (SCORES, scores)) if is_so}
    return sorted(changed)


def revised_membership(
    before: Memory, state: Memory, changed: Collection[str], *, here: bool
) -> Mapping[str, Any]:
    """The domains and scores after a revision with this `state`. `here`: this store knows the revision, so
    its found part counts; else that of the state before stays."""
    if MOVES.isdisjoint(changed):
        return {}
    whole = not MEMBERSHIP.isdisjoint(changed)
    by_hand = state if whole else before
    scored = state if whole or SCORES in changed else before
    found = state if here and (whole or FOUND_DOMAINS in changed) else before
    domains = next(
        (one.domains for one in (state, before) if _has_parts(one, by_hand, found)),
        (*hand_made(by_hand.domains), *filter(is_found, found.domains)),
    )
    return {"domains": domains, "domain_scores": _scores(scored, found=False) | _scores(found, found=True)}


def _has_parts(one: Memory, by_hand: Memory, found: Memory) -> bool:
    """Whether a state has these parts already; then their order counts too."""
    own = tuple(filter(is_found, one.domains)) == tuple(filter(is_found, found.domains))
    return own and hand_made(one.domains) == hand_made(by_hand.domains)


def _scores(memory: Memory, *, found: bool) -> dict[str, float]:
    return {name: score for name, score in memory.domain_scores.items() if is_found(name) == found}

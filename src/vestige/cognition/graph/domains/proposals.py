"""Proposals: how domains found anew differ from those in use. Nothing here changes a domain.

Old and new are matched one to one by the members they share, the largest overlap first; what is left over is
a split, a merge, a new domain, or one to retire.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from vestige.core.lazy_dataclass import dataclass

Kind = Literal["split", "merge", "new", "retire"]

SPLIT_SHARE = 0.25
"""The share of an old domain that each of two new ones must get."""
MERGE_SHARE = 0.6
"""The share of each of two old domains that one new one must get."""
NEW_OVERLAP = 0.3
"""A new domain shares less than this with every old one."""
SLEEP, WAKING = 5, 0.15
"""The discoveries for which a rejected proposal sleeps, and the rise of confidence that wakes it earlier."""
SHOWN_AFTER = 2
"""The discoveries in a row in which a proposal must appear to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDomain:
    """A community that was found: its members, its confidence, and whether it reappears in samples."""

    members: frozenset[str]
    confidence: float
    stable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainProposal:
    """A change of domains. `parts` are the found communities it is about, by number, `targets` the ids of old
    domains. Of a split, the first part keeps the old id; of a merge, the first target."""

    kind: Kind
    targets: tuple[str, ...]
    parts: tuple[int, ...]
    confidence: float


def matched(old: Mapping[str, AbstractSet[str]], new: Sequence[AbstractSet[str]]) -> dict[str, int]:
    """The new domain that each old one continues as, one to one: the pair with the largest overlap first
    (shared members by the smaller size), then with more shared members, then by id."""
    pairs = sorted(
        (-shared / min(len(members), len(found)), -shared, name, number)
        for name, members in old.items()
        for number, found in enumerate(new)
        if (shared := len(members & found))
    )
    taken: dict[str, int] = {}
    used: set[int] = set()
    for _, _, name, number in pairs:
        if name not in taken and number not in used:
            taken[name] = number
            used.add(number)
    return taken


def propose(
    old: Mapping[str, AbstractSet[str]], new: Sequence[FoundDomain], *, least_size: int
) -> list[DomainProposal]:
    """The differences, most confident first. `old` has the members of each domain that took part."""
    found = [*_splits(old, new, least_size), *_merges(old, new), *_new(old, new), *_retired(old, least_size)]
    return sorted(found, key=lambda one: (-one.confidence, one.kind, one.targets, one.parts))


def _splits(
    old: Mapping[str, AbstractSet[str]], new: Sequence[FoundDomain], least_size: int
) -> list[DomainProposal]:
    proposals = []
    for name, members in sorted(old.items()):
        shares = sorted(
            ((len(members & one.members), -number) for number, one in enumerate(new) if one.stable),
            reverse=True,
        )
        parts = [
            -number for shared, number in shares if shared >= max(least_size, SPLIT_SHARE * len(members))
        ]
        if len(parts) >= 2:
            least = min(new[part].confidence for part in parts)
            proposals.append(
                DomainProposal(kind="split", targets=(name,), parts=tuple(parts), confidence=least)
            )
    return proposals


def _merges(old: Mapping[str, AbstractSet[str]], new: Sequence[FoundDomain]) -> list[DomainProposal]:
    proposals = []
    for number, one in enumerate(new):
        joined = sorted(
            (
                (-len(members & one.members), name)
                for name, members in old.items()
                if members and len(members & one.members) >= MERGE_SHARE * len(members)
            )
        )
        if len(joined) >= 2 and one.stable:
            proposals.append(
                DomainProposal(
                    kind="merge",
                    targets=tuple(name for _, name in joined),
                    parts=(number,),
                    confidence=one.confidence,
                )
            )
    return proposals


def _new(old: Mapping[str, AbstractSet[str]], new: Sequence[FoundDomain]) -> list[DomainProposal]:
    return [
        DomainProposal(kind="new", targets=(), parts=(number,), confidence=one.confidence)
        for number, one in enumerate(new)
        if one.stable
        and all(len(members & one.members) < NEW_OVERLAP * len(one.members) for members in old.values())
    ]


def _retired(old: Mapping[str, AbstractSet[str]], least_size: int) -> list[DomainProposal]:
    return [
        DomainProposal(kind="retire", targets=(name,), parts=(), confidence=1.0)
        for name, members in sorted(old.items())
        if len(members) < least_size
    ]

"""Deduplication of ranked hits: duplicates are folded into the best one, and the top few are diversified."""

from collections.abc import Collection, Sequence

from vestige.cognition.text.analyser import overlap
from vestige.core.lazy_dataclass import dataclass

TOP_FEW = 5
ALIKE = 0.8
"""The share of common terms (Jaccard) from which two texts are much the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedText:
    """A text for comparison. A turn of a conversation never equals another: "yes" is said often."""

    terms: frozenset[str]
    is_turn: bool


def fold_duplicates(found: Sequence[str | None]) -> list[tuple[int, ...]]:
    """Indices of the remaining hits, best first, each with the later ones of the same fingerprint
    (`cognition.text.analyser.fingerprint`); None equals nothing."""
    groups: list[list[int]] = []
    first: dict[str, int] = {}
    for at, one in enumerate(found):
        leader = None if one is None else first.setdefault(one, len(groups))
        if leader is None or leader == len(groups):
            groups.append([at])
        else:
            groups[leader].append(at)
    return [tuple(group) for group in groups]


def spread_out(found: Sequence[ComparedText], rivals: Collection[frozenset[int]] = frozenset()) -> list[int]:
    """The order of display: among the top few, a hit much like a better one moves behind the rest. Rivals,
    given as pairs of indices, stay side by side, since rivals are alike by definition."""
    kept: list[int] = []
    waiting: list[int] = []
    for at, one in enumerate(found):
        crowded = len(kept) < TOP_FEW and any(
            _alike(one, found[other]) and frozenset((at, other)) not in rivals for other in kept
        )
        (waiting if crowded else kept).append(at)
    return kept[:TOP_FEW] + sorted([*waiting, *kept[TOP_FEW:]])


def _alike(one: ComparedText, other: ComparedText) -> bool:
    if one.is_turn or other.is_turn or not one.terms:
        return False
    return overlap(one.terms, other.terms) >= ALIKE

"""Prediction-error gating: what a new text is to what is already known.

The decision takes two signals, similarity and conflict, and conflict is looked at first: nothing
is reinforced by its own contradiction. Text that is not identical never replaces or joins another
record by itself. Thresholds on cosine are the reference's (.92, .75, .70).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vestige.cognition.conflict import (
    Conflict,
    announces_correction,
    content_words,
    find_conflict,
    restates,
    shares_subject,
)

SAME = 0.92
"""From here on a text without conflict says the same thing."""
CLOSE = 0.75
"""From here on a text is about the same thing."""
CORRECTABLE = 0.70
"""From here on a text can correct another."""
VALUE_CHANGE = 0.80
"""A bare change of a number supersedes only from here on."""
DEMOTED_RETRIEVAL = 0.3
"""Below this a memory was judged wrong or useless, and a close newcomer takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A known memory near the new text; `content` is the wording of it that is near.

    `pinned`, `threaded`, `partial` (a piece of something longer) and `later` (true from a later time
    on than the new text) each protect it from being changed. What happened on another occasion can be
    corrected, but is not the same.
    """

    memory_id: str
    content: str
    similarity: float
    retrieval: float = 1.0
    pinned: bool = False
    threaded: bool = False
    partial: bool = False
    later: bool = False
    same_occasion: bool = True

    @property
    def protected(self) -> bool:
        """Whether it may only be linked to."""
        return self.pinned or self.threaded or self.partial or self.later


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new text, with what is known of its place. `identical_id` and `place_id` are the memories
    that have the same normal form, or the same source and position; `nearest` is the highest
    similarity to anything known."""

    content: str
    threaded: bool = False
    force_create: bool = False
    identical_id: str | None = None
    nearest: float | None = None
    place_id: str | None = None
    place_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned:
    """Why: the reason in words, and both signals."""

    reason: str
    similarity: float | None = None
    conflict: Conflict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Reasoned):
    """Keep it as a new memory, linked to `related` and marked against `contradicts`."""

    related: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Reasoned):
    """Make it the next revision of a memory."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce(Reasoned):
    """Strengthen a memory; other words are kept as a further phrasing."""

    memory_id: str
    identical: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede(Reasoned):
    """Keep it as a new memory that ends the validity of an old one."""

    memory_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Reasoned):
    """Keep it as a new memory, linked to several it could be merged with by choice."""

    memory_ids: tuple[str, ...]


Decision = Create | Update | Reinforce | Supersede | Merge


def decide(proposal: Proposal, rivals: Sequence[Rival]) -> Decision:
    """What the proposal is. Rivals come most similar first; those below CORRECTABLE do not matter."""
    if proposal.force_create:
        return Create(reason="Asked to create.")
    if proposal.identical_id:
        return Reinforce(
            memory_id=proposal.identical_id, identical=True, similarity=1.0, reason="Says exactly the same."
        )
    if proposal.threaded:
        return Create(reason="Part of a thread: every turn is kept.")
    if proposal.place_id and not proposal.place_pinned:
        return Update(memory_id=proposal.place_id, reason="Same source and position, new text.")
    near = [rival for rival in rivals if rival.similarity >= CORRECTABLE]
    if not near:
        return Create(similarity=proposal.nearest, reason="Nothing like it is known.")
    decision = _beside(proposal, near)
    if isinstance(decision, Create) and near[0].memory_id not in decision.contradicts:
        # The nearest one may be protected and was passed over; a disagreement with it counts all the same.
        conflict = find_conflict(proposal.content, near[0].content) if near[0].protected else None
        if conflict and conflict.kind != "slot":
            return replace(decision, contradicts=(*decision.contradicts, near[0].memory_id))
    return decision


def _beside(proposal: Proposal, near: list[Rival]) -> Decision:
    # A protected rival must not stand in the way of the plain fact behind it.
    best = next((rival for rival in near if not rival.protected), near[0])
    same_words = _plain(best.content) == _plain(proposal.content)
    if same_words and not best.same_occasion:
        return Create(similarity=1.0, related=(best.memory_id,), reason="The same on another occasion.")
    if same_words and not best.protected:
        return Reinforce(
            memory_id=best.memory_id, identical=True, similarity=1.0, reason="Says exactly the same."
        )
    if best.similarity >= CLOSE and not best.protected and _extends(proposal.content, best.content):
        return Update(
            memory_id=best.memory_id,
            similarity=best.similarity,
            reason="Repeats the known text and adds to it.",
        )
    conflict = find_conflict(proposal.content, best.content)
    if conflict:
        return _conflicting(best, conflict)
    if best.similarity >= CLOSE and not best.protected:
        decision = _agreeing(proposal, best)
        if decision:
            return decision
    close = tuple(rival.memory_id for rival in near if rival.similarity >= CLOSE)
    if len(close) > 1 and not best.protected:
        return Merge(
            memory_ids=close,
            similarity=best.similarity,
            reason=f"New, but close to {len(close)} memories it could be merged with.",
        )
    return Create(similarity=best.similarity, related=close[:1], reason="New, close to what is known.")


def _conflicting(best: Rival, conflict: Conflict) -> Decision:
    decisive = (
        conflict.corrects
        or (conflict.kind == "polarity" and conflict.exact and best.similarity >= CLOSE)
        or (conflict.kind == "value" and best.similarity >= VALUE_CHANGE)
    )
    if decisive and not best.protected:
        return Supersede(
            memory_id=best.memory_id,
            similarity=best.similarity,
            conflict=conflict,
            reason=f"Corrects what was known ({conflict.kind}: {conflict.detail}).",
        )
    if conflict.kind == "slot":
        # "Ada likes tea" and "Ada likes coffee" can both be true.
        return Create(
            similarity=best.similarity,
            conflict=conflict,
            related=(best.memory_id,),
            reason=f"Differs from what is known in one value ({conflict.detail}).",
        )
    why = _protection(best) if decisive else "which of them is right is not clear"
    return Create(
        similarity=best.similarity,
        conflict=conflict,
        contradicts=(best.memory_id,),
        reason=f"Disagrees with what is known ({conflict.kind}: {conflict.detail}); {why}.",
    )


def _protection(best: Rival) -> str:
    if best.later:
        return "that is true from a later time on"
    return "the other is pinned" if best.pinned else "the other is part of something longer"


def _agreeing(proposal: Proposal, best: Rival) -> Decision | None:
    if _contains(proposal.content, best.content):
        return Update(
            memory_id=best.memory_id,
            similarity=best.similarity,
            reason="Contains the known text and adds to it.",
        )
    if announces_correction(proposal.content, best.content) and shares_subject(
        proposal.content, best.content
    ):
        return Supersede(
            memory_id=best.memory_id,
            similarity=best.similarity,
            reason="Says that it corrects something this close.",
        )
    if best.similarity >= SAME and best.same_occasion and restates(proposal.content, best.content):
        return Reinforce(
            memory_id=best.memory_id,
            identical=False,
            similarity=best.similarity,
            reason="Says the same in other words.",
        )
    if best.retrieval < DEMOTED_RETRIEVAL:
        return Supersede(
            memory_id=best.memory_id,
            similarity=best.similarity,
            reason="Takes the place of a demoted memory.",
        )
    return None


def _extends(longer: str, shorter: str) -> bool:
    """Whether the new text is the old one and a further clause, which cannot turn it around.

    "Use tabs" inside "Do not use tabs" is not, nor is "3" in "3,000" or a bare ": never".
    """
    known = _plain(shorter)
    if not _plain(longer).startswith(known):
        return False
    clause = _CLAUSE.match(_plain(longer)[len(known) :])
    if clause is None or announces_correction(clause.group(1), shorter):
        return False
    return len(content_words(clause.group(1))) >= LEAST_CLAUSE


_CLAUSE = re.compile(r"[,;:.(–—]+\s+(.+)", re.DOTALL)
LEAST_CLAUSE = 2
"""Content words that make a clause; a lone "never" is a change of mind."""


def _contains(longer: str, shorter: str) -> bool:
    """Whether the old text stands in the new one as a sentence of its own."""
    text, known = _plain(longer), _plain(shorter)
    at = text.find(known)
    while at >= 0:
        before, after = text[:at].rstrip(), text[at + len(known) :]
        begins = not before or before[-1] in _SENTENCE_ENDS
        # "14" is not a sentence in "14.2".
        if begins and (not after or (after[0] in _SENTENCE_ENDS and after[1:2] in ("", " "))):
            return True
        at = text.find(known, at + 1)
    return False


_SENTENCE_ENDS = ".;!?"


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")

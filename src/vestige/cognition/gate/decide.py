"""Prediction-error gating: whether a new text is created, updates, reinforces, supersedes or merges.

The decision takes similarity, conflict and, if there is a pair model, its scores. Conflict comes before
similarity: nothing is reinforced by its own contradiction. The rules and the model err on different pairs, so
each may veto the other, and the model proposes what rules do not see. Text that is not identical never
replaces or joins another memory by itself. Thresholds are measured (docs/concepts/gate.md).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from vestige.cognition.english.words import words_of
from vestige.cognition.gate.change_words import reports_change, retracts, states_past
from vestige.cognition.gate.conflict import (
    StatementConflict,
    find_conflict,
    in_common,
    is_indefinite,
    is_sibling,
    own_subject_words,
    statement,
)
from vestige.cognition.gate.paraphrase import Likeness, could_restate, restates, same_words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.pair_model import RelationScores
from vestige.core.patterns import lazy_pattern

CLOSE = 0.75  # The similarity from which a text is about the same thing.
SAME_THING = 0.6  # The similarity from which a reported change or correction is about this memory.
RELATED = 0.5  # The similarity from which texts without a common word can be about one thing.
CORRECTABLE = 0.4  # The similarity from which a text can correct another …
DISTANT = 0.2  # … and from which it can correct the nearest one, if that stands out: …
MARGIN = 0.08  # … the next one is less similar by this much.
COMPARED = DISTANT - MARGIN  # The similarity from which the gate needs to know of a memory.
WEIGHT = {"polarity": 2, "value": 2, "correction": 1, "state": 0, "slot": 0}
"""The precedence of conflicts by kind."""
HEAVIEST = max(WEIGHT.values())
CORRECTS = 0.7  # The probability from which the pair model alone supersedes, …
AGREED = 0.5  # … if the rules see a conflict too, …
SURE = 0.8  # … if they see none in texts with many words in common, …
REMOTE = 0.9  # … if the texts are less similar than CORRECTABLE, …
SLOT = 0.9  # … or if they say that both values can be true, or the texts have no word in common.
ALIKE = 0.5  # The share of common content words from which the rules see what differs.
SEEN = 0.8  # The probability from which the model marks a conflict, …
HEDGED = 0.9  # … and from which it sees that the new text is not sure.
VETO = {"polarity": 0.85, "value": 0.9, "correction": 0.8, "state": 0.75, "slot": 1.1}
"""The probability that the old text stands, from which the model vetoes a conflict of each kind."""
SAME, NOT_SAME, OPPOSED, DIFFERENT = 0.6, 0.03, 0.6, 0.8
"""The probability from which the model agrees that two texts say the same; that below which it denies it;
and those from which it denies it because they conflict, or are about different things."""
DEMOTED_RETRIEVAL = 0.3
"""Below this level a memory was judged wrong or useless, and a close newcomer replaces it."""


def _unknown() -> Likeness | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A known memory near the new text; `content` is its wording that is near.

    `pinned`, `threaded`, `said` (a turn of a conversation by its form), `partial` (a piece of something
    longer) and `later` (true from a later time on than the new text) each protect it from being changed. An
    event on another occasion can be corrected, but is not the same. `other_context`: it has other
    tags, so that the new text may be about another thing. `other_scope`: it can be corrected, but what
    is said again is kept in its own scope. `likeness` compares the words of the new text with those of
    `content`, when it is asked for, and `relation` is what the pair model says of the two, if there is one.
    `stands_out`: nothing else that is known is nearly as near; `decide` finds that out.
    """

    memory_id: str
    content: str
    similarity: float
    retrieval: float = 1.0
    pinned: bool = False
    threaded: bool = False
    said: bool = False
    partial: bool = False
    later: bool = False
    same_occasion: bool = True
    other_context: bool = False
    other_scope: bool = False
    likeness: "Callable[[], Likeness | None]" = _unknown
    relation: RelationScores | None = None
    stands_out: bool = False

    @property
    def protected(self) -> bool:
        """Whether it may only be linked to."""
        return self.pinned or self.threaded or self.said or self.partial or self.later


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInput:
    """A new text and its place. `identical_id` and `place_id` are the memories with the same normal form, or
    the same source and position; `nearest` is the highest similarity to anything known."""

    content: str
    threaded: bool = False
    said: bool = False
    force_create: bool = False
    identical_id: str | None = None
    nearest: float | None = None
    place_id: str | None = None
    place_pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned:
    """The reason in words, and both signals."""

    reason: str
    similarity: float | None = None
    conflict: StatementConflict | None = None


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
Read = Callable[[Rival], Rival]
"""Completes a rival by what the models say of it and the new text, which takes a few milliseconds."""


def rival_of(decision: Decision) -> str | None:
    """The memory that a decision is about, if any."""
    match decision:
        case Create(related=related, contradicts=contradicts):
            return next(iter((*contradicts, *related)), None)
        case Merge(memory_ids=others):
            return others[0]
        case Update(memory_id=memory_id) | Reinforce(memory_id=memory_id) | Supersede(memory_id=memory_id):
            return memory_id
    assert_never(decision)


def decide(proposal: GateInput, rivals: Sequence[Rival], read: Read = lambda rival: rival) -> Decision:
    """The decision on a new text. Rivals come most similar first; of those below CORRECTABLE only the first
    can matter. `read` is called for those alone on which the decision depends."""
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
    if proposal.said:
        return Create(reason="Said in a talk: kept as it was said.")
    rivals = _with_margin(rivals)
    if rivals and DISTANT <= rivals[0].similarity < CORRECTABLE:
        return _remote(proposal, rivals[0], read)
    near = [rival for rival in rivals if rival.similarity >= CORRECTABLE]
    same = next((decision for rival in near if (decision := _same(proposal, rival))), None)
    if same:
        return same
    # A protected rival must not hide the plain fact behind it.
    free = [rival for rival in near if not rival.protected]
    for judge in (_first_extended, _most_corrected, _first_restated):
        decision = judge(proposal, free, read)
        if decision:
            return decision
    return _beside(proposal, [rival if rival.protected else read(rival) for rival in near])


def _with_margin(rivals: Sequence[Rival]) -> list[Rival]:
    """The rivals; the first one stands out if the next one is not nearly as near."""
    if not rivals:
        return []
    margin = rivals[0].similarity - max((rival.similarity for rival in rivals[1:]), default=0.0)
    return [replace(rivals[0], stands_out=margin >= MARGIN), *rivals[1:]]


def _remote(proposal: GateInput, rival: Rival, read: Read) -> Decision:
    """The decision on a text with nothing near. Two notes about one thing can have little in common: "The
    parser has no tests", "Forty cases guard the parser as of today"."""
    if rival.stands_out and not rival.protected:
        known = read(rival)
        if known.relation is not None and known.relation.corrects >= REMOTE:
            return _corrected(proposal, known) or _beside(proposal, [])
    return _beside(proposal, [])


def _first_extended(proposal: GateInput, rivals: Sequence[Rival], read: Read) -> Decision | None:
    return next((found for rival in rivals if (found := _extended(proposal, rival, read))), None)


def _first_restated(proposal: GateInput, rivals: Sequence[Rival], read: Read) -> Decision | None:
    return next((found for rival in rivals if (found := _restated(proposal, read(rival)))), None)


def _most_corrected(proposal: GateInput, rivals: Sequence[Rival], read: Read) -> Decision | None:
    """The correction of the most weight, of the nearest rival among equals: a denied or changed statement is
    meant rather than one that is only near. A rival whose correction could not weigh more is not read."""
    best, weight = None, -1
    for rival in rivals:
        if weight == HEAVIEST or _most_weight(proposal, rival) <= weight:
            continue
        found = _corrected(proposal, read(rival))
        if found is not None and _weight(found.conflict) > weight:
            best, weight = found, _weight(found.conflict)
    return best


def _most_weight(proposal: GateInput, rival: Rival) -> int:
    """The most weight of a correction: that of the conflict the rules see, or that only the pair model
    sees."""
    return max(WEIGHT["correction"], _weight(_found(proposal.content, rival)))


def _weight(conflict: StatementConflict | None) -> int:
    return WEIGHT[conflict.kind] if conflict else 0


def is_compared(content: str, rivals: Sequence[Rival], rival: Rival) -> bool:
    """Whether the pair model compares a rival with a text: the nearest of these, and those of them that the
    rules alone would supersede. Of rivals further away it would find more wrong corrections than right
    ones."""
    names = [one.memory_id for one in rivals]
    if rival.memory_id not in names:
        return False
    if rival.memory_id == names[0]:
        return True
    found = _found(content, rival)
    return found is not None and found.decisive


def _found(content: str, rival: Rival) -> StatementConflict | None:
    return find_conflict(content, rival.content, close=rival.similarity >= SAME_THING)


def _conflict(proposal: GateInput, rival: Rival) -> StatementConflict | None:
    """The conflict that the rules find, unless the model vetoes it; else the one that the model sees."""
    found = _found(proposal.content, rival)
    if found is not None and found.decisive and _is_history(proposal.content, rival.content):
        return None  # "Tom used to own billing" says nothing of who owns it now
    scores = rival.relation
    if scores is None:
        return found
    if scores.unclear >= HEDGED:
        return _learned("the new text is not sure", scores.unclear)
    decisive = found is not None and found.decisive
    if found is not None and decisive:
        # "Written in Rust, not Go" repeats all of "Written in Go" and rejects a part: there is no doubt.
        repeats = statement(rival.content).content_keys <= statement(proposal.content).content_keys
        if scores.other + scores.elaborates < VETO[found.kind] or (found.kind == "correction" and repeats):
            return found
    indefinite = is_indefinite(words_of(rival.content))
    if _is_history(proposal.content, rival.content):
        return None if decisive else found
    sibling = rival.other_context or is_sibling(proposal.content, rival.content)
    sure = not sibling and scores.corrects >= max(AGREED, SLOT if indefinite else 0.0)
    if sure and scores.corrects >= _enough(proposal, rival, found):
        return _learned("the new text makes the old one untrue", scores.corrects, corrects=True)
    if not (rival.other_context or indefinite) and max(scores.corrects, scores.unclear) >= SEEN:
        return _learned("the two may contradict each other", max(scores.corrects, scores.unclear))
    return None if decisive else found


def _enough(proposal: GateInput, rival: Rival, found: StatementConflict | None) -> float:
    """The probability from which the model alone supersedes, at least AGREED. Where two texts have many words
    in common, the rules see what differs, and the model must be almost sure against them."""
    ours, theirs = statement(proposal.content), statement(rival.content)
    if ours.content_keys == theirs.content_keys:
        return 1.0
    if found is not None:
        return SLOT if found.kind == "slot" else AGREED
    if ours.content_keys.isdisjoint(theirs.content_keys) and rival.similarity < SAME_THING:
        # about nothing that both name
        return SLOT if rival.similarity >= RELATED or rival.stands_out else 1.0
    if all(own_subject_words(proposal.content, rival.content)):
        return SURE  # "Grandma's birthday", "Grandpa's birthday"
    return SURE if in_common(ours, theirs) >= ALIKE or _says_same(proposal, rival) else CORRECTS


def _is_history(new: str, old: str) -> bool:
    """Whether a text says only what was before, and not that what the old one says is over."""
    return states_past(new) and not statement(old).content_keys <= statement(new).content_keys


def _learned(meaning: str, sure: float, *, corrects: bool = False) -> StatementConflict:
    detail = f"{meaning}, the pair model is {100 * sure:.0f} % sure"
    return StatementConflict(kind="correction", detail=detail, corrects=corrects, exact=False)


def _same(proposal: GateInput, rival: Rival) -> Decision | None:
    kept_apart = (
        rival.threaded or rival.partial or rival.later or rival.other_scope or rival.similarity < CLOSE
    )
    if kept_apart or not same_words(proposal.content, rival.content):
        return None
    if not rival.same_occasion:
        return Create(similarity=1.0, related=(rival.memory_id,), reason="The same on another occasion.")
    return Reinforce(
        memory_id=rival.memory_id, identical=True, similarity=1.0, reason="Says exactly the same."
    )


def _extended(proposal: GateInput, rival: Rival, read: Read) -> Decision | None:
    if rival.similarity < CLOSE or rival.other_scope:
        return None
    if _extends(proposal.content, rival.content):
        reason = "Repeats the known text and adds to it."
    elif _contains(proposal.content, rival.content) and _conflict(proposal, read(rival)) is None:
        reason = "Contains the known text and adds to it."
    else:
        return None
    return Update(memory_id=rival.memory_id, similarity=rival.similarity, reason=reason)


def _corrected(proposal: GateInput, rival: Rival) -> Supersede | None:
    conflict = _conflict(proposal, rival)
    if conflict is None or not conflict.decisive:
        return None
    if conflict.kind == "value" and not conflict.corrects and _agrees(proposal, rival):
        return None  # another word for the same value
    return Supersede(
        memory_id=rival.memory_id,
        similarity=rival.similarity,
        conflict=conflict,
        reason=f"Corrects what was known ({conflict.kind}: {conflict.detail}).",
    )


def _agrees(proposal: GateInput, rival: Rival) -> bool:
    """Whether the new text says the same: the rules say so and the model does not deny it, or the model says
    so and nothing visible speaks against it."""
    scores = rival.relation
    if scores is not None:
        if scores.same >= SAME:
            return could_restate(proposal.content, rival.content, rival.similarity)
        if scores.same < NOT_SAME or scores.corrects + scores.unclear >= OPPOSED or scores.other >= DIFFERENT:
            return False
    return _says_same(proposal, rival)


def _says_same(proposal: GateInput, rival: Rival) -> bool:
    """Whether the rules say so. How alike the words are is asked last: a model reads both texts for it."""
    new, old, similarity = proposal.content, rival.content, rival.similarity
    return could_restate(new, old, similarity) and restates(new, old, similarity, rival.likeness())


def _restated(proposal: GateInput, rival: Rival) -> Decision | None:
    conflict = _conflict(proposal, rival)
    at_odds = conflict is not None and conflict.kind not in ("slot", "value")
    if rival.same_occasion and not rival.other_scope and not at_odds and _agrees(proposal, rival):
        return Reinforce(
            memory_id=rival.memory_id,
            identical=False,
            similarity=rival.similarity,
            reason="Says the same in other words.",
        )
    forgotten = rival.retrieval < DEMOTED_RETRIEVAL and not rival.other_scope
    if conflict is None and rival.similarity >= CLOSE and forgotten:
        return Supersede(
            memory_id=rival.memory_id,
            similarity=rival.similarity,
            reason="Takes the place of a demoted memory.",
        )
    return None


def _beside(proposal: GateInput, near: Sequence[Rival]) -> Decision:
    """A new memory, marked against what it disagrees with and linked to what it is close to."""
    if not near:
        return Create(similarity=proposal.nearest, reason="Nothing like it is known.")
    conflicts = [(rival, _conflict(proposal, rival)) for rival in near]
    against = [(rival, one) for rival, one in conflicts if one is not None and one.kind != "slot"]
    close = tuple(rival.memory_id for rival in near if rival.similarity >= CLOSE)
    if against:
        rival, conflict = against[0]
        why = f"{conflict.kind}: {conflict.detail}"
        return Create(
            similarity=rival.similarity,
            conflict=conflict,
            contradicts=tuple(other.memory_id for other, _ in against),
            reason=f"Disagrees with what is known ({why}); {_why_beside(rival)}.",
        )
    best, slot = conflicts[0]
    if slot:
        # "Ada likes tea" and "Ada likes coffee" can both be true.
        return Create(
            similarity=best.similarity,
            conflict=slot,
            related=(best.memory_id,),
            reason=f"Differs from what is known in one value ({slot.detail}).",
        )
    if len(close) > 1 and not best.protected:
        return Merge(
            memory_ids=close,
            similarity=best.similarity,
            reason=f"New, but close to {len(close)} memories it could be merged with.",
        )
    return Create(similarity=best.similarity, related=close[:1], reason="New, close to what is known.")


def _why_beside(rival: Rival) -> str:
    if rival.later:
        return "that is true from a later time on"
    if rival.protected:
        return "the other is pinned" if rival.pinned else "the other is part of something longer"
    return "which of them is right is not clear"


def _extends(longer: str, shorter: str) -> bool:
    """Whether the new text is the old one plus a clause that does not reverse it. "Use tabs" inside "Do not
    use tabs" does not count, nor does "3" in "3,000" or a bare ": never"."""
    known = _plain(shorter)
    if not _plain(longer).startswith(known):
        return False
    clause = _CLAUSE.match(_plain(longer)[len(known) :])
    if clause is None:
        return False
    added = clause.group(1)
    if retracts(added, shorter) or reports_change(added, shorter):
        return False
    words = words_of(added)
    if any(word.text in _LIMITS for word in words if word.clause == words[0].clause):
        return False
    return sum(word.is_content for word in words) >= LEAST_CLAUSE


# What follows is a clause of its own, or a phrase that says more of what was said.
_CLAUSE = lazy_pattern(
    r"(?:[,;:.(–—]+\s+|\s+(?=(?:and|with|which|who|because|since|so|where|while|by|via|from|for|after|before|during|"
    r"including|especially|usually|up to|every|next to|as|in|on|at)\b))(.+)",
    re.DOTALL,
)
_LIMITS = frozenset("only except unless if but instead anymore never not".split())
"""Words that restrict what was said before them."""
LEAST_CLAUSE = 2  # The least number of content words in a clause; a lone "never" is a change of mind.


def _contains(longer: str, shorter: str) -> bool:
    """Whether the old text is a sentence of the new one."""
    text, known = _plain(longer), _plain(shorter)
    at = text.find(known)
    for _ in range(MOST_PLACES):
        if at < 0:
            return False
        before, after = text[max(0, at - 2) : at].rstrip(), text[at + len(known) : at + len(known) + 2]
        begins = not before or before[-1] in _SENTENCE_ENDS
        # "14" is not a sentence in "14.2".
        if begins and (not after or (after[0] in _SENTENCE_ENDS and after[1:2] in ("", " "))):
            return True
        at = text.find(known, at + 1)
    return False


_SENTENCE_ENDS = ".;!?"
MOST_PLACES = 100
"""The limit of places where a text may occur in another that are looked at; in "aaaa" they are many."""


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")

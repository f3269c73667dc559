"""What two memories are to each other: at odds, the same said twice, or neither.

There is one detector of conflicts, the gate's (`cognition.conflict`). Here it is told who speaks, in what
form and when.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import combinations

from vestige.cognition.english.words import Word, words_of
from vestige.cognition.gate.conflict import StatementConflict, find_conflict
from vestige.cognition.gate.paraphrase import could_restate
from vestige.cognition.text.analyser import STOP_WORDS
from vestige.cognition.text.form import Form, features, is_threaded, name_hash, speaker_and_words
from vestige.cognition.text.likeness import Words, overlap
from vestige.core.models import Memory

CONTAINED = 0.75
"""The share of the shorter text's telling words that the longer one has when it says the same and more …"""
LEAST_SAID = 2
"""… and how many they are at least."""
SHORT_CHARS = 500
"""A longer text is not compared with the others of an answer."""
COMPARED = 10
"""Of an answer the best so many are compared, by their words …"""
ALIKE = 0.5
"""… and where this share of the telling ones is common (Jaccard), they may differ in one value only; …"""
JUDGED = 5
"""… of such pairs so many are judged, the most alike: that takes half a millisecond each."""


def told_at(memory: Memory) -> datetime:
    """From when on a memory speaks: since it is true, else when it happened, else when it was told."""
    return memory.valid_from or memory.occurred_at or memory.created_at


def comes_after(one: Memory, other: Memory) -> bool:
    """Whether the first speaks of a later time than the second, or was told later."""
    return (told_at(one), one.created_at, one.id) > (told_at(other), other.created_at, other.id)


def conflict_between(newer: Memory, older: Memory) -> StatementConflict | None:
    """What two statements about the same thing differ in, or None.

    A question states nothing, what two people say of themselves is about two people, and in a talk nearly
    everything tells what became of something.
    """
    conflict = find_conflict(newer.content, older.content)
    if conflict is None or not _comparable(newer, older):
        return None
    if conflict.kind == "state" and Form.TURN in (features(newer).form, features(older).form):
        return None
    return conflict


def is_contradiction(conflict: StatementConflict) -> bool:
    """Whether two statements with this conflict cannot both hold at one time.

    Another value may stand beside the first ("Ada likes tea"), what differs in more than the conflict may be
    about another thing ("disabled in staging", "enabled in production"), and a later state of a thing
    contradicts nothing.
    """
    return conflict.exact and conflict.kind != "state"


def takes_over(conflict: StatementConflict) -> bool:
    """Whether the newer of two statements with this conflict takes the place of the older one: it says that
    it corrects it, or it tells what became of the thing."""
    return conflict.exact and (conflict.corrects or conflict.kind == "state")


def supports(newer: Memory, older: Memory) -> bool:
    """Whether two memories say the same, or one of them says it and more; being about the same is not enough.

    The longer one has nearly all that the shorter one tells, its names and numbers without exception, and
    nobody has changed places in it.
    """
    ours, theirs = words_of(newer.content), words_of(older.content)
    if not _contained(*sorted((ours, theirs), key=lambda words: sum(word.telling for word in words))):
        return False
    if find_conflict(newer.content, older.content) is not None or not _comparable(newer, older):
        return False
    return _in_order(ours, theirs) or could_restate(newer.content, older.content, 1.0)


def contradictions_among(memories: Sequence[Memory], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Pairs, by index, of the best hits of an answer that cannot both hold; `words` are their terms.

    Turns of a talk and long texts are left out, and what was true at different times is no contradiction.
    """
    short = [
        at
        for at, memory in enumerate(memories[:COMPARED])
        if len(memory.content) <= SHORT_CHARS and not is_threaded(memory)
    ]
    telling = {at: words[at] - STOP_WORDS for at in short}
    alike = {pair: overlap(telling[pair[0]], telling[pair[1]]) for pair in combinations(short, 2)}
    near = sorted((pair for pair in alike if alike[pair] >= ALIKE), key=lambda pair: (-alike[pair], pair))
    for one, other in near[:JUDGED]:
        if _contradict(memories[one], memories[other]):
            yield one, other


def _contradict(one: Memory, other: Memory) -> bool:
    newer, older = (one, other) if comes_after(one, other) else (other, one)
    conflict = conflict_between(newer, older)
    return (
        conflict is not None
        and is_contradiction(conflict)
        and Form.TURN not in (features(one).form, features(other).form)
        and not _ends_before(one, other)
        and not _ends_before(other, one)
    )


def _ends_before(one: Memory, other: Memory) -> bool:
    return one.valid_until is not None and one.valid_until <= told_at(other)


def _comparable(one: Memory, other: Memory) -> bool:
    """Whether both state something, and not two people each of themselves."""
    left, right = features(one), features(other)
    if left.asks or right.asks:
        return False
    return not ((left.first_person or right.first_person) and _speakers_differ(one, other))


def _speakers_differ(one: Memory, other: Memory) -> bool:
    left, right = speaker_and_words(one)[0], speaker_and_words(other)[0]
    return left is not None and right is not None and name_hash(left) != name_hash(right)


def _contained(shorter: Sequence[Word], longer: Sequence[Word]) -> bool:
    telling = [word for word in shorter if word.telling]
    absent = [word for word in telling if not any(other.says(word) for other in longer)]
    held = len(telling) - len(absent)
    if held < LEAST_SAID or held < CONTAINED * len(telling):
        return False
    return all(word.kind == "word" for word in absent)


def _in_order(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether the telling words of both come in the same order: "Ada manages Bob", not "Bob manages Ada"."""
    left, right = ([word.key for word in words if word.telling] for words in (ours, theirs))
    return [key for key in left if key in right] == [key for key in right if key in left]

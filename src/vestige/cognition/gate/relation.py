"""The relation of two memories: contradiction, restatement, or neither.

Conflicts are detected by the gate (`gate/conflict.py`). This module adds the speaker, the form and the time
of each memory.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import combinations

from vestige.cognition.english.words import Word, words_of
from vestige.cognition.gate.conflict import StatementConflict, find_conflict
from vestige.cognition.gate.paraphrase import could_restate
from vestige.cognition.text.analyser import STOP_WORDS, overlap
from vestige.cognition.text.form import Form, features, is_threaded, name_hash, speaker_and_words
from vestige.cognition.text.likeness import Words
from vestige.core.models import Memory, nested

CONTAINED = 0.75
"""The share of the shorter text's content words that the longer one has if it says the same and more …"""
LEAST_SAID = 2  # … and their least number.
SHORT_CHARS = 500  # A longer text is not compared with the other hits of an answer.
COMPARED = 10  # The number of best hits of an answer that are compared by their words …
ALIKE = 0.5  # … two with this share of common content words (Jaccard) may differ in one value only …
JUDGED = 5  # … and the number of such pairs that are judged, most alike first, at half a millisecond each.


def stated_at(memory: Memory) -> datetime:
    """When a memory's statement begins: when it became true, else when it happened, else when it was
    stored."""
    return memory.valid_from or memory.occurred_at or memory.created_at


def comes_after(one: Memory, other: Memory) -> bool:
    """Whether the first is about a later time than the second, or was stored later."""
    return (stated_at(one), one.created_at, one.id) > (stated_at(other), other.created_at, other.id)


def conflict_between(newer: Memory, older: Memory) -> StatementConflict | None:
    """The conflict between two statements about the same thing, or None.

    A question states nothing, statements of two people about themselves are about two people, and in a
    conversation nearly everything reports a later state. Two projects are two things.
    """
    if not nested(newer.scope, older.scope):
        return None
    conflict = find_conflict(newer.content, older.content)
    if conflict is None or not _comparable(newer, older):
        return None
    if conflict.kind == "state" and Form.TURN in (features(newer).form, features(older).form):
        return None
    return conflict


def is_contradiction(conflict: StatementConflict) -> bool:
    """Whether two statements with this conflict cannot both be true at one time.

    Another value may be true as well ("Ada likes tea"), statements that differ in more than the conflict may
    be about different things ("disabled in staging", "enabled in production"), and a later state contradicts
    nothing.
    """
    return conflict.exact and conflict.kind != "state"


def takes_over(conflict: StatementConflict) -> bool:
    """Whether the newer of two statements with this conflict replaces the older one: it says that it corrects
    it, or it reports a later state."""
    return conflict.exact and (conflict.corrects or conflict.kind == "state")


def supports(newer: Memory, older: Memory) -> bool:
    """Whether two memories say the same, or one of them says it and more; being about the same is not enough.

    The longer one has nearly all content words of the shorter one, its names and numbers without exception,
    and none of them has changed places.
    """
    ours, theirs = words_of(newer.content), words_of(older.content)
    if not _contained(*sorted((ours, theirs), key=lambda words: sum(word.is_content for word in words))):
        return False
    if find_conflict(newer.content, older.content) is not None or not _comparable(newer, older):
        return False
    return _in_order(ours, theirs) or could_restate(newer.content, older.content, 1.0)


def contradictions_among(memories: Sequence[Memory], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Pairs, by index, of the best hits of an answer that cannot both be true; `words` are their terms. Turns
    of a conversation and long texts are left out, and so are statements that were true at different times."""
    short = [
        at
        for at, memory in enumerate(memories[:COMPARED])
        if len(memory.content) <= SHORT_CHARS and not is_threaded(memory)
    ]
    content = {at: words[at] - STOP_WORDS for at in short}
    alike = {pair: overlap(content[pair[0]], content[pair[1]]) for pair in combinations(short, 2)}
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
    return one.valid_until is not None and one.valid_until <= stated_at(other)


def _comparable(one: Memory, other: Memory) -> bool:
    """Whether both state something, and not two people about themselves."""
    left, right = features(one), features(other)
    if left.asks or right.asks:
        return False
    return not ((left.first_person or right.first_person) and _speakers_differ(one, other))


def _speakers_differ(one: Memory, other: Memory) -> bool:
    left, right = speaker_and_words(one)[0], speaker_and_words(other)[0]
    return left is not None and right is not None and name_hash(left) != name_hash(right)


def _contained(shorter: Sequence[Word], longer: Sequence[Word]) -> bool:
    content = [word for word in shorter if word.is_content]
    absent = [word for word in content if not any(other.says(word) for other in longer)]
    held = len(content) - len(absent)
    if held < LEAST_SAID or held < CONTAINED * len(content):
        return False
    return all(word.kind == "word" for word in absent)


def _in_order(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether the content words of both come in the same order: "Ada manages Bob", not "Bob manages Ada"."""
    left, right = ([word.key for word in words if word.is_content] for words in (ours, theirs))
    return [key for key in left if key in right] == [key for key in right if key in left]

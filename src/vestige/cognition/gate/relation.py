"""The relation of two memories: contradiction, restatement, or neither.

Conflicts are detected by the gate (`gate/conflict.py`). This module adds the speaker, the form and the time
of each memory.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import combinations

from vestige.cognition.english.words import Word, is_document, words_of
from vestige.cognition.gate.conflict import StatementConflict, find_conflict
from vestige.cognition.gate.paraphrase import could_restate, limits
from vestige.cognition.text.analyser import STOP_WORDS, is_alike, overlap, terms
from vestige.cognition.text.form import Form, features, name_hash, speaker_and_words
from vestige.cognition.text.likeness import Words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory, nested

CONTAINED = 0.75
"""The share of the shorter text's content words that the longer one has if it says the same and more …"""
LEAST_SAID = 2  # … and their least number.
LONG_CHARS = 2_000  # A longer text makes too many statements for a conflict between two of them to be found.
FEW_APART = 3  # Of two statements that contradict each other, one has at most this many words of its own …
ALIKE = 0.5  # … or they share this part of their content words (Jaccard).
COMPARED = 20  # The number of best hits of an answer that are compared by their words …
JUDGED = 20  # … and the number of such pairs that are judged, most alike first, at half a millisecond each.


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Two memories, by index, and how they differ. Without a `conflict` only a link says so (`marked`).

    `contradicts`: both cannot be true. `takes_over`: the newer one replaces the older one, because it says
    that it corrects it or reports a later state.
    """

    newer: int
    older: int
    conflict: StatementConflict | None
    marked: bool
    contradicts: bool
    overlap: float

    @property
    def kind(self) -> str:
        return "marked" if self.conflict is None else self.conflict.kind

    @property
    def detail(self) -> str:
        return "marked as contradicting" if self.conflict is None else self.conflict.detail

    @property
    def corrects(self) -> bool:
        """Whether the newer one says that it corrects the older one."""
        return self.conflict is not None and self.conflict.corrects

    @property
    def takes_over(self) -> bool:
        if self.conflict is None:
            return False
        sure = self.conflict.exact or self.marked  # a mark says that both are about the same thing
        return (sure and self.corrects) or (self.conflict.exact and self.conflict.kind == "state")


def statement_words(memory: Memory) -> Words:
    """The terms by which a memory is compared with others; none if it is too long for a statement."""
    return frozenset(terms(memory.content)) if len(memory.content) <= LONG_CHARS else frozenset()


def stated_at(memory: Memory) -> datetime:
    """When a memory's statement begins: when it became true, else when it happened, else when it was
    stored."""
    return memory.valid_from or memory.occurred_at or memory.created_at


def comes_after(one: Memory, other: Memory) -> bool:
    """Whether the first is about a later time than the second, or was stored later."""
    return (stated_at(one), one.created_at, one.id) > (stated_at(other), other.created_at, other.id)


def conflict_between(newer: Memory, older: Memory, *, close: bool = False) -> StatementConflict | None:
    """The conflict between two statements about the same thing, or None. `close`: it is known that both are
    about the same thing.

    A question states nothing, statements of two people about themselves are about two people, and in a
    conversation nearly everything reports a later state. Two projects are two things.
    """
    if not may_contradict(newer, older):
        return None
    conflict = find_conflict(newer.content, older.content, close=close)
    if conflict is None:
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


def supports(one: Memory, other: Memory) -> bool:
    """Whether two memories say the same, or one of them says it and more; being about the same is not enough.

    The longer one has nearly all content words of the shorter one, its names and numbers without exception,
    and none of them has changed places.
    """
    newer, older = (one, other) if comes_after(one, other) else (other, one)
    if is_document(newer.content) or is_document(older.content):
        return False
    ours, theirs = words_of(newer.content), words_of(older.content)
    if not _contained(*sorted((ours, theirs), key=lambda words: sum(word.is_content for word in words))):
        return False
    if find_conflict(newer.content, older.content) is not None or not _comparable(newer, older):
        return False
    return _in_order(ours, theirs) or could_restate(newer.content, older.content, 1.0)


def repeats(one: str, other: str) -> bool:
    """Whether a sentence says nothing that another one does not say: it has no content word of its own, and
    nothing limits, counts or denies otherwise."""
    ours, theirs = words_of(one), words_of(other)
    content = {word.key: word for word in ours if word.is_content}
    if len(content) < LEAST_SAID:
        return False
    if not all(any(had.says(word) for had in theirs) for word in content.values()):
        return False
    if one.rstrip().endswith("?") != other.rstrip().endswith("?") or limits(ours) != limits(theirs):
        return False
    return could_restate(one, other, 1.0) and find_conflict(one, other) is find_conflict(other, one) is None


def clash_between(
    memories: Sequence[Memory], words: Sequence[Words], one: int, other: int, *, marked: bool
) -> Clash | None:
    """How two memories, by index, clash; None if they do not. `words` are their terms.

    The one decision about contradictions, for every tool. `marked`: a link says that they contradict each
    other, whatever their words. Both are taken to be true at one time.
    """
    newer, older = (one, other) if comes_after(memories[one], memories[other]) else (other, one)
    conflict = conflict_between(memories[newer], memories[older], close=marked)
    if conflict is None and not marked:
        return None
    stated = conflict is not None and is_contradiction(conflict)
    stated = stated and could_contradict(words[one], words[other])
    return Clash(
        newer=newer,
        older=older,
        conflict=conflict,
        marked=marked,
        contradicts=marked or stated,
        overlap=overlap(words[one], words[other]),
    )


def may_contradict(one: Memory, other: Memory) -> bool:
    """Whether `clash_between` may find a contradiction, by the features of the texts: at a tenth of the
    cost."""
    return nested(one.scope, other.scope) and _comparable(one, other)


def competes(one: Memory, other: Memory, *, marked: bool) -> bool:
    """Whether two notes compete for one attribute of one subject: they are marked as contradicting each
    other, or their texts cannot both be true. Two similar functions are two things."""
    pair = (one, other)
    if any("\n" in memory.content.strip() for memory in pair):
        return False
    clash = clash_between(pair, [statement_words(memory) for memory in pair], 0, 1, marked=marked)
    return clash is not None and clash.contradicts


def contradictions_among(
    memories: Sequence[Memory],
    words: Sequence[Words],
    marks: Collection[frozenset[int]] = (),
    *,
    compared: int = COMPARED,
    at_one_time: bool = False,
) -> Iterator[Clash]:
    """The hits of an answer that cannot both be true: the pairs that are marked, and among the best hits
    (`compared`) those whose words say so. Unless all are known to be true at one time, a pair of which one
    ended before the other began contradicts nothing."""
    near = {
        (one, other): overlap(words[one], words[other])
        for one, other in combinations(range(min(len(memories), compared, COMPARED)), 2)
        if frozenset((one, other)) not in marks and could_contradict(words[one], words[other])
    }
    likely = sorted(near, key=lambda pair: (-near[pair], pair))[:JUDGED]
    marked = sorted((min(pair), max(pair)) for pair in marks)
    for at, (one, other) in enumerate((*marked, *likely)):
        clash = clash_between(memories, words, one, other, marked=at < len(marked))
        if clash is not None and clash.contradicts and (at_one_time or not _apart(memories, clash)):
            yield clash


def could_contradict(one: Words, other: Words) -> bool:
    """Whether the words of two texts allow it: a contradiction differs in little else. Checked before the
    texts, at a hundredth of the cost."""
    return is_alike(one, other) and differ_in_little(one - STOP_WORDS, other - STOP_WORDS)


def differ_in_little(one: Words, other: Words) -> bool:
    """Whether one of two texts has few content words of its own, or both share most of theirs."""
    common = len(one & other)
    apart = min(len(one), len(other)) - common
    return apart <= FEW_APART or common / (len(one) + len(other) - common) >= ALIKE


def _apart(memories: Sequence[Memory], clash: Clash) -> bool:
    """Whether one of two memories ended before the other began."""
    newer, older = memories[clash.newer], memories[clash.older]
    return _ends_before(newer, older) or _ends_before(older, newer)


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

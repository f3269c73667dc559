"""Conflict detection: whether a new statement contradicts an old one. The second signal beside similarity.

Opposites are neighbours in embedding space ("Always X" / "Never X": cosine .965; "PostgreSQL 16" /
"PostgreSQL 14": .94), so no threshold on similarity distinguishes a restatement from a correction. This
module looks at the words, in this order: what the new text rejects, polarity, one changed value, a later
state of the same thing, and wording that announces a correction.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import Literal

from vestige.cognition.english.polarity import contrasted, denied, find_denial, is_negator
from vestige.cognition.english.words import (
    PREPOSITIONS,
    TEMPORAL,
    Word,
    is_document,
    speaker,
    subject,
    verb_at,
    words_of,
)
from vestige.cognition.gate import change_words
from vestige.cognition.gate.attributes import find_change, find_swap
from vestige.core.lazy_dataclass import dataclass

# -- Statements, and whether two are about the same thing

NEAR = 0.25  # The share of common content words from which one statement can be about the other …
NAMED = 0.2  # … and from which it can if it names the thing itself.

_MODIFIERS = frozenset("new current latest final whole entire first same".split())
"""Modifiers that do not make a thing another one."""
LEAD = 8  # The most words of the beginning of a text that say what it is about.


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A run of words of a text. What is asked of it more than once is found once."""

    source: str
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The characters from its first word to its last."""
        return self.source[self.words[0].start : self.words[-1].end] if self.words else ""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The normal forms of its words."""
        return tuple(word.key for word in self.words)

    @cached_property
    def content_keys(self) -> frozenset[str]:
        """The normal forms of its content words."""
        return frozenset(word.key for word in self.words if word.is_content)

    @cached_property
    def topics(self) -> frozenset[str]:
        """The normal forms of its content words, without times and negations."""
        return frozenset(
            word.key
            for at, word in enumerate(self.words)
            if word.is_content and word.unit not in TEMPORAL and not is_negator(self.words, at)
        )

    def sentences(self) -> "list[Statement]":
        found: dict[int, list[Word]] = {}
        for word in self.words:
            found.setdefault(word.sentence, []).append(word)
        if len(found) == 1:
            return [self]
        return [replace(self, words=tuple(words)) for words in found.values()]

    def clauses(self) -> "list[Statement]":
        """Its first clause, and the rest: "I looked again: it is on Friday"."""
        first = tuple(word for word in self.words if word.clause == self.words[0].clause)
        rest = self.words[len(first) :]
        return [replace(self, words=first), replace(self, words=rest)] if rest else []


@lru_cache(maxsize=256)
def statement(text: str) -> Statement:
    """A whole text as one statement."""
    return Statement(source=text, words=words_of(text))


def in_common(ours: Statement, theirs: Statement, apart: AbstractSet[str] = frozenset()) -> float:
    """The share of content words that two statements share, without times, negations and those in `apart`.

    Small talk shares names and phrases and means nothing by "no" ("long time no see"); a statement that
    contradicts another is about the same things.
    """
    left, right = ours.topics - apart, theirs.topics - apart
    return len(left & right) / len(left | right) if left & right else 0.0


def is_near(ours: Statement, theirs: Statement) -> bool:
    """Whether two statements share enough to be about one thing: many words, or the thing by its name. A
    person alone is not enough: there are many statements about one person."""
    share = in_common(ours, theirs)
    if share >= NEAR:
        return True
    shared = [word for word in subject(theirs.words) if word.key in ours.keys]
    named = any(word.unit or "-" in word.text or theirs.source[word.start].islower() for word in shared)
    return (
        named and share >= NAMED and 3 * len(shared) >= min(len(ours.content_keys), len(theirs.content_keys))
    )


def about_same(ours: Statement, theirs: Statement) -> bool:
    """Whether the subject of each occurs in the other; a pronoun matches anything."""
    about_new, about_old = subject(ours.words), subject(theirs.words)
    if any(word.key not in theirs.keys and word.text not in _MODIFIERS for word in about_new):
        return False
    missing = sum(word.key not in ours.keys and word.text not in _MODIFIERS for word in about_old)
    return missing == 0 or (2 * missing <= len(about_old) and verb_at(ours.words) is not None)


def same_subject(ours: Statement, theirs: Statement) -> bool:
    """Whether two statements have the same subject: neither "Ada" and "Bob" nor "I" and "you" do."""
    left, right = ({word.key for word in subject(one.words)} for one in (ours, theirs))
    if left and right and left.isdisjoint(right):
        return False
    # An imperative is about "you".
    if not left and not right and (speaker(ours.words) or "you") != (speaker(theirs.words) or "you"):
        return False
    return about_same(ours, theirs)


def is_indefinite(words: Sequence[Word]) -> bool:
    """Whether a statement has an indefinite subject: what "a man" does says nothing of another."""
    return bool(words) and (words[0].text in ("a", "an", "some", "there") or words[0].unit == "number")


def own_subject_words(new: str, old: str) -> tuple[list[Word], list[Word]]:
    """The words of each text's subject that the other text lacks; none if the subjects share no word: "Ada
    leads the team", "Bob leads the team" are one post with another holder."""
    ours, theirs = words_of(new), words_of(old)
    left, right = _lead(ours), _lead(theirs)
    if {word.key for word in left}.isdisjoint(word.key for word in right):
        return [], []
    said, known = ({word.key for word in words} for words in (ours, theirs))
    return [word for word in left if word.key not in known], [word for word in right if word.key not in said]


def is_sibling(new: str, old: str) -> bool:
    """Whether two subjects differ in a name or number: "room 1", "room 2"."""
    return all(any(map(_is_particular, words)) for words in own_subject_words(new, old))


def _is_particular(word: Word) -> bool:
    return word.kind != "word" or any(sign.isdigit() for sign in word.text)


def _lead(words: Sequence[Word]) -> list[Word]:
    """The content words of what a text is about: before its verb or colon. A time of day names something only
    before a content word: "the 8 am dose", but "backup 02:15"; a day can name an occasion."""
    end = verb_at(words)
    colon = next((at for at, word in enumerate(words) if ":" in word.mark), len(words))
    first = words[: min(len(words) if end is None else end, colon, LEAD)]
    before_content = [*(word.is_content for word in first[1:]), False]
    named = zip(first, before_content, strict=False)
    return [word for word, before in named if word.is_content and (word.unit != "time" or before)]


# -- Conflicts

ConflictKind = Literal["polarity", "value", "slot", "correction", "state"]

SAME_SUBJECT = 0.5  # The share of content words two statements must share to deny each other.
REJECTED_WHOLE = 0.7  # The share of a statement's content words that must be rejected for all of it to be.
LONGEST, MOST_COMPARED = 1000, 1000
"""The limits of words in a text and of pairs of sentences: a longer text is a document."""
LONGEST_STATE = 18  # The limit of content words of a statement that one announcement can be about.


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementConflict:
    """How two statements conflict. `corrects`: the new one says so itself.

    A `slot` may have both values ("Ada likes tea", "Task 12 is done"); every other kind cannot be true
    together with the old statement. `exact`: nothing else differs, so the new one replaces the old one.
    """

    kind: ConflictKind
    detail: str
    corrects: bool
    exact: bool

    @property
    def decisive(self) -> bool:
        """Whether the new statement replaces the old one."""
        return self.exact or self.corrects


def find_conflict(new: str, old: str, *, close: bool = False) -> StatementConflict | None:
    """The weightiest conflict between a new and an old statement, or None. `close`: the two are known to be
    about the same thing, whatever words they share."""
    return None if is_document(new) or is_document(old) else _conflict_of(new, old, close)


# A text is compared with several others.
@lru_cache(maxsize=256)
def _conflict_of(new: str, old: str, close: bool) -> StatementConflict | None:
    found: StatementConflict | None = None
    ours, theirs = statement(new), statement(old)
    if max(len(ours.words), len(theirs.words)) > LONGEST or ours.content_keys.isdisjoint(theirs.content_keys):
        return None
    retracted = change_words.retracts(new, old)
    compared: set[tuple[Statement, Statement]] = set()
    for one, other in _statements(new, old, close and retracted):
        if (one, other) in compared:  # a text of one sentence comes as a text and as a sentence
            continue
        compared.add((one, other))
        conflict = _between(one, other, retracted, close)
        if conflict and conflict.decisive:
            if _leaves_nothing_out(new, old, other):
                return conflict
            conflict = replace(conflict, exact=False, corrects=False)
        found = found or conflict
    swap = find_swap(ours.words, theirs.words) if found is None or found.kind == "slot" else None
    if swap is not None:
        detail = f"“{swap[0]}” and “{swap[1]}” no longer belong together"
        return StatementConflict(kind="correction", detail=detail, corrects=False, exact=False)
    return found


def _leaves_nothing_out(new: str, old: str, contradicted: Statement) -> bool:
    """Whether the new text has all the old one says beside what it contradicts. Anything it leaves out would
    be hidden with the rest."""
    said = {word.key for word in words_of(new)}
    judged = {word.sentence for word in contradicted.words}
    return all(word.key in said for word in words_of(old) if word.is_content and word.sentence not in judged)


def _statements(new: str, old: str, spread: bool) -> Iterator[tuple[Statement, Statement]]:
    """Pairs to compare: the whole texts, and the sentences of each that the other does not contain. `spread`:
    a retraction may extend over several sentences of the new text."""
    whole, bare, known = statement(new), statement(change_words.without_preamble(new)), statement(old)
    left, right = bare.sentences(), known.sentences()
    if len(left) <= 1 and len(right) <= 1:
        if len(bare.words) < len(whole.words):
            yield bare, known
        yield whole, known
    if len(left) * len(right) > MOST_COMPARED:
        return
    same = {one.keys for one in left} & {other.keys for other in right}
    for one, other in product(left, right):
        if one.keys in same or other.keys in same:
            continue
        for part in (one, *one.clauses()):
            if in_common(part, other) >= NEAR and (part is one or part.content_keys != other.content_keys):
                yield part, other
    if spread and len(left) > 1 and len(right) == 1:
        # "It is the right knee. I mixed them up."
        yield bare, known


def _between(ours: Statement, theirs: Statement, retracted: bool, close: bool) -> StatementConflict | None:
    found: StatementConflict | None = None
    for look in (_contrast, _polarity, _change, partial(_state, close=close)):
        conflict = look(ours, theirs, retracted)
        if conflict and conflict.decisive:
            return conflict
        if conflict and (found is None or found.kind == "slot"):  # one other value is the least of all
            found = conflict
    return found


def _contrast(ours: Statement, theirs: Statement, retracted: bool) -> StatementConflict | None:
    """The new text rejects what the old one says: "not X but Y"."""
    places = change_words.rejected(ours.words)
    rejects, also = ({one.words[at].key for at in change_words.rejected(one.words)} for one in (ours, theirs))
    if rejects & also:
        return None  # they reject the same, however far the words of it reach
    known = theirs.content_keys - also
    against = rejects & known
    rest = {word.key for at, word in enumerate(ours.words) if word.is_content and at not in places}
    if not against or not rest - known or _has_other_subject(ours, places, theirs):
        return None
    if _is_another_time(ours, places, theirs):
        return None
    if not rest & known and len(against) < REJECTED_WHOLE * len(known):
        return None
    if len(rest & known) < NEAR * len(known - against):
        return None
    words = [ours.words[at].text for at in sorted(places) if ours.words[at].key in known]
    return StatementConflict(kind="correction", detail=f"not {' '.join(words)}", corrects=True, exact=True)


def _has_other_subject(ours: Statement, places: AbstractSet[int], theirs: Statement) -> bool:
    """Whether the subject is another one, and not the corrected value ("not Ada but Bob leads")."""
    about = subject(ours.words)
    named = any(word.key not in theirs.keys for word in about)
    return named and not any(ours.words[at] in about for at in places)


def _is_another_time(ours: Statement, places: AbstractSet[int], theirs: Statement) -> bool:
    """Whether each states a time of its own that is not the corrected value: "On Tuesday it did"."""
    new = {word.key for at, word in enumerate(ours.words) if word.unit in TEMPORAL and at not in places}
    rejects = {ours.words[at].key for at in places}
    old = {word.key for word in theirs.words if word.unit in TEMPORAL} - rejects
    return bool(new and old and new.isdisjoint(old))


def _polarity(ours: Statement, theirs: Statement, retracted: bool) -> StatementConflict | None:
    denial = find_denial(ours.words, theirs.words)
    if denial is None:
        return None
    opposed = denial.opposites or ()
    # What is true of old files may be false of new ones.
    if opposed and opposed[0] in subject(ours.words) and opposed[1] in subject(theirs.words):
        return None
    apart = {word.key for word in opposed}
    if in_common(ours, theirs, apart) < SAME_SUBJECT:
        return None
    exact = same_subject(ours, theirs) and not (
        _limits(ours.words, theirs, apart) or _limits(theirs.words, ours, apart)
    )
    return StatementConflict(kind="polarity", detail=denial.detail, corrects=retracted and exact, exact=exact)


def _limits(words: Sequence[Word], other: Statement, apart: set[str]) -> bool:
    """Whether only one statement says where, when or of what: then the two may be about different things."""
    against = contrasted(words)
    return any(
        word.kind in ("name", "quantity")
        or any(one.text in PREPOSITIONS for one in words[max(0, at - 2) : at])
        for at, word in enumerate(words)
        if word.is_content
        and at not in against
        and word.key not in apart
        and word.key not in other.keys
        and not is_negator(words, at)
        and not _is_occasion(words, at)
    )


def _is_occasion(words: Sequence[Word], at: int) -> bool:
    """Whether a quantity is an end date or the date of the event itself, which is not a condition."""
    if words[at].unit in TEMPORAL and words[at - 1].text in ("until", "since"):
        return True
    if words[at].text in _SEASONS or any(word.text in _REASONS for word in words[:at]):
        return True
    return words[at].kind == "quantity" and any(word.text in ("been", "was", "were") for word in words)


_SEASONS = frozenset("spring summer autumn fall winter weekend".split())
_REASONS = frozenset("after because since when so".split())
"""Words before a reason."""


def _change(ours: Statement, theirs: Statement, retracted: bool) -> StatementConflict | None:
    """One changed value. If both can be true it is a slot."""
    change = find_change(ours.words, theirs.words)
    if change is None:
        return None
    if change.single and (change.counted or not is_indefinite(theirs.words)):
        return StatementConflict(kind="value", detail=change.detail, corrects=retracted, exact=True)
    # "Actually Ada speaks Spanish" takes the other value back, though one can speak both; "Actually the owner
    # of the parser is Ada" takes nothing back that is said of the lexer.
    corrects = retracted and not change.of_subject
    kind: ConflictKind = "correction" if corrects else "slot"
    return StatementConflict(kind=kind, detail=change.detail, corrects=corrects, exact=False)


def _state(ours: Statement, theirs: Statement, retracted: bool, *, close: bool) -> StatementConflict | None:
    """What the new text says of itself: it corrects, or it reports a later state."""
    if is_indefinite(theirs.words) or len(theirs.content_keys) > LONGEST_STATE:
        return None
    near = close or is_near(ours, theirs)
    if retracted and ours.keys != theirs.keys and _takes_back(ours, theirs, near):
        return StatementConflict(kind="correction", detail="says that it corrects", corrects=True, exact=True)
    detail = _became(ours, theirs, near)
    return StatementConflict(kind="state", detail=detail, corrects=False, exact=True) if detail else None


def _takes_back(ours: Statement, theirs: Statement, near: bool) -> bool:
    """Whether a correcting text corrects this one: it is about the same, or names most of it."""
    mentioned = theirs.content_keys & ours.content_keys
    if not near and not (len(mentioned) > 1 and 2 * len(mentioned) >= len(theirs.content_keys)):
        return False
    about_new, about_old = _keys(subject(ours.words)), _keys(subject(theirs.words))
    return about_new <= set(theirs.keys) or about_old <= set(ours.keys)


def _became(ours: Statement, theirs: Statement, near: bool) -> str | None:
    """The later state of the old statement's subject, if the new one reports it."""
    if near and not any(denied(theirs.words)) and change_words.is_later(ours.text, theirs.text):
        # The actor may be another: "the tap is leaking", "the plumber fixed the tap".
        about = _keys(subject(theirs.words))
        if (about and about <= set(ours.keys)) or about_same(ours, theirs):
            return "reports what became of it"
    contained = all(any(one.says(word) for one in ours.words) for word in theirs.words if word.is_content)
    if contained or not about_same(ours, theirs):
        return None
    if change_words.ends_state(ours.words, theirs.words, near=near):
        return "reports a step that ends it"
    return "reports a change" if near and change_words.reports_change(ours.text, theirs.text) else None


def _keys(words: Sequence[Word]) -> set[str]:
    return {word.key for word in words}

"""The words of a statement: kind, normal form, clause and sentence of each, and the main verb.

Contractions are expanded, quantities have a normal form, all other words are compared by their stem. English
only, like the stemmer.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from vestige.cognition.english.quantities import Quantity, quantities
from vestige.cognition.text.analyser import STOP_WORDS, stem
from vestige.cognition.text.word_lists import sections, words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

# -- Synonyms

_SYNONYMS = sections("vestige.cognition.english", "synonyms")
_STANDS_FOR = {stem(word): stem(line.split()[0]) for line in _SYNONYMS["synonyms"] for word in line.split()}


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """The form by which a lower-case word is compared: its stem, or the stem of its synonym."""
    made = stem(word)
    return _STANDS_FOR.get(made, made)


_ALTERNATIVES = {
    stem(word): tuple(line.split())
    for kind in ("synonyms", "spellings")
    for line in _SYNONYMS[kind]
    for word in line.split()
}


def alternatives(word: str) -> tuple[str, ...]:
    """A lower-case word and its synonyms, spellings and short forms."""
    return tuple(dict.fromkeys((word, *_ALTERNATIVES.get(stem(word), ()))))


# -- What rules read

RULE_CHARS = 10_000
"""The limit of characters that English rules read: more than a thousand words. A longer text is a document:
its opening can still state a time or a mood, but as a whole it neither repeats nor contradicts another."""


def opening(text: str) -> str:
    """What English rules read of a text. It begins where the text begins, so places in it are places in the
    text. Every rule that is given a text by a client reads no more."""
    return text[:RULE_CHARS]


def is_document(text: str) -> bool:
    """Whether rules read only a part of a text."""
    return len(text) > RULE_CHARS


# -- Words of a text, with their classes

TEMPORAL = frozenset(("date", "day", "month", "year", "time"))  # Units of quantities that are times.
Kind = Literal["function", "word", "name", "quantity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The characters `start`..`end` of a text as one word.

    `text` is the word in lower case, `key` its normal form for comparison, `unit` the unit of a quantity,
    `clause` and `sentence` their numbers in the text, `mark` the punctuation just before it.
    """

    start: int
    end: int
    text: str
    key: str
    kind: Kind
    clause: int
    sentence: int
    unit: str = ""
    mark: str = ""

    def __hash__(self) -> int:
        # What was found in a run of words is kept by these words, so they are hashed often.
        return hash(self.key)

    @property
    def is_content(self) -> bool:
        """Whether it is a content word, not a function word."""
        return self.kind != "function"

    def says(self, other: "Word") -> bool:
        """Whether it means the same as the other, or the same time more exactly: "May", "May 2026"."""
        return self.key == other.key or (other.unit in TEMPORAL and self.key.startswith(other.key))


_FIRST = lazy_pattern(r"[^\W_]|[\u2190-\u21ff\u2600-\u27bf\U0001f000-\U0001faff]|[.;:=!?(),–—\n]")
"""The first character of a token."""
_TOKEN = lazy_pattern(
    r"[^\W_]+(?:[.:,/'’@_+#-]+[^\W_]+)*(?:\+\+|#)?|[\u2190-\u21ff\u2600-\u27bf\U0001f000-\U0001faff]|[.;:=!?(),–—\n]"
)
_SENTENCE_MARKS, _CLAUSE_MARKS = frozenset(".!?\n;"), frozenset(":=(),–—")
_JOINING = frozenset("but because although though while whereas unless".split())

_BARE = "do does did is are was were have has had could should would must need".split()
_NEGATED = {f"{word}n't": (word, "not") for word in _BARE}
_NEGATED |= {
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "cannot": ("can", "not"),
    "ain't": ("is", "not"),
}
_NEGATED |= {word.replace("'", ""): parts for word, parts in tuple(_NEGATED.items())}
_ENDINGS = {"'re": "are", "'ve": "have", "'ll": "will", "'m": "am", "'d": "would"}
_IS = frozenset("it he she that there here what who where how this everything nothing everyone".split())

_CLASSES = sections("vestige.cognition.english", "word_classes")
_LIGHT = words(_CLASSES["light"])
"""Adverbs of degree, time and manner, titles and reminders: no statement is about them."""
FUNCTION_WORDS = frozenset(STOP_WORDS | _LIGHT) - {"like", "own"}
_ABBREVIATIONS = frozenset("mr mrs ms dr prof st vs approx nr eg ie etc inc ltd jr sr".split())

_SPELLINGS = {word: line.split()[0] for line in _SYNONYMS["spellings"] for word in line.split()[1:]}
_BRITISH = lazy_pattern(r"(?<=[a-z]{2}[lbvhn])our(?=s|ed|ing|$)|(?<=[a-z]{3})is(?=ation|e[sd]?$|ing$)")


def words_of(text: str) -> tuple[Word, ...]:
    """The words of the opening of a text, with their classes."""
    return all_words_of(opening(text))


@lru_cache(maxsize=1024)
def all_words_of(text: str) -> tuple[Word, ...]:
    """The words of a text that has a limit already, such as a query."""
    # In a headline every word has a capital, so a capital does not mark a name.
    longer = [found[0] for found in _TOKEN.finditer(text) if len(found[0]) > 3]
    titled = len(longer) > 3 and sum(word[0].isupper() for word in longer) > 0.7 * len(longer)
    return tuple(_read(text, titled))


def _read(text: str, titled: bool) -> Iterator[Word]:
    at, clause, sentence, before, last = 0, 0, 0, ".", ""
    counted = deque(quantities(text))
    while found := _next(text, at, counted):
        if isinstance(found, Quantity):
            at = found.end
            yield Word(
                start=found.start, end=found.end, text=text[found.start : found.end].lower(), key=found.key,
                kind="quantity", clause=clause, sentence=sentence, unit=found.unit or "number", mark=before,
            )  # fmt: skip
            before = ""
            continue
        at, mark = found.end(), found[0]
        if mark == "." and last in _ABBREVIATIONS:
            continue
        if mark in _SENTENCE_MARKS or mark in _CLAUSE_MARKS:
            clause += 1
            sentence += mark in _SENTENCE_MARKS
            before = mark
            continue
        last = mark.lower()
        clause += last in _JOINING
        for part in _parts(mark):
            yield Word(
                start=found.start(), end=found.end(), text=part, key=_key(part), clause=clause,
                kind=_kind(mark, part, titled or bool(before)), sentence=sentence, mark=before,
            )  # fmt: skip
        before = ""


def _next(text: str, at: int, counted: deque[Quantity]) -> Quantity | re.Match[str] | None:
    """The next quantity, word or mark from an index on. Quantities that a word contains are left out."""
    first = _FIRST.search(text, at)
    if first is None:
        return None
    while counted and counted[0].start < at:
        counted.popleft()
    if counted and counted[0].start <= first.start():
        return counted.popleft()
    return _TOKEN.match(text, first.start())


def _parts(written: str) -> Sequence[str]:
    word = written.lower().replace("’", "'")
    if word in _NEGATED:
        return _NEGATED[word]
    base, _, ending = word.rpartition("'")
    if not base:
        return (word,)
    if ending == "s":
        return (base, "is") if base in _IS else (base,)
    return (base, _ENDINGS[f"'{ending}"]) if f"'{ending}" in _ENDINGS else (word,)


def _key(word: str) -> str:
    spelled = _SPELLINGS.get(word) or _SPELLINGS.get(word.removesuffix("s")) or word
    if not spelled.isascii() or not spelled.isalpha() or word in FUNCTION_WORDS or len(spelled) < 3:
        return spelled
    return root(_BRITISH.sub(lambda found: "or" if found[0] == "our" else "iz", spelled))


def _kind(written: str, word: str, fresh: bool) -> Kind:
    if word in FUNCTION_WORDS:
        # AM and OR may be names, but IT is not worth the doubt; a lone capital I is no name either.
        return "function"
    inner = written[1:]
    marked = any(character.isupper() or character.isdigit() or character in "_/@" for character in inner)
    return "name" if marked or (written[:1].isupper() and not fresh) or "." in inner else "word"


# -- Classes of words that frame a value: verbs of one value and of many, prepositions


def _stems(*lines: str) -> frozenset[str]:
    return frozenset(map(root, words(lines)))


BE = frozenset("is are was were am be been being".split())
HAVE = frozenset("has have had having".split())
POSSIBLE = frozenset("can could may might".split())
AUXILIARIES = (
    BE | HAVE | POSSIBLE | frozenset("will would must should shall do does did gets get got".split())
)
PREPOSITIONS = words(_CLASSES["prepositions"])
ARTICLES = frozenset("a an the this that these those some any".split())
OWNERS = frozenset("my our your his her its their".split())
PRONOUNS = frozenset("i we you he she it they me us him them".split())
TITLES = frozenset("mr mrs ms dr prof version next close opposite front top".split())
"""What may stand between a verb and its value: "is next to", "is Mr"."""

SINGLE_VALUED = _stems(*_CLASSES["single_valued"])
"""Verbs whose object or adverbial has one value at a time: residence, work, cost, size, time, place."""
MANY_WITH = frozenset({("work", "on"), ("work", "with"), ("run", "with"), ("meet", "with"), ("live", "with")})
"""Verbs of one value that take many after this preposition."""
SINGLE_WITH = frozenset(
    (root(verb), preposition) for verb, preposition in map(str.split, _CLASSES["single_with"])
)
"""Verbs that take one value only after this preposition."""
PLACES = frozenset(
    "in on at under behind beside near next above below inside outside between against".split()
)
"""Prepositions that begin the place of a thing."""
PLACED = _stems("go hang lie belong sit stand live")  # Verbs that say where a thing is.
PLACING = _stems(*_CLASSES["placing"])  # Verbs that put their object in one place: "we track bugs in Jira".
SETTINGS = _stems(*_CLASSES["settings"])
"""Participles after "is" that take one value: called, set to, planned for, written in."""
MANY_DONE = _stems(*_CLASSES["many_done"])
"""Participles whose agent or place is one of many: "is used by", "is enabled in"."""
CHOSEN = _stems("use prefer choose recommend")
"""Verbs of many objects, but of one for each purpose: "we use Kafka for events"."""
ROLES = _stems("lead manage head chair run maintain captain own coordinate host direct supervise coach edit")
"""Verbs of a role that one person holds: "Ada leads the data team"."""
MANY_VALUED = _stems(*_CLASSES["many_valued"])
PAST_EVENTS = words(_CLASSES["past_events"])
"""Past forms: events that may happen again with other values."""

LABELS = words(_CLASSES["labels"])  # Nouns after which a number is a name, not a value that changed.
PLATFORMS = frozenset("android ios linux windows macos safari firefox chrome edge web".split())
"""Platforms, of which a thing mostly runs on several."""
ADJECTIVES = words(_CLASSES["adjectives"])
ADJECTIVE_ENDINGS = ("ful", "able", "ible", "ous", "ive", "less", "ish", "ic", "y", "ed", "en")
"""Endings of adjectives: a thing can have many of them at once."""


# -- The main verb and the subject: a guess by word classes, not a parser

_KNOWN = SINGLE_VALUED | MANY_VALUED | ROLES | SETTINGS
_BEFORE_NOUNS = ARTICLES | OWNERS | PREPOSITIONS


def verb_at(words: Sequence[Word]) -> int | None:
    """The index of the main verb; 0 for an imperative, None if none is recognised."""
    return _verb_at(tuple(words))


# A text is compared with several others, and each rule asks for its verb.
@lru_cache(maxsize=256)
def _verb_at(words: tuple[Word, ...]) -> int | None:
    if _is_elided(words):
        return 0
    for at in range(1, len(words)):
        if words[at].text in AUXILIARIES or _is_verb(words, at):
            return at
    if words and words[0].key in _KNOWN:
        return 0
    if words and words[0].text in PRONOUNS:
        return next((at for at, word in enumerate(words) if word.is_content), None)
    endings = (
        at
        for at in range(1, len(words))
        if words[at].kind == "word"
        and words[at].text.endswith(("s", "ed"))
        and not words[at].text.endswith(("ss", "us"))
        and words[at - 1].text not in _BEFORE_NOUNS
    )
    return next(endings, None)


def _is_elided(words: Sequence[Word]) -> bool:
    """Whether a note begins with a verb without subject: "Interviewing candidates", "Ordered a lamp"."""
    if len(words) < 2 or words[0].kind != "word" or not words[0].text.endswith(("ing", "ed")):
        return False
    first = words[0].clause
    return not any(
        word.text in AUXILIARIES or _is_verb(words, at)
        for at, word in enumerate(words[:6])
        if at and word.clause == first
    )


def _is_verb(words: Sequence[Word], at: int) -> bool:
    word, before = words[at], words[at - 1]
    if before.text in _BEFORE_NOUNS:
        return False
    if word.text == "need":  # a function word before a verb ("need not go"), else the verb itself
        return True
    if word.kind != "word":
        return False
    if word.text in PAST_EVENTS:
        return True
    inflected = word.text.endswith(("s", "ed")) or before.text in PRONOUNS or before.text.endswith("s")
    return word.key in _KNOWN and inflected


def subject(words: Sequence[Word]) -> list[Word]:
    """The content words before the main verb; "since March" is not part of the subject."""
    verb = verb_at(words)
    if verb is None:
        return []
    return [word for word in words[:verb] if word.is_content and word.unit not in TEMPORAL]


def speaker(words: Sequence[Word]) -> str:
    """The pronoun that is the only subject of a statement; empty for an imperative."""
    return next((word.text for word in words[: verb_at(words)] if word.text in PRONOUNS), "")

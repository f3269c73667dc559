"""Query analysis: words, literals, kind of question, time and names."""

import enum
import re
from collections.abc import Callable, Iterator, Sequence

from vestige.cognition.english.words import (
    ADJECTIVE_ENDINGS,
    ADJECTIVES,
    BE,
    OWNERS,
    PRONOUNS,
    Word,
    all_words_of,
    alternatives,
)
from vestige.cognition.query.literals import (
    MOST,
    NAME_LISTS,
    ORDINARY,
    POSSESSIVE_ENDING,
    SUPPOSING,
    Literal,
    Name,
    Particular,
    literals,
    particulars,
)
from vestige.cognition.text.analyser import QueryWord, query_terms, query_words, terms
from vestige.cognition.text.form import name_hash
from vestige.cognition.text.word_lists import sections, words
from vestige.cognition.time.calendar import MONTHS
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

# -- Question types (English): the kind of answer a question wants, and its intent


class QuestionKind(enum.StrEnum):
    """The kind of answer. Everything else is OTHER."""

    LIST = "list"
    INFERENCE = "inference"
    WHEN = "when"
    OTHER = "other"


# "When did she move?", "How long have they known each other?", "What year was it?"
_WHEN = lazy_pattern(r"^\s*when\b|\bhow long\b|\bwhat (?:date|day|month|year|time)\b", re.IGNORECASE)

_WHICH = (
    r"^\s*(?:what|which|whose|in what|in which|on what|at what|for what|from what|to which|around which)\b"
)
_VERB = r"(?:has|have|had|does|do|did|are|is|were|was|might|would|could|can|both|that)\b"
_NO_PLURAL = r"(?!his\b|this\b|was\b|is\b|has\b|does\b|as\b|its\b|\w+ss\b|\w+us\b|\w+['’]s\b)"
# "What books has Melanie read?", "In which countries did they meet?", "Which outdoor games does she like?"
_WHAT_THINGS = lazy_pattern(
    rf"{_WHICH}(?:\s+[\w'’-]+){{0,4}}?\s+{_NO_PLURAL}(?:\w{{2,}}s|people|children|music|food|media)\s+{_VERB}",
    re.IGNORECASE,
)
# "Where has Maria made friends?", "What has he tried so far?"; not "How does …" and "How long has …"
_HAS_DONE = lazy_pattern(
    r"^\s*(?:what|which|who|where|how(?! (?:long|has|have|did|does|do)\b)|in what|in which)\b"
    r".*?\b(?:has|have)\s+\w",
    re.IGNORECASE,
)
# "How many children does she have?"
_HOW_MANY = lazy_pattern(r"\bhow many\b", re.IGNORECASE)
# "What do Jon and Gina both like?", "What do they have in common?"
_IN_COMMON = lazy_pattern(r"\b(?:both|in common|each other|all the)\b", re.IGNORECASE)
_LISTS = (_WHAT_THINGS, _HAS_DONE, _HOW_MANY, _IN_COMMON)
# "What kind of car does she drive?" wants one answer, however it is put.
_ONE_KIND = lazy_pattern(r"\b(?:kinds?|types?|sorts?) of\b", re.IGNORECASE)

# "Is Oscar her pet?", "Did they get married?"
_YES_OR_NO = lazy_pattern(
    r"^\s*(?:is|are|was|were|do|does|did|has|have|can|could|should|will)\b", re.IGNORECASE
)
_JUDGEMENTS = (SUPPOSING, _YES_OR_NO)

# A question that names its time wants what happened then.
_DATED = lazy_pattern(
    r"\b(?:january|february|march|april|in may|may,? \d{1,2}|june|july|august|september|october|november"
    r"|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


def kind_of(text: str) -> QuestionKind:
    """The kind of a question; the first that fits, in the order of `QuestionKind`."""
    if not _DATED.search(text):
        if any(pattern.search(text) for pattern in _LISTS) and not _ONE_KIND.search(text):
            return QuestionKind.LIST
        if any(pattern.search(text) for pattern in _JUDGEMENTS):
            return QuestionKind.INFERENCE
    return QuestionKind.WHEN if _WHEN.search(text) else QuestionKind.OTHER


# -- Intent: a cause, a history, a comparison, a check, or a synthesis


class Intent(enum.StrEnum):
    """The intent of a question."""

    ROOT_CAUSE = "RootCause"
    TIMELINE = "Timeline"
    COMPARISON = "Comparison"
    FACT_CHECK = "FactCheck"
    SYNTHESIS = "Synthesis"


# In this order: "Why did it change over time?" asks for the cause of a change.
_PATTERNS = {
    Intent(name): lazy_pattern(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE | re.DOTALL)
    for name, phrases in sections("vestige.cognition.query", "intents").items()
    if phrases
}
# "Does Ada eat fish?" wants to be checked, whatever else it says.
_ASKS_WHETHER = lazy_pattern(
    r"^\s*(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|should|must)\b.*\?\s*$",
    re.IGNORECASE | re.DOTALL,
)


def intent_of(text: str) -> Intent:
    """The first intent whose words the text has; a yes-or-no question is a fact check; else synthesis."""
    for intent, pattern in _PATTERNS.items():
        if pattern.search(text):
            return intent
    return Intent.FACT_CHECK if _ASKS_WHETHER.match(text) else Intent.SYNTHESIS


# -- The type of answer that a question wants (a person, a reason, an amount), and whether a note can hold one
#
# "Who repaired the roof?" has no answer in "The roof was repaired", though every word of it is there: a note
# that adds nothing to the question, or nothing of the type that is asked for, does not answer it.

STATEMENT_CHARS = 600
"""A longer text says more than words and numbers show."""


class AnswerType(enum.StrEnum):
    """The type of answer. A question that starts otherwise wants any new word."""

    PERSON = "person"
    REASON = "reason"
    AMOUNT = "amount"
    ANYTHING = "anything"


def _opening(words: str) -> re.Pattern[str]:
    """A question that begins with these words, or has one word before them, as in "And why"."""
    return lazy_pattern(rf"^\W*(?:\w+\s+)?(?:{words})\b", re.IGNORECASE)


_TYPES = {
    AnswerType.PERSON: _opening(r"who(?:m|se)?"),
    AnswerType.REASON: _opening(r"why|how\s+come"),
    AnswerType.AMOUNT: _opening(
        r"how\s+(?:long|many|much|often|old|far|tall|high|wide|deep|heavy|big|large|fast)"
    ),
    AnswerType.ANYTHING: _opening(r"what|which|where|how"),
}
# An amount in other words than numbers: "for ages", "as long as", "none", "big".
_VAGUE = frozenset(
    "all always another any both couple double dozens each enough ever every few forever free full half "
    "huge hundreds indefinitely large little lots many most never no nobody none nothing once only pair "
    "quarter rarely several short single small sometimes still thousands tiny triple twice until till "
    "usually whole weekly".split()
)
_SELF = PRONOUNS | OWNERS | frozenset("everyone everybody nobody someone anyone mine ours".split())
_DIGIT = lazy_pattern(r"\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a question wants, and the words that it has already."""

    type: AnswerType
    words: tuple[Word, ...]

    def could_be_in(self, memory: Memory) -> bool:
        """Whether a memory can hold an answer of the type. Only a short statement is judged."""
        text = memory.content
        if len(text) > STATEMENT_CHARS or "\n" in text.strip():
            return True
        if self.type is AnswerType.AMOUNT and (_DIGIT.search(text) or memory.occurred_at is not None):
            return True
        if self.type is AnswerType.PERSON and memory.author is not None:
            return True
        words = all_words_of(f"{text} {' '.join(memory.tags)}")
        new = [word for word in words if not any(word.says(one) for one in self.words)]
        return any(self._could_be(word) for word in new)

    def _could_be(self, word: Word) -> bool:
        match self.type:
            case AnswerType.AMOUNT:
                return word.kind == "quantity" or word.text in _VAGUE
            case AnswerType.PERSON:
                return word.kind in ("word", "name") or word.text in _SELF
            case AnswerType.REASON:
                return word.kind in ("word", "name")
            case AnswerType.ANYTHING:
                return word.is_content or word.text in _SELF


def wanted_in(question: str) -> Wanted | None:
    """What a question wants; None if it asks for no type that a text shows: whether something is so, or when
    it was, which the day of a memory may say."""
    found = next((one for one, pattern in _TYPES.items() if pattern.match(question)), None)
    return None if found is None else Wanted(type=found, words=all_words_of(question))


def could_answer(wanted: Wanted | None, memory: Memory) -> bool:
    """Whether a memory can hold what a question wants."""
    return wanted is None or wanted.could_be_in(memory)


# -- The analysed query

MAX_LITERALS = 16  # The limit of literals: the store looks for each separately.

# Words that say how a question is meant, not what it is about.
_MODAL = frozenset(
    "would might likely considered consider probably could may should person describe describes described "
    "based according answer yes no attributes traits".split()
)
_DATES = frozenset(terms(" ".join((*MONTHS, "summer winter spring autumn"))))
# Roles in a conversation: they name no one in particular.
_ROLES = frozenset("user assistant system human ai agent bot tool model".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An analysed query.

    `terms` are distinct, without stop words if there are others; `date_terms` are those that name a month, a
    season or a number. `literals` are texts that should occur as they are; `identifying`: one of them is an
    id, neither quoted nor a word of prose. `concrete`: the query is one literal and nothing else, so that its
    meaning adds little. `particulars` are the other things it names, `things` those with a name in lower case
    or a short form, `nouns` those that it takes for known. `names` are `form.name_hash` of every
    word that could be a person's name. `wanted` is the type of answer it asks for. `subject` is the text
    without words that only say when, and `distinctive` are its particulars: a note that answers has them.
    """

    text: str
    terms: tuple[str, ...]
    date_terms: tuple[str, ...]
    literals: tuple[str, ...]
    identifying: bool
    concrete: bool
    kind: QuestionKind
    particulars: tuple[Particular, ...]
    things: tuple[Name, ...]
    nouns: tuple[Name, ...]
    names: frozenset[int]
    wanted: Wanted | None
    subject: str
    distinctive: tuple[Particular, ...]


_QUESTION = lazy_pattern(
    r"\?\s*$|^\s*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|can|could"
    r"|should|will)\b",
    re.IGNORECASE,
)


def is_question(text: str) -> bool:
    """Whether a query asks something. Other queries are key words, for which everything near is of use."""
    return _QUESTION.search(text) is not None


def analyse(text: str) -> Asked:
    """Analyse a query, in time linear in its length."""
    found = list(literals(text))
    content, asks = query_terms(text), is_question(text)
    named = particulars(_unquoted(text, found))
    return Asked(
        text=text,
        terms=tuple(content),
        date_terms=tuple(term for term in content if term.isdecimal() or term in _DATES),
        literals=_distinct(found),
        identifying=any(not (literal.quoted or literal.plain) for literal in found),
        concrete=len(found) == 1 and _is_whole(text, found[0]),
        kind=kind_of(text),
        particulars=named,
        things=things(_unquoted(text, found)) if asks else (),
        nouns=nouns(_unquoted(text, found)) if asks else (),
        names=frozenset(_names(text)),
        wanted=wanted_in(text),
        subject=text,
        distinctive=named,
    )


def _distinct(found: Sequence[Literal]) -> tuple[str, ...]:
    distinct = {literal.text.casefold(): literal.text for literal in reversed(found)}
    return tuple(reversed(distinct.values()))[:MAX_LITERALS]


def content_words(text: str) -> list[QueryWord]:
    """The words of a query that carry weight: modal ones do not, unless there are no others."""
    words = query_words(text)
    kept = [word for word in words if not _is_modal(text, word)]
    return words if all(word.stop for word in kept) else kept


def _is_modal(text: str, word: QueryWord) -> bool:
    written = text[word.start : word.end]
    # Inside a question a capital makes it the month.
    return written.casefold() in _MODAL and not (written == "May" and word.start > 0)


def _unquoted(text: str, found: Sequence[Literal]) -> str:
    """The text with blanks in place of quotations, which a memory may paraphrase."""
    for one in found:
        if one.quoted:
            text = f"{text[: one.start]}{' ' * (one.end - one.start)}{text[one.end :]}"
    return text


def _is_whole(text: str, literal: Literal) -> bool:
    around = text[: literal.start] + text[literal.end :]
    return not literal.plain and not any(map(str.isalnum, around))


# -- Things in a query: names in lower case, short forms, and nouns that it takes for known

_ACRONYM = lazy_pattern(r"[A-Z]{2,5}")
_ABBREVIATION = lazy_pattern(r"[b-df-hj-np-tv-xz]{2,5}")
_ORDINARY_ACRONYMS = words(NAME_LISTS["acronyms"])
_ATTRIBUTES = words(NAME_LISTS["attributes"])
_DEFINITE = OWNERS | {"the"}
_OF_ANOTHER = frozenset("of for to between behind why that".split())
"""Words after a noun that is an attribute of what follows: "the deadline for the report"."""
_SUBJECT_FOLLOWS = frozenset("did does has had will".split())
_ASKED_FOR = frozenset("who where".split())
LONGEST_RUN = 3


def things(text: str) -> tuple[Name, ...]:
    """Names in lower case, and short forms: "ingrid's birthday", "did kessler call", "the tv", "BMW"."""
    return _each(text, _is_thing)


def nouns(text: str) -> tuple[Name, ...]:
    """Things that a question takes for known: "the printer", "my bike"; not attributes ("the price")."""
    return _each(text, _is_definite)


def _each(text: str, holds: Callable[[str, Sequence[Word], int], bool]) -> tuple[Name, ...]:
    """The distinct names among the words of which this holds, at most MOST."""
    words = all_words_of(text)
    if SUPPOSING.search(text) or not any(text[word.start].islower() for word in words):
        return ()
    named = (_written_at(text, word) for at, word in enumerate(words) if holds(text, words, at))
    distinct = {one.casefold(): Name(text=one, words=alternatives(one.casefold())) for one in named}
    return tuple(distinct.values())[:MOST]


def _written_at(text: str, word: Word) -> str:
    return POSSESSIVE_ENDING.sub("", text[word.start : word.end])


def _is_thing(text: str, words: Sequence[Word], at: int) -> bool:
    word, bare = words[at], _written_at(text, words[at])
    if bare.casefold() in _ORDINARY_ACRONYMS or word.kind in ("function", "quantity"):
        return False
    if _ACRONYM.fullmatch(bare) or (_ABBREVIATION.fullmatch(bare) and _is_definite(text, words, at)):
        return True
    owns = len(bare) < word.end - word.start and at + 1 < len(words) and words[at + 1].is_content
    return _could_be_thing(bare) and (owns or _is_bare_subject(words, at))


def _could_be_thing(written: str) -> bool:
    plain = written.isascii() and written.isalpha() and written.islower() and len(written) > 1
    singular = written.removesuffix("s")
    return (
        plain
        and not {written, singular} & (_ATTRIBUTES | ADJECTIVES | ORDINARY)
        and not written.endswith(("est", "ing"))
    )


def _is_definite(text: str, words: Sequence[Word], at: int) -> bool:
    """Whether it is the first noun after "the" or "my", and no attribute of something else."""
    if words[at].kind != "word" or not _could_be_thing(_written_at(text, words[at])):
        return False
    start = at
    while start > 0 and at - start < LONGEST_RUN and words[start - 1].text in ADJECTIVES:
        start -= 1
    if start == 0 or words[start - 1].text not in _DEFINITE:
        return False
    return at + 1 == len(words) or words[at + 1].text not in _OF_ANOTHER


def _is_bare_subject(words: Sequence[Word], at: int) -> bool:
    """Whether it stands without article where a subject does, as names do: "when did ingrid move"."""
    if at == 0 or at > LONGEST_RUN or words[at].text.endswith(("s", *ADJECTIVE_ENDINGS)):
        return False
    before = words[at - 1].text
    if before in BE:
        return at == 2 and words[0].text in _ASKED_FOR and at + 1 == len(words)
    return before in _SUBJECT_FOLLOWS and at + 1 < len(words)


# -- Names in a query

_NAME = lazy_pattern(r"[^\W\d_][\w.-]*(?:['’](?!s\b)[\w.-]+)*")


def _names(text: str) -> Iterator[int]:
    for match in _NAME.finditer(text):
        name = match[0].rstrip(".-")
        if name.casefold() not in _ROLES:
            yield name_hash(name)

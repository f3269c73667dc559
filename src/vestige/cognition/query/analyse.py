"""Query analysis: words, literals, kind of question, time and names."""

import enum
import re
from collections.abc import Iterator, Sequence

from vestige.cognition.english.words import OWNERS, PRONOUNS, Word, all_words_of
from vestige.cognition.query.literals import SUPPOSING, Literal, Particular, literals, particulars
from vestige.cognition.text.analyser import QueryWord, query_terms, query_words, terms
from vestige.cognition.text.form import name_hash
from vestige.cognition.text.word_lists import sections
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
    """A question that begins with these words, or has one word before them: "By whom", "And why"."""
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
    meaning adds little. `particulars` are the other things it names. `names` are `form.name_hash` of every
    word that could be a person's name. `wanted` is the type of answer it asks for.
    """

    text: str
    terms: tuple[str, ...]
    date_terms: tuple[str, ...]
    literals: tuple[str, ...]
    identifying: bool
    concrete: bool
    kind: QuestionKind
    particulars: tuple[Particular, ...]
    names: frozenset[int]
    wanted: Wanted | None


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
    content = query_terms(text)
    return Asked(
        text=text,
        terms=tuple(content),
        date_terms=tuple(term for term in content if term.isdecimal() or term in _DATES),
        literals=_distinct(found),
        identifying=any(not (literal.quoted or literal.plain) for literal in found),
        concrete=len(found) == 1 and _is_whole(text, found[0]),
        kind=kind_of(text),
        particulars=particulars(_unquoted(text, found)),
        names=frozenset(_names(text)),
        wanted=wanted_in(text),
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


# -- Names in a query

_NAME = lazy_pattern(r"[^\W\d_][\w.-]*(?:['’](?!s\b)[\w.-]+)*")


def _names(text: str) -> Iterator[int]:
    for match in _NAME.finditer(text):
        name = match[0].rstrip(".-")
        if name.casefold() not in _ROLES:
            yield name_hash(name)

"""The type of answer that a question wants (a person, a reason, an amount), and whether a note can hold one.

"Who repaired the roof?" has no answer in "The roof was repaired", though every word of it is there: a note
that adds nothing to the question, or nothing of the type that is asked for, does not answer it.
"""

import enum
import re

from vestige.cognition.english.words import OWNERS, PRONOUNS, Word, all_words_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

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

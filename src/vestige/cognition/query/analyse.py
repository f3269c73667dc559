"""Query analysis: words, literals, kind of question, time and names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vestige.cognition.query.literals import Literal, literals
from vestige.cognition.query.names import Particular, particulars
from vestige.cognition.query.questions import QuestionKind, kind_of
from vestige.cognition.text.analyser import QueryWord, query_terms, query_words, terms
from vestige.cognition.text.form import name_hash
from vestige.cognition.time.calendar import MONTHS

MAX_LITERALS = 16
"""The limit of literals: the store looks for each separately."""

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
    word that could be a person's name.
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
    )


def _distinct(found: Sequence[Literal]) -> tuple[str, ...]:
    distinct = {literal.text.casefold(): literal.text for literal in reversed(found)}
    return tuple(reversed(distinct.values()))[:MAX_LITERALS]


def content_words(text: str) -> list[QueryWord]:
    """The words of a query that carry weight: modal ones do not, unless there are no others."""
    words = query_words(text)
    return [word for word, modal in zip(words, _modal(text, words), strict=True) if not modal]


def _modal(text: str, words: Sequence[QueryWord]) -> tuple[bool, ...]:
    """Which words are modal; none if the query has no others."""
    marks = tuple(_is_modal(text, word) for word in words)
    content = any(not (mark or word.stop) for mark, word in zip(marks, words, strict=True))
    return marks if content else (False,) * len(words)


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


# -- names ---------------------------------------------------------------------------------------

_NAME = re.compile(r"[^\W\d_][\w.-]*(?:['’](?!s\b)[\w.-]+)*")


def _names(text: str) -> Iterator[int]:
    for match in _NAME.finditer(text):
        name = match[0].rstrip(".-")
        if name.casefold() not in _ROLES:
            yield name_hash(name)

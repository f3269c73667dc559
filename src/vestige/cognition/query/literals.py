"""Literals of a query: quoted text, identifiers, paths, codes and ids, which must occur as they are.

Each token is judged as a whole and is of bounded length, so that no text takes more than linear time.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from vestige.cognition.text.analyser import searchable, terms
from vestige.cognition.text.word_lists import sections
from vestige.core.models import Memory

MAX_LITERAL_CHARS = 400
# An apostrophe is more often no quotation mark.
_QUOTED = re.compile(
    r"\"[^\"\n]+\"|“[^“”\n]+”|„[^„“”\n]+[“”]|«[^«»\n]+»|「[^「」\n]+」|`[^`\n]+`"
    r"|(?<![\w'])'(?![\s'])[^'\n]{2,80}'(?!\w)"
)
_SPACED = re.compile(r"\S+")
# Ideographs and kana stand beside a name without a space.
_TOKEN = re.compile(r"[^\s,;|=(){}<>\[\]\"“”„«»「」`\u3000-\u9fff\uac00-\ud7a3]+")
_CLOSING = "'’*!?.,;:"
_OPENING = "'‘*!?,;:"
_POSSESSIVE = re.compile(r"['’]s$")
_LINE_NUMBER = re.compile(r"(?::[0-9]+){1,2}$")
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|www\.)[\w\[].*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A text that must occur as it is, and its characters in the query.

    A `plain` one is a word that people also write in prose, such as YouTube. A `quoted` one may be a title
    that a memory paraphrases. Every other one is an id of some kind.
    """

    text: str
    start: int
    end: int
    plain: bool = False
    quoted: bool = False


_SHAPES = tuple(map(re.compile, sections("vestige.cognition.query", "literals")[""]))
# Most words have none of these shapes.
_PLAIN_WORD = re.compile(r"[^\W\d_][^\W\d_A-Z]*|[0-9]{1,3}")
# Ticket #48213, v2.3.1: some write the sign, and some do not.
_OPTIONAL = re.compile(r"^(?:#(?=[0-9]{4})|v(?=(?:[0-9]+\.){2}))")
# YouTube, PostgreSQL, iPhone
_HUMPED = re.compile(r"(?:[A-Z][a-z0-9]+|[a-z])(?:[A-Z][a-z0-9]*)+")


def literals(text: str) -> Iterator[Literal]:
    """The literals of a text from left to right, with repeats."""
    at = 0
    for quoted in _QUOTED.finditer(text):
        inside = quoted[0][1:-1].strip()
        if 2 <= len(inside) <= MAX_LITERAL_CHARS and any(map(str.isalnum, inside)):
            yield from _unquoted(text, at, quoted.start())
            yield Literal(text=inside, start=quoted.start(), end=quoted.end(), quoted=True)
            at = quoted.end()
    yield from _unquoted(text, at, len(text))


def _unquoted(text: str, start: int, end: int) -> Iterator[Literal]:
    for spaced in _SPACED.finditer(text, start, end):
        found = _trimmed(text, spaced.start(), spaced.end())
        if "://" in spaced[0] or "www." in spaced[0]:
            where = _URL.search(text, found[0], found[1])
            if where and where.end() - where.start() <= MAX_LITERAL_CHARS:
                yield Literal(text=where[0].rstrip(")]}>"), start=where.start(), end=where.end())
            continue
        for token in _TOKEN.finditer(text, *found):
            yield from _judged(text, *_trimmed(text, token.start(), token.end()))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The token without surrounding punctuation."""
    opened = text[start:end].lstrip(_OPENING)
    closed = _POSSESSIVE.sub("", opened.rstrip(_CLOSING))
    start = end - len(opened)
    return start, start + len(closed)


def _judged(text: str, start: int, end: int) -> Iterator[Literal]:
    if not 2 <= end - start <= MAX_LITERAL_CHARS or _PLAIN_WORD.fullmatch(text, start, end):
        return
    token = _LINE_NUMBER.sub("", text[start:end])
    for written in dict.fromkeys((text[start:end], token)):
        if any(shape.fullmatch(written) for shape in _SHAPES):
            yield Literal(text=_OPTIONAL.sub("", written), start=start, end=end)
            return
    if _HUMPED.fullmatch(token):
        yield Literal(text=token, start=start, end=end, plain=True)


# -- whether a memory holds a literal -------------------------------------------------------------

COMMON = 2_000  # A literal that more than this many of the findable memories may hold finds none by itself.
_JOINTS = re.compile(r"[-._/\\:@&]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u02b9", "'"))


def folded(text: str) -> str:
    """A text without letter case, widths and ligatures, with ASCII apostrophes, and with single spaces."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    return " ".join(text.casefold().split())


@lru_cache(maxsize=256)
def literal_terms(literal: str) -> frozenset[str]:
    """The index terms a memory must have to hold a literal: those of its separate words. Their join is not a
    term of a text that goes on without a space, as `main.py` does in `main.py:12`."""
    return frozenset(terms(_JOINTS.sub(" ", literal)))


def names(literal: str, memory_id: str, source: str | None) -> bool:
    """Whether the literal is a memory's id, as written or in lower case, or its source."""
    plain = literal.strip()
    return memory_id in (plain, plain.lower()) or source == plain


def written_in(memory: Memory, literal: str) -> bool:
    """Whether the literal occurs in a memory's text or a tag, even inside a longer word, or names it."""
    return names(literal, memory.id, memory.source) or _stands_in(literal, _texts(memory))


def held(literals: Iterable[str], memory: Memory, known: Collection[str]) -> int:
    """How many of the literals a memory with these index terms holds in its text or a tag, or is named by. A
    number is held however it is grouped: 48,213 has the term of 48213."""
    texts: list[str] = []  # folded when first needed, and once
    count = 0
    for literal in literals:
        needed = literal_terms(literal)
        if names(literal, memory.id, memory.source):
            count += 1
        elif needed and needed <= frozenset(known):
            texts = texts or _texts(memory)
            count += literal.isdecimal() or _stands_in(literal, texts)
    return count


def _texts(memory: Memory) -> list[str]:
    return [folded(text) for text in (searchable(memory), *memory.tags)]


def _stands_in(literal: str, texts: Iterable[str]) -> bool:
    sought = folded(literal)
    return any(sought in text for text in texts)

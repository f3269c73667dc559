"""Texts that must occur as they are: what it means that a memory holds one."""

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache

from vestige.cognition.text import searchable, terms
from vestige.models import Memory

COMMON = 2_000
"""A literal that more memories may hold than this, of those that may be found, finds none by itself."""
_JOINTS = re.compile(r"[-._/\\:@&]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u02b9", "'"))


def folded(text: str) -> str:
    """A text without letter case, widths and ligatures, with typewriter apostrophes, and with each run of
    white space as one space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    return " ".join(text.casefold().split())


@lru_cache(maxsize=256)
def literal_terms(literal: str) -> frozenset[str]:
    """The index terms a memory must have to hold a literal: those of its words apart.

    What they are together is no term of a text that goes on without a space, as `main.py` does in
    `main.py:12`.
    """
    return frozenset(terms(_JOINTS.sub(" ", literal)))


def names(literal: str, memory_id: str, source: str | None) -> bool:
    """Whether the literal is a memory's id, as written or in lower case, or its source."""
    plain = literal.strip()
    return memory_id in (plain, plain.lower()) or source == plain


def written_in(memory: Memory, literal: str) -> bool:
    """Whether the literal stands in a memory's text or a tag, be it inside a longer word, or names it."""
    return names(literal, memory.id, memory.source) or _stands_in(literal, _texts(memory))


def held(literals: Iterable[str], memory: Memory, known: Collection[str]) -> int:
    """How many of the literals a memory with these index terms holds in its text or a tag, or is named by.

    A number is held however it is grouped: 48,213 has the term of 48213.
    """
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

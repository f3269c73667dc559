"""Texts that must occur as they are: what it means that a memory holds one."""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from vestige.cognition.text import searchable, terms
from vestige.models import Memory

COMMON = 2_000
"""A literal that more memories may hold than this, of those that may be found, finds none by itself."""
_JOINTS = re.compile(r"[-._/\\:@&]+")


def folded(text: str) -> str:
    """A text without letter case, and with each run of white space as one space."""
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


def held(literals: Iterable[str], memory: Memory, known: Collection[str]) -> int:
    """How many of the literals a memory with these index terms holds in its text or a tag, or is named by."""
    texts: list[str] = []  # folded when first needed, and once
    count = 0
    for literal in literals:
        needed = literal_terms(literal)
        if names(literal, memory.id, memory.source):
            count += 1
        elif needed and needed <= frozenset(known):
            texts = texts or [folded(text) for text in (searchable(memory), *memory.tags)]
            count += any(folded(literal) in text for text in texts)
    return count

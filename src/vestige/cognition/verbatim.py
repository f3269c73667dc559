"""Texts that must occur as they are: what it means that a memory holds one."""

import re
from collections.abc import Collection

from vestige.cognition.text import searchable, terms
from vestige.models import Memory

COMMON = 2_000
"""A literal whose terms more memories hold than this finds none of them by itself."""
_JOINTS = re.compile(r"[-._/\\:@&]+")


def folded(text: str) -> str:
    """A text without letter case, and with each run of white space as one space."""
    return " ".join(text.casefold().split())


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


def holds(literal: str, memory: Memory, known: Collection[str]) -> bool:
    """Whether a memory with these index terms holds a literal in its text or a tag, or is named by it."""
    if names(literal, memory.id, memory.source):
        return True
    wanted, needed = folded(literal), literal_terms(literal)
    if not needed or not needed <= set(known):
        return False
    return any(wanted in folded(text) for text in (searchable(memory), *memory.tags))

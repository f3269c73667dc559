"""Which of many fixed texts occur in a text.

Looking for each of them takes most of the time of a search for secrets. Most of them lie within a word, and
texts repeat their words, so what a word has is remembered.
"""

from collections.abc import Iterable
from functools import lru_cache

from vestige.core.patterns import lazy_pattern

KEPT_WORDS, LONGEST_KEPT = 8_192, 40
_WORD = lazy_pattern("[A-Za-z0-9_]+")


class HintSet:
    """A set of hints, each with a bit. `<pin>` is a word by itself, any other hint may be a part of one."""

    def __init__(self, hints: Iterable[str]) -> None:
        self._bits: dict[str, int] = {}
        self._inner: dict[str, int] = {}
        self._whole: dict[str, int] = {}
        self._joined: dict[int, list[tuple[str, int]]] = {}
        """Hints of several words or with signs, by the bit of their longest word."""
        self._parts = 0
        self._signs: list[tuple[str, int]] = []
        self._foreign: list[tuple[str, int]] = []
        """Hints that no ASCII text has."""
        for hint in dict.fromkeys(hints):
            self._add(hint)
        self._of_word = lru_cache(maxsize=KEPT_WORDS)(self._look)

    def mask(self, hints: Iterable[str]) -> int:
        """The bits of some hints."""
        made = 0
        for hint in hints:
            made |= self._bits[hint]
        return made

    def found(self, text: str) -> int:
        """The bits of the hints that occur in a text, and others."""
        found = 0
        for word in set(_WORD.findall(text)):
            found |= self._of_word(word) if len(word) <= LONGEST_KEPT else self._look(word)
        for hint, bit in self._signs if text.isascii() else (*self._signs, *self._foreign):
            if hint in text:
                found |= bit
        parts = found & self._parts
        while parts:
            part = parts & -parts
            parts ^= part
            for hint, bit in self._joined[part]:
                if hint in text:
                    found |= bit
        return found

    def _add(self, hint: str) -> None:
        bit = self._bit(hint)
        words = _WORD.findall(hint)
        if hint.startswith("<") and hint.endswith(">"):
            self._whole[hint[1:-1]] = bit
        elif not hint.isascii():
            self._foreign.append((hint, bit))
        elif not words:
            self._signs.append((hint, bit))
        elif words == [hint]:
            self._inner[hint] = bit
        else:
            part = max(words, key=len)
            self._inner[part] = found = self._bit(part)
            self._joined.setdefault(found, []).append((hint, bit))
            self._parts |= found

    def _bit(self, hint: str) -> int:
        return self._bits.setdefault(hint, 1 << len(self._bits))

    def _look(self, word: str) -> int:
        found = self._whole.get(word, 0)
        for hint, bit in self._inner.items():
            if hint in word:
                found |= bit
        return found

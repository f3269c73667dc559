"""The word pieces of plain texts, looked up in a sorted list that is made at installation.

Loading the tokenizer takes longer than the rest of an embedding, and a query has ten words. Only plain texts
are read here: printable ASCII without an opening bracket, which could begin a special token. All others are
left to the tokenizer, and so are all texts of a tokenizer with other rules, for which no list is made.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from vestige.core.patterns import lazy_pattern

PLAIN_CHARS = 5000
"""The characters of plain texts that take as long as loading the tokenizer."""
MOST_CHARS = 100
"""The characters of the longest word that is divided."""
UNKNOWN = "[UNK]"

Pieces = tuple[list[int], list[tuple[int, int]]]
"""Ids, and the characters of the text that each stands for."""

_RULES = {
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
_MODEL = {
    "type": "WordPiece",
    "unk_token": UNKNOWN,
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": MOST_CHARS,
}
_NOT_PLAIN = lazy_pattern(r"[^\t\n\r -Z\\\]-~]")
_WORD = lazy_pattern(r"[A-Za-z0-9]+|[!-/:-@\\-`{-~]")


def sorted_pieces(tokenizer: bytes) -> bytes:
    """The list of the pieces in the file of a tokenizer, a piece and its id on a line; empty if it has other
    rules."""
    content: Mapping[str, Any] = orjson.loads(tokenizer)
    model = dict(content["model"])
    vocabulary = model.pop("vocab", None)
    if model != _MODEL or any(content[name] != rule for name, rule in _RULES.items()):
        return b""
    return b"".join(sorted(f"{piece} {number}\n".encode() for piece, number in vocabulary.items()))


class WordPieces:
    """The pieces in such a list."""

    def __init__(self, lines: bytes) -> None:
        self._lines = lines
        self._left = PLAIN_CHARS

    def id_of(self, piece: str) -> int | None:
        """The id of a piece, or None if the list lacks it."""
        wanted = f"{piece} ".encode()
        low, high = 0, len(self._lines)
        while low < high:
            middle = (low + high) // 2
            start = max(low, self._lines.rfind(b"\n", low, middle) + 1)
            end = self._lines.index(b"\n", middle)
            line = self._lines[start:end]
            if line.startswith(wanted):
                return int(line[len(wanted) :])
            if line < wanted:
                low = end + 1
            else:
                high = start
        return None

    def read(self, text: str) -> Pieces | None:
        """The pieces of a text; None for one that is not plain, or when loading the tokenizer is worth it."""
        self._left -= len(text)
        if self._left < 0 or _NOT_PLAIN.search(text):
            return None
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for word in _WORD.finditer(text):
            for number, start, end in self._divided(word):
                ids.append(number)
                spans.append((start, end))
        return ids, spans

    def _divided(self, word: re.Match[str]) -> list[tuple[int, int, int]]:
        """The pieces of a word, each as long as possible; the unknown one if that is not possible."""
        lower, at = word[0].lower(), word.start()
        found: list[tuple[int, int, int]] = []
        start, end = 0, len(lower)
        while start < end <= MOST_CHARS:
            number = self.id_of(("##" if start else "") + lower[start:end])
            if number is None:
                end -= 1
            else:
                found.append((number, at + start, at + end))
                start, end = end, len(lower)
        if start < len(lower):
            return [(self.id_of(UNKNOWN) or 0, at, at + len(lower))]
        return found

"""Pieces: a long text cut so that an embedding model sees each piece whole.

The default model reads 256 word pieces and ignores the rest, so a piece stays well below that. It ends at the
end of a paragraph if one is near, else of a sentence, else of a word, and overlaps the piece before it, so
that no thought is split in all of its pieces.
"""

import math
import re
from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

MAX_CHARS = 1_200
OVERLAP_CHARS = 120
MAX_TOKENS = 250

# Word pieces by kind of character, the first of a run and each further one: space, letter, digit, sign and
# other scripts. Fitted, on the high side, to chat, issues, transcripts and code with BERT's vocabulary.
_SPACE, _LETTER, _DIGIT, _SIGN, _OTHER = range(5)
_FIRST = np.array([0.0, 0.8, 1.0, 1.0, 1.0])
_FURTHER = np.array([0.0, 0.12, 0.4, 1.0, 1.0])
# From this length on a word is a key, a digest or base64: nothing the vocabulary knows.
_UNBROKEN_CHARS = 20
_UNBROKEN_COST = 0.65

_UNBROKEN = re.compile(rf"[A-Za-z0-9]{{{_UNBROKEN_CHARS},}}")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_SENTENCE = re.compile(r"[.!?][\"')\]]*\s+|[。！？…]|\n")
_WORD = re.compile(r"\s+")


def estimate_tokens(text: str) -> int:
    """An estimate of the number of word pieces of a text, without a model."""
    return math.ceil(float(_costs(text).sum()) - 1e-6)


def cut(text: str, *, max_chars: int = MAX_CHARS, overlap: int = OVERLAP_CHARS) -> list[tuple[int, int]]:
    """The (start, end) spans of a text's pieces, in order; together they hold all but white space.

    No span is longer than `max_chars` or, by estimate, than MAX_TOKENS. A blank text has no pieces.
    """
    if not 0 <= overlap < max_chars:
        raise ValueError("the overlap must be shorter than a piece")
    if len(text) <= min(max_chars, MAX_TOKENS):
        # Most memories are this short, and no text has more word pieces than characters.
        start = len(text) - len(text.lstrip())
        return [(start, len(text.rstrip()))] if start < len(text) else []
    return _Cutter(text, max_chars, overlap).spans()


class _Cutter:
    """A text and the data by which it is cut."""

    def __init__(self, text: str, max_chars: int, overlap: int) -> None:
        self.text, self.max_chars, self.overlap = text, max_chars, overlap
        self.length = len(text.rstrip())
        self.cost_until = np.concatenate([[0.0], np.cumsum(_costs(text))])
        # Places where a piece may end and the next begin, the best kind first.
        self.borders = [[m.end() for m in kind.finditer(text)] for kind in (_PARAGRAPH, _SENTENCE, _WORD)]

    def spans(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        start = new = self._skip_space(0)  # `new` is the first character that no piece holds yet
        while new < self.length:
            border = self._border(start, new)
            if border <= new:  # the overlap leaves no room for anything new
                start = new
                continue
            end = start + len(self.text[start:border].rstrip())
            found.append((start, end))
            start, new = self._next_start(start, end), self._skip_space(border)
        return found

    def _border(self, start: int, new: int) -> int:
        """The best border in the second half of what fits and behind `new`, or else all that fits."""
        # Less one: cut off from its word, the first character may count for a whole word piece.
        affordable = self.cost_until[start] + MAX_TOKENS - 1
        limit = min(start + self.max_chars, int(np.searchsorted(self.cost_until, affordable, "right")) - 1)
        if limit >= self.length:
            return self.length
        for borders in self.borders:
            at = bisect_right(borders, limit) - 1
            if at >= 0 and borders[at] > max(new, (start + limit) // 2):
                return borders[at]
        return limit

    def _next_start(self, start: int, end: int) -> int:
        """The first word within the overlap before `end`, but not in the first half of the piece."""
        earliest = max(end - self.overlap, (start + end + 1) // 2)
        words = self.borders[-1]
        at = bisect_left(words, earliest)
        return self._skip_space(words[at] if at < len(words) and words[at] <= end else earliest)

    def _skip_space(self, start: int) -> int:
        while start < self.length and self.text[start].isspace():
            start += 1
        return start


def _costs(text: str) -> NDArray[np.float64]:
    """The estimated word pieces of each character."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _KIND_OF_ASCII[np.minimum(codes, 0x80)]
    first = np.diff(kinds, prepend=_SPACE) != 0
    costs: NDArray[np.float64] = np.where(first, _FIRST[kinds], _FURTHER[kinds])
    for run in _UNBROKEN.finditer(text):
        costs[run.start() : run.end()] = np.maximum(costs[run.start() : run.end()], _UNBROKEN_COST)
    return costs


def _kind(code: int) -> int:
    character = chr(code)
    if code >= 0x80:
        return _OTHER
    if character.isalpha():
        return _LETTER
    if character.isdigit():
        return _DIGIT
    return _SPACE if code <= ord(" ") else _SIGN


_KIND_OF_ASCII = np.array([_kind(code) for code in range(0x81)])

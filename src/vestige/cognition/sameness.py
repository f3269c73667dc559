"""The same words in the same order: what is left of a text without its typography.

Case, width, quotation marks, markdown, punctuation and spacing may differ. A sign, a decimal point, a
question mark, an operator or a glob make another text: "1.5" is not "15", "-5" not "5", "*.py" not ".py".
"""

import re
import unicodedata
from functools import lru_cache

# Everything but exponents, indices and fractions, which must not melt into the number beside them.
_COMPATIBLE = re.compile("[^\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u215f\u2189]+")
_ALIKE = str.maketrans(
    {**dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"), "’": "'", "‘": "'", "ʼ": "'"}
)
_MARKER = re.compile(r"^[ \t]*(?:[-*+•‣][ \t]+|#{1,6}[ \t]+|>[ \t]+)+", re.MULTILINE)
_EMPHASIS = (
    re.compile(r"(`{1,3})([^`]+)\1"),
    re.compile(r"(\*{1,3})(?=\S)([^*\n]+)(?<=\S)\1"),
    re.compile(r"(?<!\w)(_{1,3})(?=\S)([^\n]+?)(?<=\S)\1(?!\w)"),
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_OPENING = "\"'“”„«»「『([{"
_CLOSING = "\"'“”„«»」』,;:!…、。"
_BRACKETS = {")": "(", "]": "[", "}": "{"}


def same_words(left: str, right: str) -> bool:
    """Whether two texts differ in typography only."""
    found = bare(left)
    return bool(found) and found == bare(right)


@lru_cache(maxsize=64)
def bare(text: str) -> str:
    """The words of a text, one space between them."""
    plain = _MARKER.sub("", text.casefold() if text.isascii() else _ascii_signs(text))
    for emphasis in _EMPHASIS:
        plain = emphasis.sub(r"\2", plain)
    words = (_word(written) for written in _HYPHEN.sub(" ", plain).split())
    return " ".join(word for word in words if word)


def _ascii_signs(text: str) -> str:
    """The text in its compatible form, with plain dashes and apostrophes and nothing invisible."""
    plain = _COMPATIBLE.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text).casefold()
    return "".join(sign for sign in plain.translate(_ALIKE) if unicodedata.category(sign) != "Cf")


def _word(written: str) -> str:
    """One word without the punctuation round it; nothing where there is no more than that."""
    if set(written) <= {"-", ":", ";", ","}:
        return ""
    word = written.lstrip(_OPENING)
    while word and (word[-1] in _CLOSING or _is_loose(word)):
        word = word[:-1]
    return _THOUSANDS.sub("", word)


def _is_loose(word: str) -> bool:
    """Whether a text's last sign closes something that does not open in it, or is a full stop.

    The dots of `cd ..` and `src/.` are words themselves.
    """
    if word[-1] in _BRACKETS:
        return _BRACKETS[word[-1]] not in word
    before = word.rstrip(".")[-1:]
    return word[-1] == "." and (before.isalnum() or before in ("%", *_CLOSING, *_BRACKETS))

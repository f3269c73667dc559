"""The shapes that providers give their keys, so that a scanner can tell them.

Each shape begins with fixed text or comes with a word that must occur, which is looked for first. Parts that
repeat are bounded or end where a key cannot go on, so that no text takes more than linear time.
"""

import re
from dataclasses import dataclass

from vestige.cognition.text.word_lists import sections

TELLING = 4
"""A beginning of so many characters is not met by chance."""
_END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a kind of key looks like. `hint` occurs in every text that holds one.

    The group `secret` is the key where it is not all that matches, `drawn` the part of it that is random.
    Where the shape is `telling`, that may by chance look like a word.
    """

    kind: str
    hint: str
    pattern: re.Pattern[str]
    telling: bool = False


def _prefixed(line: str) -> Shape:
    """A key that begins with its hint, not in the middle of a word."""
    kind, hint, rest = (part.strip() for part in line.split(" | "))
    # The look behind comes second, so that the fixed text is what is searched for.
    begin = f"{re.escape(hint)}(?<![A-Za-z0-9]{re.escape(hint)})"
    pattern = re.compile(f"{begin}(?P<drawn>{rest}){_END}", re.ASCII)
    return Shape(kind=kind, hint=hint, pattern=pattern, telling=len(hint) >= TELLING)


def _shaped(line: str) -> Shape:
    kind, hint, telling, pattern = line.split(" | ", 3)
    return Shape(
        kind=kind,
        hint="" if hint == "-" else hint,
        pattern=re.compile(pattern, re.ASCII),
        telling=telling == "telling",
    )


_LISTS = sections("vestige.cognition.secrets", "provider_keys")


SHAPES = (*map(_prefixed, _LISTS["prefixes"]), *map(_shaped, _LISTS["others"]))
"""Every shape, the more telling of two that begin alike first."""

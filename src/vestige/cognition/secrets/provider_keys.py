"""The shapes of provider keys.

Each shape begins with fixed text or requires a word, which is looked for first. Repetitions are bounded or
end where a key cannot go on, so that no text takes more than linear time.
"""

import re

from vestige.cognition.text.word_lists import sections
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

DISTINCTIVE_CHARS = 4  # A prefix of this many characters does not occur by chance.
_END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a kind of key. `hint` occurs in every text that holds one.

    The group `secret` is the key if it is not the whole match, `drawn` its random part. If the shape is
    `distinctive`, that part may look like a word by chance.
    """

    kind: str
    hint: str
    pattern: re.Pattern[str]
    distinctive: bool = False


def _prefixed(line: str) -> Shape:
    """A key that begins with its hint, not in the middle of a word."""
    kind, hint, rest = (part.strip() for part in line.split(" | "))
    # The look behind comes second, so that the fixed text is what is searched for.
    begin = f"{re.escape(hint)}(?<![A-Za-z0-9]{re.escape(hint)})"
    pattern = lazy_pattern(f"{begin}(?P<drawn>{rest}){_END}", re.ASCII)
    return Shape(kind=kind, hint=hint, pattern=pattern, distinctive=len(hint) >= DISTINCTIVE_CHARS)


def _shaped(line: str) -> Shape:
    kind, hint, flag, pattern = line.split(" | ", 3)
    return Shape(
        kind=kind,
        hint="" if hint == "-" else hint,
        pattern=lazy_pattern(pattern, re.ASCII),
        distinctive=flag == "distinctive",
    )


_LISTS = sections("vestige.cognition.secrets", "provider_keys")


SHAPES = (*map(_prefixed, _LISTS["prefixes"]), *map(_shaped, _LISTS["others"]))
"""Every shape, the more distinctive of two with the same beginning first."""

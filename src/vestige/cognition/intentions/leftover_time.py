"""Words that look like a time but were not read: none may be left beside a time that was read."""

import re

from vestige.cognition.time.expressions import COUNTS, MONTH_NUMBERS, WEEKDAY_NUMBERS
from vestige.core.patterns import lazy_pattern

NAMED_CHARS = 60  # The limit of characters of a sentence that are quoted.

_MONTH = rf"(?:{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\b\.?"
_UNIT = (
    r"(?:second|sec|minute|min|hour|hr|day|week|weekend|weekday|month|quarter|year|morning|afternoon|evening|"
    r"night)s?\b"
)
_ZONE = (
    r"(?-i:(?:[CEMPW]E?[SD]?T|CEST|EEST|EET|WEST|MSK|BST|IST|JST|A[CEW][SD]T|SGT|HKT|NZ[SD]T|"
    r"[A-Z]\w+/[A-Z]\w+)\b)"
)
"""Names of time zones, which are not supported: some are ambiguous, and all change with the season."""
_PART = r"(?:morning|afternoon|evening|night)\b"
_DAY = rf"(?:{'|'.join(WEEKDAY_NUMBERS)})s?\b(?!['’]s)"
_NUMBER = rf"(?:[0-9]+(?:[.,][0-9]+)?|{'|'.join(COUNTS)})"
_ORDINAL = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_TIME = (
    rf"(?:{_DAY}|tomorrow\b(?!['’]s)|today\b(?!['’]s)|tonight\b|(?:hour|dai|week|month|year)ly\b|annually\b|"
    rf"weekends?\b|weekdays?\b|noon\b|midnight\b|in the {_PART}|(?:in )?{_NUMBER} ?{_UNIT}(?: from now\b)?|"
    rf"in [0-9.,]+ ?[hms]\b|(?:every|each|other|next|this) {_UNIT}|end of (?:the )?{_UNIT}|"
    rf"(?:at [0-9]{{1,2}}(?:[:.][0-9]{{2}})?(?: ?[ap]m)?|[0-9]{{1,2}}:[0-9]{{2}}|"
    rf"[0-9]{{1,2}} ?[ap]m)\b(?: ?{_ZONE})?|"
    r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?:T\S+)?|"
    rf"{_MONTH} {_ORDINAL}(?:,? [0-9]{{4}})?\b|{_ORDINAL} (?:of )?{_MONTH}(?:,? [0-9]{{4}})?)"
)
_JOINT = (
    r"(?:or|and|of|to|from|until|till|starting|beginning|through|except|but|not|every|each|between|before|"
    r"after|since|for|about|the|than|least|first|second|third|fourth|last|around|approximately|roughly|only)"
)
_ENDS = lazy_pattern(rf"(?:^|(?<= ))(?:{_TIME}|{_JOINT})$", re.IGNORECASE)
_BEGINS = lazy_pattern(
    rf"(?:(?:on|by|every|each) )?{_TIME}|(?:or|and|until|till|starting|beginning|through|except|but|"
    rf"not)\b|{_ZONE}|{_PART}",
    re.IGNORECASE,
)
_OVER = (
    rf"(?:the day before )?yesterday\b(?!['’]s)(?: {_PART})?|last (?:{_UNIT}|{_DAY})|"
    rf"{_NUMBER} ?{_UNIT} ago\b|on [0-9]{{1,2}}/[0-9]{{1,2}}\b"
)
_LOOKS = lazy_pattern(
    r"(?<![\w:./-])(?:(?:on|by|every|each|starting|from|before|until|after) )?"
    rf"(?:{_OVER}|(?:the )?(?:(?:first|second|third|fourth|last) )?{_TIME})",
    re.IGNORECASE,
)


def ends_in_time(words: str) -> bool:
    """Whether words end with more of a time, or with a word that joins it: `every day`, `monday or`."""
    return _ENDS.search(words) is not None


def begins_with_time(words: str) -> bool:
    """Whether words begin with more of a time."""
    return _BEGINS.match(words) is not None


def time_like(text: str) -> str | None:
    """The words in a text that look like a time."""
    found = list(_LOOKS.finditer(text))
    if not found:
        return None
    start, end = found[0].start(), found[-1].end()
    return text[start : end if end - start <= NAMED_CHARS else found[0].end()].strip()

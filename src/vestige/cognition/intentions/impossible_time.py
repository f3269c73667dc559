"""Impossible times: `every February 30`, `on 2026-02-31`, `at 25:00`, `every 0 days`.

Such words are meant as a time, so they must not become part of what is to be done. Only words at the
beginning or the end of a sentence are read as a time.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime

from vestige.cognition.intentions.parse import READ_CHARS
from vestige.cognition.time.expressions import MONTH_NUMBERS
from vestige.core.errors import InvalidInput
from vestige.core.patterns import lazy_pattern

Groups = Mapping[str, str | None]  # The named groups of a matched phrase.


def check_comes(text: str) -> None:
    """Raise InvalidInput for a sentence with an impossible time."""
    words = never_comes(text)
    if words is not None:
        raise InvalidInput(
            f'"{words}" is not a possible time.',
            hint="Give a possible time (`on 2026-03-01 at 14:00`, `every month on the last day`), or give a "
            '`trigger`: {"at": "2026-03-01T14:00Z"}, or {"type": "manual"} if no time is meant.',
            details={"argument": "description", "words": words},
        )


def never_comes(text: str) -> str | None:
    """The words of a sentence that name an impossible time."""
    plain = " ".join(text.split())
    if len(plain) > READ_CHARS:
        return None
    for form, impossible in _FORMS:
        for found in form.finditer(plain):
            at_edge = _BEGINS.fullmatch(plain[: found.start()]) or _ENDS.fullmatch(plain[found.end() :])
            if at_edge and impossible(found.groupdict()):
                return found[0]
    return None


_LEAP_YEAR = 2028  # Any leap year: without a year, the 29th of February does come.


def _no_day(said: Groups) -> bool:
    month = MONTH_NUMBERS[(said["month"] or "").casefold()]
    return not _exists(lambda: date(int(said["year"] or _LEAP_YEAR), month, int(said["day"] or 0)))


def _no_moment(said: Groups) -> bool:
    return not _exists(lambda: datetime.fromisoformat(said["iso"] or ""))


def _exists(made: Callable[[], date]) -> bool:
    try:
        made()
    except ValueError:
        return False
    return True


def _no_clock(said: Groups) -> bool:
    hour, minute = int(said["hour"] or 0), int(said.get("minute") or 0)
    return minute > 59 or (not 1 <= hour <= 12 if said["half"] else hour > 23)


def _no_day_of_months(said: Groups) -> bool:
    return not 1 <= int(said["day"] or 0) <= 31


def _never(_: Groups) -> bool:
    return True


_AT = r"(?:at|@|by|before|until) ?"
_ON = r"(?:(?:every year )?on|every|each|by|before|until|from|starting) (?:the )?"
_TH = r"(?:st|nd|rd|th)"
_NUMBER = r"(?P<day>[0-9]{1,3})"
_MONTH = rf"(?P<month>{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\b\.?"
_YEAR = r"(?:,? (?P<year>[0-9]{4}))?\b"
_HALF = r"(?P<half>[ap]\.?m\b\.?)"
_ISO_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_FORMS = tuple(
    (lazy_pattern(rf"(?<![\w.:-]){pattern}(?![\w-]|:[0-9])", re.IGNORECASE), impossible)
    for pattern, impossible in (
        (rf"{_ON}{_NUMBER}{_TH}? (?:of )?{_MONTH}{_YEAR}", _no_day),
        (rf"{_ON}{_MONTH} (?:the )?{_NUMBER}{_TH}?{_YEAR}", _no_day),
        (rf"(?:the )?{_NUMBER}{_TH} of {_MONTH}{_YEAR}", _no_day),
        (rf"(?:(?:at|{_ON}) ?)?(?P<iso>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:{_ISO_CLOCK})?)", _no_moment),
        (rf"{_AT}(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}})(?: ?{_HALF})?", _no_clock),
        (rf"{_AT}(?P<hour>[0-9]{{1,2}}) ?{_HALF}", _no_clock),
        (r"(?:every|each) (?:0+|zero) (?:minute|min|hour|hr|day|week|month|year)s?", _never),
        (rf"(?:(?:every|each) month|monthly) on (?:the |day )*{_NUMBER}{_TH}?", _no_day_of_months),
        (rf"(?:on )?(?:the )?{_NUMBER}{_TH} (?:day )?of (?:every|each|the) month", _no_day_of_months),
    )
)
_BEGINS = lazy_pattern(
    r"(?:[\w -]{1,20}: ?)?(?:(?:please )?(?:remind me|don['’]?t (?:let me )?forget|remember|"
    r"make sure))?[ :,]*",
    re.IGNORECASE,
)
_ENDS = lazy_pattern(
    r"(?:,? (?:every|each|on|at|by|before|until|from|starting|utc|gmt)\b.*)?[ ,;:.!?)–-]*", re.IGNORECASE
)

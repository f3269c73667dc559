"""Quantities in a text, in one normal form: numbers with units, money, versions, times and dates.

"3 pm" and "15:00", "1.5 GB" and "1536 MB", "two" and "2", "half an hour" and "30 minutes" are equal; 3.1 and
3.10 are not (versions). A fraction of a thing and the whole thing are numbers: half a cup, a full cup.
"""

import re
from collections.abc import Iterator

from vestige.cognition.text.word_lists import sections, words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """The characters `start`..`end` of a text that state an amount, a version or a time. Two with the same
    `key` are equal; two with the same `unit` can be compared."""

    start: int
    end: int
    key: str
    unit: str


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBER_WORDS = {word: number for number, word in enumerate(_SMALL)}
_NUMBER_WORDS |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
_NUMBER_WORDS |= {"dozen": 12, "hundred": 100, "thousand": 1000}
_ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
}
_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH_NUMBERS = {
    form: number for number, name in enumerate(_MONTHS, start=1) for form in (name, name[:3], f"{name[:3]}t")
}

_SECTIONS = sections("vestige.cognition.english", "units")
_PORTIONS = words(_SECTIONS.pop("portions"))
_UNITS = {
    form: (kind, float(size))
    for kind, lines in _SECTIONS.items()
    for size, *names in map(str.split, lines)
    for name in names
    for form in ((name, f"{name}s") if len(name) > 1 else (name,))
}

_MONTH = "|".join(
    (*_MONTHS, "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept", "sep", "oct", "nov", "dec")
)
# A longer list of groups is several numbers: each of its commas could begin one.
_FIGURE = r"\d{1,3}(?:,\d{3}){1,6}(?:\.\d+)?|\d+(?:\.\d+)*"
_WORDED = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))
_PLURALS = sorted((unit for unit in _UNITS if f"{unit}s" in _UNITS), key=len, reverse=True)
_UNIT = "|".join(f"{re.escape(unit)}s?" for unit in _PLURALS)
_SUFFIX = r"(?:st|nd|rd|th)"
_YEAR = r"(?:19|20)\d\d"
_COUNT = rf"{_FIGURE}|(?:{_WORDED})(?:-(?:{_WORDED}))?"
_LARGE = r"thousand|million|billion"
_PORTION = rf"(?:{'|'.join(sorted(_PORTIONS))})(?:e?s)?\b"
_SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}
_SHARE = "|".join(_SHARES)
_VULGAR = {"½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "¾": 3 / 4}
_WHOLE = "full|whole|entire"
_OF_WHICH = r"an?|the|each|every|my|our|your|his|her|its|their"
_REGULAR = "hourly|daily|nightly|weekly|fortnightly|biweekly|monthly|quarterly|yearly|annually"
_PATTERN = lazy_pattern(
    rf"""(?<![\w@/.-])(?:
      (?P<iso>\d{{4}}-\d{{2}}-\d{{2}})(?![\w-])
    | (?P<day_first>\d{{1,2}}){_SUFFIX}?\s(?:of\s)?(?P<month_second>{_MONTH})\b\.?
        (?:,?\s(?P<year_a>{_YEAR})\b)?
    | (?P<month_first>{_MONTH})\b\.?\s(?:the\s)?(?P<day_second>\d{{1,2}}){_SUFFIX}?(?![\w:.])
        (?:,?\s(?P<year_b>{_YEAR})\b)?
    | (?P<hour>\d{{1,2}})[:.](?P<minute>[0-5]\d)(?:\s?(?P<half_a>[ap])\.?m\b\.?
        |\sin\sthe\s(?P<half_d>morning|afternoon|evening)\b|(?<!\.\d\d)(?![\w:]|\.\d))
    | (?P<bare_hour>\d{{1,2}})\s?(?:(?P<half_b>[ap])\.?m\b|o['’]clock)
    | (?P<spoken>\d{{1,2}}|{_WORDED})\sin\sthe\s(?P<half_c>morning|afternoon|evening)\b
    | (?P<noon>noon|midday|midnight)\b
    | (?P<weekday>{"|".join(_WEEKDAYS)})s?\b
    | (?P<month>(?-i:{"|".join(name.title() for name in _MONTHS)}))\b(?:\s(?P<year_c>{_YEAR})\b)?
    | (?P<often>{_REGULAR}
        |(?:every|each|once\s(?:a|an|every|per))\s(?:hour|day|night|week|month|quarter|year))\b
    | (?<!first\s)(?<!second\s)(?<!third\s)(?<!fourth\s)(?<!other\s)(?<!last\s)(?<!latter\s)(?<!better\s)
      (?:(?P<parts>an?|one|two|three)[\s-])?(?P<share>{_SHARE})s?
        (?:\s(?:of\s)?(?:an?\s)?(?P<unit_a>{_UNIT}|dozen|hundred|{_LARGE})\b
        |(?:(?<=half)|\sof)(?=\s(?:{_OF_WHICH})\s)|(?=\s{_PORTION}))
    | (?:an?|one)\s(?:{_WHOLE})\s(?P<unit_b>{_UNIT})\b
    | (?P<whole>(?:(?:an?|one)\s)?(?:{_WHOLE}))(?=\s{_PORTION})
    | (?P<vulgar>(?:\d{{1,6}}\s?)?[{"".join(_VULGAR)}]
        |(?:\d{{1,6}}\s)?[1-9]/[2-9](?=\s(?:of\s|{_UNIT}|{_PORTION})))
        (?:\s(?:of\s)?(?:an?\s)?(?P<unit_c>{_UNIT})\b)?
    | (?P<rank>\d{{1,18}}{_SUFFIX}|{"|".join(_ORDINALS)})\b
    | (?P<money>[$€£])\s?(?P<amount>{_FIGURE})(?P<many_a>\s?(?:k|m|bn|{_LARGE})\b)?
    | (?:v\.?)?(?P<figure>{_COUNT})(?P<plus>\sand\s(?:an?|one)\s(?:{_SHARE}))?(?P<portioned>(?=\s{_PORTION}))?
        (?:(?P<many_b>(?:k|m|bn|\s(?:{_LARGE}))\b)|[\s-]?(?P<unit>{_UNIT})\b|(?P<sign>%)|(?P<short>[bsgh]\b))?
    )(?![\w@]|[-/:.]\d)""",
    re.IGNORECASE | re.VERBOSE,
)
_MARKS = frozenset(
    (
        *_NUMBER_WORDS,
        *_ORDINALS,
        *_MONTHS,
        *_WEEKDAYS,
        *_SHARES,
        *_WHOLE.split("|"),
        *_REGULAR.split("|"),
        *("noon", "midday", "midnight", "every", "each", "once"),
    )
)
"""Without a digit, every quantity has one of these words, in the plural or after a "v" too."""
_WORD = lazy_pattern("[a-z]+")
# "One approval" counts; "no one", "the red one." and "one of them" do not.
_COUNTING_ONE = lazy_pattern(r"\s(?!(?:of|is|was|who|that|day|more|another|which)\b)[a-z]", re.IGNORECASE)


def quantities(text: str) -> Iterator[Quantity]:
    """The quantities of a text in order, without numbers inside names (LH400, eu-west-1)."""
    if not _may_count(text):
        return
    for found in _PATTERN.finditer(text):
        if found[0].lower() == "one" and not _COUNTING_ONE.match(text, found.end()):
            continue
        read = _date(found) or _time(found) or _fraction(found) or _measure(found)
        if read:
            yield Quantity(start=found.start(), end=found.end(), key=read[0], unit=read[1])


def _may_count(text: str) -> bool:
    """Whether a text may state a quantity. Most do not, and the pattern takes long to compile and to run."""
    if not text.isascii() or any(digit in text for digit in "0123456789"):
        return True
    words = _WORD.findall(text.lower())
    return not _MARKS.isdisjoint(word.removeprefix("v").removesuffix("s") for word in words)


def _date(found: re.Match[str]) -> tuple[str, str] | None:
    if found["iso"]:
        year, month, day = found["iso"].split("-")
        return f"{int(month)}-{int(day)}-{year}", "date"
    if found["weekday"]:
        return found["weekday"].lower(), "day"
    if found["month"]:
        return f"{_MONTH_NUMBERS[found['month'].lower()]}-{found['year_c'] or ''}", "month"
    named = found["month_second"] or found["month_first"]
    if not named:
        return None
    day, year = found["day_first"] or found["day_second"], found["year_a"] or found["year_b"]
    return "-".join(filter(None, (str(_MONTH_NUMBERS[named.lower()]), day.lstrip("0"), year))), "date"


def _time(found: re.Match[str]) -> tuple[str, str] | None:
    if found["noon"]:
        return ("0:00" if found["noon"].lower() == "midnight" else "12:00"), "time"
    hour = found["hour"] or found["bare_hour"] or found["spoken"]
    half = (found["half_a"] or found["half_b"] or found["half_c"] or found["half_d"] or "").lower()
    if not hour:
        return None
    number = int(_number(hour.lower()))
    if half:
        number = number % 12 + (0 if half in ("a", "morning") else 12)
    return f"{number}:{found['minute'] or '00'}", "time"


def _fraction(found: re.Match[str]) -> tuple[str, str] | None:
    """A part of a thing or the whole of it. Of a unit it is a measure, of anything else a number."""
    if found["share"]:
        count = _PARTS.get((found["parts"] or "a").lower(), 1) * _SHARES[found["share"].lower()]
    elif found["vulgar"]:
        count = _vulgar(found["vulgar"])
    elif found["whole"] or found["unit_b"]:
        count = 1.0
    else:
        return None
    unit = (found["unit_a"] or found["unit_b"] or found["unit_c"] or "").lower()
    if unit in _UNITS:
        kind, size = _UNITS[unit]
        return f"{count * size:.12g} {kind}", kind
    return f"{count * (_MANY.get(unit) or _NUMBER_WORDS.get(unit) or 1.0):.12g}", ""


_PARTS = {"two": 2, "three": 3}


def _vulgar(written: str) -> float:
    """The value of ½, 1½, 3/4 and 1 1/2."""
    if "/" in written:
        *whole, share = written.split()
        over, under = map(int, share.split("/"))
        return sum(map(int, whole)) + over / under
    return int(written[:-1].strip() or 0) + _VULGAR[written[-1]]


def _measure(found: re.Match[str]) -> tuple[str, str] | None:
    if found["often"]:
        return _OFTEN.get(found["often"].lower().split()[-1], found["often"].lower()), "often"
    if found["rank"]:
        rank = found["rank"].lower()
        return f"#{_ORDINALS.get(rank) or int(rank[:-2])}", "rank"
    written = (found["amount"] or found["figure"]).lower().replace(",", "")
    unit = found["money"] or found["unit"] or found["sign"] or found["short"]
    kind, size = _UNITS[unit.lower()] if unit else ("", 1.0)
    many = (found["many_a"] or found["many_b"] or "").strip().lower()
    times = _MANY.get(many, 1.0)
    more = _SHARES[found["plus"].lower().split()[-1]] if found["plus"] else 0.0
    if many:
        return f"{(_number(written) + more) * times:.12g} {kind}".strip(), kind
    amount = unit or found["portioned"] is not None
    if written.count(".") > 1 or (not amount and "." in written):
        return written, "version"  # 3.1 is not 3.10
    if not unit and re.fullmatch(r"(?:19|20)\d\d", written):
        return written, "year"
    return f"{(_number(written) + more) * size:.12g} {kind}".strip(), kind


_OFTEN = {
    "hour": "hourly", "day": "daily", "night": "nightly", "week": "weekly", "month": "monthly",
    "quarter": "quarterly", "year": "yearly", "annually": "yearly",
}  # fmt: skip
_MANY = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}


def _number(written: str) -> float:
    if written[0].isdigit():
        return float(written)
    return float(sum(_NUMBER_WORDS[part] for part in written.split("-")))

"""Particulars of a query: names, numbered things and days that it mentions without quoting them.

"When was Harbour 3.0 released?" is not answered by the release of 2.0, nor a question about Lighthouse by
memories of Harbour, however alike they look to a model. Only a capital inside a sentence counts as a name.
Ordinary words with a capital, acronyms (people write them out) and suppositions ("would she like Paris?") do
not count.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from vestige.cognition.english.quantities import quantities
from vestige.cognition.english.words import FUNCTION_WORDS, Word, words_of
from vestige.cognition.text.analyser import normal, searchable, terms
from vestige.cognition.text.word_lists import sections, words
from vestige.core.models import Memory

MOST = 8  # The limit of particulars of one query.
LEAST_SHORT = 3  # The least number of letters of a short form of a name.
LEAST_BEGINNING, ENDING = 5, 3
"""The least number of letters of a name that are compared, and the number at its end that may differ."""
OPENING_CHARS = 24  # How far before a day a word such as "since" makes it a limit.
LONG_CHARS = 20_000  # A longer text is not parsed: it has a number or a day if the figures occur in it.
REPORTED_WITHIN = timedelta(days=8)
"""How long after a day people mention it without its date: "yesterday", "last Friday"."""

_LISTS = sections("vestige.cognition.query", "names")
_ORDINARY = words(_LISTS["ordinary"])
_NUMBERED_THINGS = words(_LISTS["numbered_things"])
_VERSIONS = frozenset(("version", "release"))
_SENTENCE_MARKS = (".", "!", "?", ";", "\n")
_JOINING = frozenset("of the de la von van der & -".split())
_NUMBER = r"\d+(?:\.\d+)*"
_NUMBERED = re.compile(
    rf"(?<![\w+#-])(?P<name>[^\W\d_][\w+#-]{{0,60}})(?:['’]s)?\s+(?P<kind>(?:version|release)\s+)?v?(?P<number>{_NUMBER})(?![\w%]|[-:/.]\d)"
)
# PostgreSQL16, v3.0
_ATTACHED = re.compile(rf"(?<=[A-Za-z]){_NUMBER}")
_COUNTED = re.compile(r"\s+[a-z]+s\b")
# 13.03.2026, 3/13/2026
_FIGURED = re.compile(r"(?<![\d./-])(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?!\d)")
_LETTERS = re.compile(r"[^\W\d_]+")
_POSSESSIVE = re.compile(r"['’]s$")
# "Since 3 March" asks for what came after it; nothing need have happened on that day.
_OPEN = re.compile(
    r"\b(?:before|after|since|until|till|by|from|to|and|between|through|as\s+of|than|up)\s+(?:the\s+)?$",
    re.IGNORECASE,
)


SUPPOSING = re.compile(
    r"\b(?:would|might|likely|considered|probably|personality|traits?|attributes?)\b", re.IGNORECASE
)
"""A hypothetical question: it may name things that no memory mentions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name of one or more words; any of them may stand for it."""

    text: str
    words: tuple[str, ...]

    @property
    def sought(self) -> tuple[str, ...]:
        """The index terms of which a text that mentions it has at least one."""
        long = [f"{_beginning(word)}*" for word in self.words if len(word) > LEAST_BEGINNING]
        return (*terms(" ".join(self.words)), *long)

    @property
    def short_forms(self) -> tuple[str, ...]:
        """Short forms: Melanie is Mel."""
        return tuple(word[:size] for word in self.words for size in range(LEAST_SHORT, len(word)))

    def stands_in(self, *texts: str) -> bool:
        """Whether a text holds one of its words."""
        plain = normal(" ".join(texts))
        return any(_written(word).search(plain) for word in self.words)

    def mentioned_in(self, memory: Memory) -> bool:
        """Whether a memory mentions it: in its text, its tags or its source."""
        place = (memory.scope, memory.source, memory.author, memory.thread)
        return self.stands_in(searchable(memory), *memory.tags, *filter(None, place))

    def shortened_in(self, memory: Memory) -> bool:
        """Whether a memory holds a short form of it, written as a name."""
        return not set(_LETTERS.findall(normal(searchable(memory)))).isdisjoint(self.short_forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A thing with a number: Harbour 3.0, room 12. Without a `name` any such number matches."""

    text: str
    name: Name | None
    number: str

    @property
    def sought(self) -> tuple[str, ...]:
        """The index terms of which a text with the number has at least one."""
        whole = self.number.replace(".", "_")
        versions = (f"{whole}_*", f"v{whole}", f"v{whole}_*")
        return (whole, ".".join(_bare(self.number.split("."))).replace(".", "_"), *versions)

    def numbered_in(self, memory: Memory) -> bool:
        """Whether a memory holds the number, or more of it: 16.2 is a 16."""
        text = searchable(memory)
        if len(text) > LONG_CHARS:
            return self.number in text
        keys = (one.key for one in quantities(text) if one.unit in ("", "version"))
        return any(_begins(written, self.number) for written in (*_ATTACHED.findall(text), *keys)) or any(
            _is_number(found["number"], self.number)
            for found in _NUMBERED.finditer(text)
            if self.name is None or self.name.stands_in(found["name"])
        )

    def mentioned_in(self, memory: Memory) -> bool:
        """Whether a memory mentions the thing and has the number."""
        return self.numbered_in(memory) and (self.name is None or self.name.mentioned_in(memory))

    def has_another_in(self, memory: Memory) -> bool:
        """Whether a text has the same thing with another number."""
        text = searchable(memory)
        return self.name is not None and any(
            self.name.stands_in(found["name"]) and not _is_number(found["number"], self.number)
            for found in _NUMBERED.finditer(text, 0, LONG_CHARS)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDay:
    """One day, written with its year."""

    text: str
    day: date

    @property
    def numbers(self) -> tuple[str, ...]:
        """The number of the day, which every way to write the date contains."""
        return tuple(dict.fromkeys((str(self.day.day), f"{self.day.day:02}")))

    def mentioned_in(self, memory: Memory) -> bool:
        """Whether a memory names the day or its month, or is from that time."""
        start = datetime.combine(self.day, time(), UTC)
        times = (memory.occurred_at, memory.created_at, memory.valid_from)
        if any(start <= at < start + REPORTED_WITHIN for at in times if at is not None):
            return True
        if memory.valid_from and memory.valid_until and memory.valid_from <= start < memory.valid_until:
            return True
        text = searchable(memory)
        if len(text) > LONG_CHARS:
            return str(self.day.year) in text
        return any(one.key in self._keys for one in quantities(text)) or any(
            self.day in _as_figures(found) for found in _FIGURED.findall(text)
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        """The day, or its month, as `quantities` reads them, with and without the year."""
        year, month, day = self.day.year, self.day.month, self.day.day
        return f"{month}-{day}-{year}", f"{month}-{day}", f"{month}-{year}", f"{month}-"


Particular = Name | Numbered | NamedDay


def particulars(text: str) -> tuple[Particular, ...]:
    """The particulars of a query, at most MOST."""
    found: list[Particular] = [*_days(text), *_numbered(text)]
    if not SUPPOSING.search(text):
        found += _names(text)
    distinct = {one.text.casefold(): one for one in reversed(found)}
    return tuple(reversed(distinct.values()))[:MOST]


def _days(text: str) -> Iterator[NamedDay]:
    for one in quantities(text):
        parts = one.key.split("-")
        if (
            one.unit == "date"
            and len(parts) == 3
            and not _OPEN.search(text, max(0, one.start - OPENING_CHARS), one.start)
        ):
            yield from (NamedDay(text=text[one.start : one.end], day=day) for day in _dates(*map(int, parts)))


def _dates(month: int, day: int, year: int) -> Iterator[date]:
    """The date, if the calendar has it."""
    with suppress(ValueError):
        yield date(year, month, day)


def _as_figures(written: tuple[str, str, str]) -> list[date]:
    """The readings of 03/04/2026, the day or the month first."""
    one, other, year = map(int, written)
    return [*_dates(one, other, year), *_dates(other, one, year)]


def _numbered(text: str) -> Iterator[Numbered]:
    units = {one.start: one.unit for one in quantities(text)}
    for found in _NUMBERED.finditer(text):
        name, number = found["name"], found["number"]
        counts = "." not in number and _COUNTED.match(text, found.end())
        measured = units.get(found.start("number"), "") not in ("", "version")
        if counts or measured:
            continue
        if name.casefold() in _NUMBERED_THINGS or _could_be_named(text, found):
            yield Numbered(text=found[0], name=Name(text=name, words=(name,)), number=number)
        elif found["kind"] or name.casefold() in _VERSIONS:
            start = found.start("kind") if found["kind"] else found.start()
            yield Numbered(text=text[start : found.end()], name=None, number=number)


def _could_be_named(text: str, found: re.Match[str]) -> bool:
    """Whether the word before a number is a name. Every sentence begins with a capital: "Add 3 more"."""
    name = found["name"]
    first = not text[: found.start()].strip() or text[: found.start()].rstrip()[-1] in ".!?"
    named = name[0].isupper() and not _is_ordinary(name) and name.casefold() not in _VERSIONS
    return named and ("." in found["number"] or not first)


def _names(text: str) -> Iterator[Name]:
    """Runs of words with a capital, each one name; none in a headline, where every word has one."""
    words = words_of(text)
    if not any(text[word.start].islower() for word in words) or any(_is_headed(text, word) for word in words):
        return
    run: list[Word] = []
    for word in (*words, None):
        if word is not None and (_is_name(text, word) or (run and word.text in _JOINING)):
            run.append(word)
            continue
        while run and run[-1].text in _JOINING:
            run.pop()
        if run:
            yield _name(text, run)
        run = []


def _name(text: str, run: Sequence[Word]) -> Name:
    shown = _POSSESSIVE.sub("", text[run[0].start : run[-1].end])
    words = (_POSSESSIVE.sub("", normal(text[word.start : word.end])) for word in run)
    return Name(text=shown, words=tuple(word for word in words if word.casefold() not in _JOINING))


def _is_name(text: str, word: Word) -> bool:
    written = _POSSESSIVE.sub("", text[word.start : word.end])
    if word.kind == "quantity" or not written[0].isupper() or _is_ordinary(written):
        return False
    return word.mark not in _SENTENCE_MARKS or not written[1:].islower()


def _is_headed(text: str, word: Word) -> bool:
    """Whether a function word has a capital inside a sentence, as in a headline."""
    titled = text[word.start : word.end].istitle() and word.end - word.start > 1
    return titled and word.kind == "function" and word.mark not in _SENTENCE_MARKS


def _is_ordinary(written: str) -> bool:
    """Whether its capital has another reason, or it is an acronym, which people write out."""
    plain = written.casefold()
    return plain in _ORDINARY or plain in FUNCTION_WORDS or written.isupper() or not written[1:].isalpha()


def _beginning(word: str) -> str:
    """The beginning that words for the same thing share: Postgres is PostgreSQL, Germany is German. Short
    ones are whole."""
    plain = word.casefold()
    return plain if len(plain) <= LEAST_BEGINNING else plain[: max(LEAST_BEGINNING, len(plain) - ENDING)]


@lru_cache(maxsize=64)
def _written(name: str) -> re.Pattern[str]:
    beginning = _beginning(name)
    end = r"(?:e?s)?(?![^\W_])" if beginning == name.casefold() else ""
    return re.compile(rf"(?<![^\W_]){re.escape(beginning)}{end}", re.IGNORECASE)


def _is_number(written: str, sought: str) -> bool:
    """Whether the number of a thing is the one sought, or a more exact one: 3 is 3.0, but 3.1 is not."""
    return _begins(written, sought) or _bare(written.split(".")) == _bare(sought.split("."))


def _begins(written: str, sought: str) -> bool:
    return f"{written}.".startswith(f"{sought}.")


def _bare(parts: list[str]) -> list[str]:
    while len(parts) > 1 and parts[-1] == "0":
        parts = parts[:-1]
    return parts

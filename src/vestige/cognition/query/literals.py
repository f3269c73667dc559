"""Literals of a query (quoted text, identifiers, paths, codes, ids), which must occur as they are, and
the names, numbers and days that it mentions.

Each token is judged as a whole and is of bounded length, so that no text takes more than linear time.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from vestige.cognition.english.quantities import quantities
from vestige.cognition.english.words import FUNCTION_WORDS, Word, all_words_of
from vestige.cognition.text.analyser import normal, searchable, terms
from vestige.cognition.text.word_lists import sections, words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

MAX_LITERAL_CHARS = 400
# An apostrophe is more often no quotation mark.
_QUOTED = lazy_pattern(
    r"\"[^\"\n]+\"|“[^“”\n]+”|„[^„“”\n]+[“”]|«[^«»\n]+»|「[^「」\n]+」|`[^`\n]+`"
    r"|(?<![\w'])'(?![\s'])[^'\n]{2,80}'(?!\w)"
)
_SPACED = lazy_pattern(r"\S+")
# Ideographs and kana stand beside a name without a space.
_TOKEN = lazy_pattern(r"[^\s,;|=(){}<>\[\]\"“”„«»「」`\u3000-\u9fff\uac00-\ud7a3]+")
_ASCII_TOKEN = lazy_pattern(r"[^\s,;|=(){}<>\[\]\"`]+")
_CLOSING = "'’*!?.,;:"
_OPENING = "'‘*!?,;:"
_POSSESSIVE = lazy_pattern(r"['’]s$")
_LINE_NUMBER = lazy_pattern(r"(?::[0-9]+){1,2}$")
_URL = lazy_pattern(r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://|www\.)[\w\[].*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A text that must occur as it is, and its characters in the query.

    A `plain` one is a word that people also write in prose, such as YouTube. A `quoted` one may be a title
    that a memory paraphrases. Every other one is an id of some kind.
    """

    text: str
    start: int
    end: int
    plain: bool = False
    quoted: bool = False


_SHAPES = tuple(map(lazy_pattern, sections("vestige.cognition.query", "literals")[""]))
# Most words have none of these shapes.
_PLAIN_WORD = lazy_pattern(r"[^\W\d_][^\W\d_A-Z]*|[0-9]{1,3}")
# Ticket #48213, v2.3.1: some write the sign, and some do not.
_OPTIONAL = lazy_pattern(r"^(?:#(?=[0-9]{4})|v(?=(?:[0-9]+\.){2}))")
# YouTube, PostgreSQL, iPhone
_HUMPED = lazy_pattern(r"(?:[A-Z][a-z0-9]+|[a-z])(?:[A-Z][a-z0-9]*)+")


def literals(text: str) -> Iterator[Literal]:
    """The literals of a text from left to right, with repeats."""
    at = 0
    for quoted in _QUOTED.finditer(text):
        inside = quoted[0][1:-1].strip()
        if 2 <= len(inside) <= MAX_LITERAL_CHARS and any(map(str.isalnum, inside)):
            yield from _unquoted(text, at, quoted.start())
            yield Literal(text=inside, start=quoted.start(), end=quoted.end(), quoted=True)
            at = quoted.end()
    yield from _unquoted(text, at, len(text))


def _unquoted(text: str, start: int, end: int) -> Iterator[Literal]:
    tokens = _ASCII_TOKEN if text.isascii() else _TOKEN
    for spaced in _SPACED.finditer(text, start, end):
        found = _trimmed(text, spaced.start(), spaced.end())
        if "://" in spaced[0] or "www." in spaced[0]:
            where = _URL.search(text, found[0], found[1])
            if where and where.end() - where.start() <= MAX_LITERAL_CHARS:
                yield Literal(text=where[0].rstrip(")]}>"), start=where.start(), end=where.end())
            continue
        for token in tokens.finditer(text, *found):
            yield from _judged(text, *_trimmed(text, token.start(), token.end()))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The token without surrounding punctuation."""
    opened = text[start:end].lstrip(_OPENING)
    closed = _POSSESSIVE.sub("", opened.rstrip(_CLOSING))
    start = end - len(opened)
    return start, start + len(closed)


def _judged(text: str, start: int, end: int) -> Iterator[Literal]:
    if not 2 <= end - start <= MAX_LITERAL_CHARS or _PLAIN_WORD.fullmatch(text, start, end):
        return
    token = _LINE_NUMBER.sub("", text[start:end])
    for written in dict.fromkeys((text[start:end], token)):
        if any(shape.fullmatch(written) for shape in _SHAPES):
            yield Literal(text=_OPTIONAL.sub("", written), start=start, end=end)
            return
    if _HUMPED.fullmatch(token):
        yield Literal(text=token, start=start, end=end, plain=True)


# -- Whether a memory holds a literal

COMMON = 2_000  # A literal that more than this many of the findable memories may hold finds none by itself.
_JOINTS = lazy_pattern(r"[-._/\\:@&]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u02b9", "'"))


def folded(text: str) -> str:
    """A text without letter case, widths and ligatures, with ASCII apostrophes, and with single spaces."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    return " ".join(text.casefold().split())


@lru_cache(maxsize=256)
def literal_terms(literal: str) -> frozenset[str]:
    """The index terms a memory must have to hold a literal: those of its separate words. Their join is not a
    term of a text that goes on without a space, as `main.py` does in `main.py:12`."""
    return frozenset(terms(_JOINTS.sub(" ", literal)))


def names(literal: str, memory_id: str, source: str | None) -> bool:
    """Whether the literal is a memory's id, as written or in lower case, or its source."""
    plain = literal.strip()
    return memory_id in (plain, plain.lower()) or source == plain


def written_in(memory: Memory, literal: str) -> bool:
    """Whether the literal occurs in a memory's text or a tag, even inside a longer word, or names it."""
    return names(literal, memory.id, memory.source) or _stands_in(literal, _texts(memory))


def count_held(literals: Iterable[str], memory: Memory, known: Collection[str]) -> int:
    """How many of the literals a memory with these index terms holds in its text or a tag, or is named by. A
    number is held however it is grouped: 48,213 has the term of 48213."""
    texts: list[str] = []  # folded when first needed, and once
    count = 0
    for literal in literals:
        needed = literal_terms(literal)
        if names(literal, memory.id, memory.source):
            count += 1
        elif needed and needed <= frozenset(known):
            texts = texts or _texts(memory)
            count += literal.isdecimal() or _stands_in(literal, texts)
    return count


def _texts(memory: Memory) -> list[str]:
    return [folded(text) for text in (searchable(memory), *memory.tags)]


def _stands_in(literal: str, texts: Iterable[str]) -> bool:
    sought = folded(literal)
    return any(sought in text for text in texts)


# -- Particulars of a query: names, numbered things and days that it mentions without quoting them

MOST = 8  # The limit of particulars of one query.
LEAST_SHORT = 3  # The least number of letters of a short form of a name.
LEAST_BEGINNING, ENDING = 5, 3
"""The least number of letters of a name that are compared, and the number at its end that may differ."""
OPENING_CHARS = 24  # How far before a day a word such as "since" makes it a limit.
LONG_CHARS = 20_000  # A longer text is not parsed: it has a number or a day if the figures occur in it.
REPORTED_WITHIN = timedelta(days=8)
"""How long after a day people mention it without its date: "yesterday", "last Friday"."""

NAME_LISTS = sections("vestige.cognition.query", "names")
ORDINARY = words(NAME_LISTS["ordinary"])
_NUMBERED_THINGS = words(NAME_LISTS["numbered_things"])
_VERSIONS = frozenset(("version", "release"))
_SENTENCE_MARKS = (".", "!", "?", ";", "\n")
_JOINING = frozenset("of the de la von van der & -".split())
_NUMBER = r"\d+(?:\.\d+)*"
_NUMBERED = lazy_pattern(
    rf"(?<![\w+#-])(?P<name>[^\W\d_][\w+#-]{{0,60}})(?:['’]s)?\s+(?P<kind>(?:version|release)\s+)?v?(?P<number>{_NUMBER})(?![\w%]|[-:/.]\d)"
)
# PostgreSQL16, v3.0
_ATTACHED = lazy_pattern(rf"(?<=[A-Za-z]){_NUMBER}")
_BARE_VERSION = lazy_pattern(r"(?<![\w.,/-])[vV](?P<number>\d{1,3})(?![\w%]|[-:/.]\w)")
_COUNTED = lazy_pattern(r"\s+[a-z]+s\b")
# 13.03.2026, 3/13/2026
_FIGURED = lazy_pattern(r"(?<![\d./-])(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?!\d)")
_LETTERS = lazy_pattern(r"[^\W\d_]+")
POSSESSIVE_ENDING = lazy_pattern(r"['’]s$")
# "Since 3 March" asks for what came after it; nothing need have happened on that day.
_OPEN = lazy_pattern(
    r"\b(?:before|after|since|until|till|by|from|to|and|between|through|as\s+of|than|up)\s+(?:the\s+)?$",
    re.IGNORECASE,
)


SUPPOSING = lazy_pattern(
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

    def written_out_in(self, memory: Memory) -> bool:
        """Whether it is an acronym that a memory writes out: CTO, chief technology officer."""
        initials = "".join(word[0] for word in _LETTERS.findall(normal(searchable(memory)).casefold()))
        short = self.text.casefold()
        return self.text.isupper() and len(short) >= LEAST_SHORT and short in initials


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
    named: set[int] = set()
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
        else:
            continue
        named.add(found.end())
    for found in _BARE_VERSION.finditer(text):
        if found.end() not in named:
            yield Numbered(text=found[0], name=None, number=found["number"])


def _could_be_named(text: str, found: re.Match[str]) -> bool:
    """Whether the word before a number is a name. Every sentence begins with a capital: "Add 3 more"."""
    name = found["name"]
    first = not text[: found.start()].strip() or text[: found.start()].rstrip()[-1] in ".!?"
    named = name[0].isupper() and not _is_ordinary(name) and name.casefold() not in _VERSIONS
    return named and ("." in found["number"] or not first)


def _names(text: str) -> Iterator[Name]:
    """Runs of words with a capital, each one name; none in a headline, where every word has one."""
    words = all_words_of(text)
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
    shown = POSSESSIVE_ENDING.sub("", text[run[0].start : run[-1].end])
    words = (POSSESSIVE_ENDING.sub("", normal(text[word.start : word.end])) for word in run)
    return Name(text=shown, words=tuple(word for word in words if word.casefold() not in _JOINING))


def _is_name(text: str, word: Word) -> bool:
    written = POSSESSIVE_ENDING.sub("", text[word.start : word.end])
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
    return plain in ORDINARY or plain in FUNCTION_WORDS or written.isupper() or not written[1:].isalpha()


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


# -- A word inside of a compound

LEAST_PART = 3  # The shortest word that is looked for there.


def inside_compound(word: str, text: str) -> bool:
    """Whether a text has a word as a part of a compound, as people see one: `username` in `getUserName`,
    `red` in `31mRED`, but not in `rendered`."""
    if len(word) < LEAST_PART or not word.isalnum():
        return False
    plain, sought = text.lower(), word.lower()
    if len(plain) != len(text):  # a few letters grow in lower case
        return False
    at = plain.find(sought)
    while at >= 0:
        end = at + len(sought)
        if _hump(text[max(0, at - 1) : at], text[at]) and _hump(text[end - 1], text[end : end + 1]):
            return True
        at = plain.find(sought, at + 1)
    return False


def _hump(before: str, after: str) -> bool:
    """Whether one word ends and another begins between two characters."""
    if not (before.isalpha() and after.isalpha()):
        return True
    return before.islower() and after.isupper()

"""A statement taken apart into words: what each is, what it is the same as, and where its clause ends.

Contractions are written out, quantities have a normal form, everything else is compared by its stem.
English only, like the stemmer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from vestige.cognition.quantities import Quantity, quantities
from vestige.cognition.synonyms import root
from vestige.cognition.text import STOP_WORDS

TEMPORAL = frozenset(("date", "day", "month", "year", "time"))
"""Units of quantities that say when."""
Kind = Literal["function", "word", "name", "quantity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The characters `start`..`end` of a text as one word.

    `text` is it in lower case, `key` what makes it equal to another, `unit` what a quantity is of, `clause`
    and `sentence` which of its text it stands in, `mark` the punctuation just before it.
    """

    start: int
    end: int
    text: str
    key: str
    kind: Kind
    clause: int
    sentence: int
    unit: str = ""
    mark: str = ""

    @property
    def telling(self) -> bool:
        """Whether it carries content."""
        return self.kind != "function"

    def says(self, other: "Word") -> bool:
        """Whether it says what the other says, or the same time more exactly: "May", "May 2026"."""
        return self.key == other.key or (other.unit in TEMPORAL and self.key.startswith(other.key))


_TOKEN = re.compile(
    r"[^\W_]+(?:[.:,/'’@_+#-]+[^\W_]+)*(?:\+\+|#)?|[\u2190-\u21ff\u2600-\u27bf\U0001f000-\U0001faff]|[.;:=!?(),–—\n]"
)
_SENTENCE_MARKS, _CLAUSE_MARKS = frozenset(".!?\n;"), frozenset(":=(),–—")
_JOINING = frozenset("but because although though while whereas unless".split())

_BARE = "do does did is are was were have has had could should would must need".split()
_NEGATED = {f"{word}n't": (word, "not") for word in _BARE}
_NEGATED |= {
    "can't": ("can", "not"),
    "won't": ("will", "not"),
    "cannot": ("can", "not"),
    "ain't": ("is", "not"),
}
_NEGATED |= {word.replace("'", ""): parts for word, parts in tuple(_NEGATED.items())}
_ENDINGS = {"'re": "are", "'ve": "have", "'ll": "will", "'m": "am", "'d": "would"}
_IS = frozenset("it he she that there here what who where how this everything nothing everyone".split())

_LIGHT = frozenset(
    "always never hardly really just please currently still also already actually basically simply "
    "generally usually probably maybe etc via per ok okay well anyway instead too quite rather pretty "
    "anymore longer today nowadays yesterday tomorrow tonight week month year last next ago recently "
    "lately previously earlier formerly remember note reminder fyi mr mrs ms dr prof am must may need "
    "every".split()
)
"""Adverbs of degree, time and manner, titles and calls to remember: no statement is about them."""
FUNCTION_WORDS = frozenset(STOP_WORDS | _LIGHT) - {"like", "own"}
_ABBREVIATIONS = frozenset("mr mrs ms dr prof st vs approx nr eg ie etc inc ltd jr sr".split())

# What is written in two ways.
_SPELLINGS = {
    "repo": "repository", "env": "environment", "config": "configuration", "db": "database",
    "app": "application", "prod": "production", "doc": "documentation", "docs": "documentation",
    "auth": "authentication", "info": "information", "admin": "administrator", "spec": "specification",
    "param": "parameter", "arg": "argument", "lib": "library", "dir": "directory", "min": "minimum",
    "max": "maximum", "phone": "telephone", "mum": "mother", "mom": "mother", "dad": "father",
    "kid": "child", "kids": "child", "children": "child", "men": "man", "women": "woman",
    "people": "person", "postgres": "postgresql", "k8s": "kubernetes", "js": "javascript",
    "ts": "typescript", "favourite": "favorite", "grey": "gray",
}  # fmt: skip
_BRITISH = re.compile(r"(?<=[a-z]{2}[lbvhn])our(?=s|ed|ing|$)|(?<=[a-z]{3})is(?=ation|e[sd]?$|ing$)")


@lru_cache(maxsize=1024)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text in order."""
    counted = {quantity.start: quantity for quantity in quantities(text)}
    # In a headline every word has a capital, which tells nothing then.
    longer = [found[0] for found in _TOKEN.finditer(text) if len(found[0]) > 3]
    titled = len(longer) > 3 and sum(word[0].isupper() for word in longer) > 0.7 * len(longer)
    return tuple(_read(text, counted, titled))


def _read(text: str, counted: dict[int, Quantity], titled: bool) -> Iterator[Word]:
    at, clause, sentence, before, last = 0, 0, 0, ".", ""
    while found := _next(text, at, counted):
        if isinstance(found, Quantity):
            at = found.end
            yield Word(
                start=found.start, end=found.end, text=text[found.start : found.end].lower(), key=found.key,
                kind="quantity", clause=clause, sentence=sentence, unit=found.unit or "number", mark=before,
            )  # fmt: skip
            before = ""
            continue
        at, mark = found.end(), found[0]
        if mark == "." and last in _ABBREVIATIONS:
            continue
        if mark in _SENTENCE_MARKS or mark in _CLAUSE_MARKS:
            clause += 1
            sentence += mark in _SENTENCE_MARKS
            before = mark
            continue
        last = mark.lower()
        clause += last in _JOINING
        for part in _parts(mark):
            yield Word(
                start=found.start(), end=found.end(), text=part, key=_key(part), clause=clause,
                kind=_kind(mark, part, titled or bool(before)), sentence=sentence, mark=before,
            )  # fmt: skip
        before = ""


def _next(text: str, at: int, counted: dict[int, Quantity]) -> Quantity | re.Match[str] | None:
    """The next quantity, word or mark from a place on."""
    found = _TOKEN.search(text, at)
    if found is None:
        return None
    first = next((start for start in range(at, found.end()) if start in counted), None)
    return counted[first] if first is not None and first <= found.start() else found


def _parts(written: str) -> Sequence[str]:
    word = written.lower().replace("’", "'")
    if word in _NEGATED:
        return _NEGATED[word]
    base, _, ending = word.rpartition("'")
    if not base:
        return (word,)
    if ending == "s":
        return (base, "is") if base in _IS else (base,)
    return (base, _ENDINGS[f"'{ending}"]) if f"'{ending}" in _ENDINGS else (word,)


def _key(word: str) -> str:
    spelled = _SPELLINGS.get(word) or _SPELLINGS.get(word.removesuffix("s")) or word
    if not spelled.isascii() or not spelled.isalpha() or word in FUNCTION_WORDS or len(spelled) < 3:
        return spelled
    return root(_BRITISH.sub(lambda found: "or" if found[0] == "our" else "iz", spelled))


def _kind(written: str, word: str, fresh: bool) -> Kind:
    if word in FUNCTION_WORDS:
        # AM and OR may be names, but IT is not worth the doubt; a lone capital I is no name either.
        return "function"
    inner = written[1:]
    marked = any(character.isupper() or character.isdigit() or character in "_/@" for character in inner)
    return "name" if marked or (written[:1].isupper() and not fresh) or "." in inner else "word"

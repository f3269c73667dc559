"""The text analyser: the terms of every store's word index and of every query.

A term consists of a-z, 0-9, `_` and non-ASCII characters, so that an ASCII tokenizer (SQLite's `ascii` with
`_` as a token character) reads each one as exactly one token. Terms are stored: a change of a memory's terms
needs a new ANALYSER_VERSION and a rebuilt index.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate

from vestige.cognition.text.word_lists import sections, words
from vestige.cognition.time.calendar import date_words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.core.patterns import lazy_pattern

ANALYSER_VERSION = 2  # Raised whenever `memory_terms` gives other terms for a memory than before.

MAX_TERM_CHARS = 64
_DIGEST_CHARS = 16

SHORT_CHARS = 2_000  # Up to this length the fingerprint of a text is cached.

STOP_WORDS = frozenset(
    word.replace("'", "") for word in words(sections("vestige.cognition.text", "stop_words")[""])
)
"""Words that say too little to search by. Queries drop them; the index keeps them."""

# Scripts written without spaces between words, and Hangul, whose particles hang on the word: ideographs,
# kana, bopomofo, Thai, Lao, Myanmar, Khmer. They are indexed as overlapping pairs of characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
)
_SPACELESS = lazy_pattern(f"[{_UNSPACED}]+")
_LANGUAGE_NAME = r"(?<![A-Za-z0-9_])[A-Za-z](?:\+\+|#)(?![A-Za-z0-9_])"
# Sets of characters are written as what they leave out: a large range takes a millisecond to compile.
_SIGNS = r"\x00-/:-@\[-`{-\x7f"
# Whatever is no ASCII sign and no spaceless script; `_plain` has made space of the other signs.
_PART = rf"(?:{_LANGUAGE_NAME}|[^{_SIGNS}{_UNSPACED}]+)"
# Words held together by joints: don't, snake_case, kebab-case, 3.11, 10:30, a/path.py, AT&T, 1,000.
_JOINED = rf"{_PART}(?:(?:[-._/\\:@&']{{1,3}}|(?<=[0-9]),(?=[0-9]{{3}}(?![0-9]))){_PART})*"
_CHUNK = lazy_pattern(f"[{_UNSPACED}]+|{_JOINED}")
_ASCII_CHUNK = lazy_pattern(_JOINED.replace(_UNSPACED, ""))
_WORD = lazy_pattern(f"[^{_SIGNS}]+")
# After a word it asks for everything that begins so; `*this*` and `a*b` do not.
_STAR = lazy_pattern(r"[-._/\\:@&']{0,3}\*(?![^\x00-)+-/:-@\[-`{-\x7f])")
# What holds a chunk together, from the outside in: segments of a path, words of a name, halves of a word.
_LEVELS = (lazy_pattern(r"[/\\@]+"), lazy_pattern(r"[-._:&]+"), lazy_pattern(r"[',]+"))
_JOINTS = lazy_pattern(r"((?<=\d)[-._/\\:@&]+(?=\d))|[-._/\\:@&',]+")
_ENDING = lazy_pattern(rf"'(?:s|ll|re|ve|d|m|(t))(?![^{_SIGNS}])", re.IGNORECASE)
_HUMP = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z]+")
_PLURAL_ACRONYM = lazy_pattern(r"[A-Z]{2,}s")
_LETTERS_AND_DIGITS = lazy_pattern(r"([^\W\d_]+)(\d+)|(\d+)([^\W\d_]+)")

# Letters that Unicode does not take apart into a base and a mark, though readers do.
_PLAIN_LETTERS = {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ħ": "h", "Ħ": "H", "ı": "i"}
_APOSTROPHES = "\u2018\u2019\u02bc\u02b9\uff07"


class _CharacterMap(dict[int, str]):
    """The plain form of each decomposed character, computed on first use."""

    def __missing__(self, code: int) -> str:
        self[code] = shown = _plain(chr(code))
        return shown


_PLAIN = _CharacterMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A word of a query: its characters `start`..`end` as written, and its terms. `stop`: the word is too
    common to search by. Words are in order; two may share a character (½ is a 1 and a 2)."""

    start: int
    end: int
    terms: tuple[str, ...]
    stop: bool


KEPT_CHARS = 600
"""The terms of texts that are not longer are kept, of those that were asked for last."""


def normal(text: str) -> str:
    """The text without marks, widths and signs that carry no word, but with case."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text).translate(_PLAIN))


def terms(text: str) -> list[str]:
    """The index terms of a text, in order and with repeats."""
    return list(_short_terms(text)) if len(text) <= KEPT_CHARS else [*_text_terms(text)]


def _text_terms(text: str) -> tuple[str, ...]:
    plain = normal(text)
    return tuple(term for chunk in _chunks(plain).findall(plain) for term in _terms_of(chunk))


def _chunks(plain: str) -> re.Pattern[str]:
    return _ASCII_CHUNK if plain.isascii() else _CHUNK


# A search looks at the terms of its hits several times, the gate at those of a new text and its rivals.
_short_terms = lru_cache(maxsize=1_024)(_text_terms)


def query_words(text: str) -> list[QueryWord]:
    """The words of a query with their positions. `word*` has the term `word*`, which matches every term with
    that prefix, and so has a single character of a script without spaces, because the index holds pairs."""
    plain = normal(text)
    places = _places(text, plain)
    return [
        QueryWord(
            start=places[chunk.start()],
            end=max(places[chunk.end()], places[chunk.end() - 1] + 1),
            terms=tuple(_query_terms_of(chunk)),
            stop=_without_ending(chunk[0]).casefold() in STOP_WORDS,
        )
        for chunk in _chunks(plain).finditer(plain)
    ]


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query, in order; stop words only when there is nothing else."""
    return content_terms(query_words(text))


def content_terms(words: Sequence[QueryWord]) -> list[str]:
    """The distinct terms of these words, in order; stop words only when there is nothing else."""
    content = [word for word in words if not word.stop]
    return list(dict.fromkeys(term for word in content or words for term in word.terms))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of common terms of two texts (Jaccard)."""
    return len(one & other) / len(one | other) if one & other else 0.0


LEAST_COMMON = 2
LEAST_SHARE = 0.4
"""What two texts about the same thing share: this number of words, and this share of the shorter one's."""


def is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts share enough words to be about the same thing."""
    return shares_enough(len(one & other), len(one), len(other))


def shares_enough(common: int, one: int, other: int) -> bool:
    """`is_alike` by the numbers of common words and of the words of each."""
    return common >= LEAST_COMMON and common >= LEAST_SHARE * min(one, other)


def searchable(memory: Memory) -> str:
    """The text a memory is found by: its content and its other phrasings. Vectors are made from it."""
    return "\n".join((memory.content, *memory.phrasings))


def memory_terms(memory: Memory) -> list[str]:
    """The index terms of a memory: those of its searchable text, its tags, the day it happened, and its
    author unless the text names them."""
    day = () if memory.occurred_at is None else (date_words(memory.occurred_at),)
    found = terms("\n".join((searchable(memory), *memory.tags, *day)))
    named = terms(memory.author) if memory.author else []
    return found if set(named) <= set(found) else [*found, *named]


def text_hash(memory: Memory) -> str:
    """A digest of the searchable text, by which outdated derived data is recognised."""
    return digest(searchable(memory))


def fingerprint(text: str) -> str:
    """A digest that is equal for texts that differ in nothing that carries meaning.

    Case, width, spacing, a closing full stop and quotation marks round the whole do not count. Numbers,
    signs, negations, question marks and exponents do.
    """
    return _short_fingerprint(text) if len(text) <= SHORT_CHARS else _fingerprint(text)


def _fingerprint(text: str) -> str:
    plain = " ".join(compatible(text).casefold().split())
    start, end = _inner_span(plain)
    return digest(plain[start:end] or plain)


# A text on its way in is compared several times.
_short_fingerprint = lru_cache(maxsize=512)(_fingerprint)


# -- Terms of a chunk of text


def _places(text: str, plain: str) -> Sequence[int]:
    """For each character of the normal text, and for its end, its position in the original."""
    if text.isascii():
        return range(len(text) + 1)
    # The number of characters that each character becomes when decomposed and made plain.
    sizes = (len(unicodedata.normalize("NFKD", character).translate(_PLAIN)) for character in text)
    origins = [at for at, size in enumerate(sizes) for _ in range(size)]
    origins.append(len(text))
    # Composition keeps the order of what it joins, so counting the parts gives their positions.
    parts = (len(unicodedata.normalize("NFD", character)) for character in plain)
    return [origins[part] for part in accumulate(parts, initial=0)]


def _plain(character: str) -> str:
    """One decomposed character as the analyser sees it: itself, a simpler one, a space or nothing."""
    if character in _APOSTROPHES:
        return "'"
    if character.isascii():
        return character
    # The combining marks of Latin, Greek and Cyrillic, and variation selectors. Marks of other scripts
    # (voiced kana, Indic vowels) make another letter and stay.
    if "\u0300" <= character <= "\u036f" or "\ufe00" <= character <= "\ufe0f":
        return ""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    kind = unicodedata.category(character)
    if kind in ("So", "Sc"):
        return f" {character} "
    if kind == "Pd":
        return "-"
    if kind in ("Cf", "Me"):
        return ""
    return _PLAIN_LETTERS.get(character, character) if kind[0] in "LMN" else " "


def _terms_of(chunk: str) -> tuple[str, ...]:
    # Long chunks are rare and would make the cache heavy.
    return _cached_terms(chunk) if len(chunk) <= MAX_TERM_CHARS else _chunk_terms(chunk)


def _query_terms_of(chunk: re.Match[str]) -> Sequence[str]:
    """The terms a query's chunk is looked for by."""
    found = _content_chunk_terms(chunk[0])
    if _is_spaceless(chunk[0]):
        return found if len(chunk[0]) > 1 else [f"{chunk[0]}*"]
    before = chunk.string[max(0, chunk.start() - 1) : chunk.start()]
    if before == "*" or not _STAR.match(chunk.string, chunk.end()):
        return found
    beginning = _joined(chunk[0])
    if not 2 <= len(beginning) < MAX_TERM_CHARS:
        return found
    # The index holds stems, which `deploy` is no beginning of (`deploi`): the word itself stays asked for.
    return [*(term for term in found if not term.startswith(beginning)), f"{beginning}*"]


def _is_spaceless(chunk: str) -> bool:
    return not chunk.isascii() and _SPACELESS.match(chunk) is not None


def _content_chunk_terms(chunk: str) -> Sequence[str]:
    """The terms of a query's chunk without those of its stop words: `up-to-date` must not look for `to`."""
    found = _terms_of(chunk)
    if len(found) == 1:
        return found
    words = (hump for word in _WORD.findall(chunk) for hump in _humps(word))
    dull = {_term(word) for word in words if word.casefold() in STOP_WORDS}
    return [term for term in found if term not in dull] or found


def _chunk_terms(chunk: str) -> tuple[str, ...]:
    if _is_spaceless(chunk):
        return tuple(chunk[i : i + 2] for i in range(max(1, len(chunk) - 1)))
    spelled = chunk.replace("++", "plusplus").replace("#", "sharp")
    return tuple(_split(_without_ending(spelled), _LEVELS))


_cached_terms = lru_cache(maxsize=32_768)(_chunk_terms)


def _without_ending(chunk: str) -> str:
    """The chunk without 's, 'll and the like, and with n't joined: `don't` is `dont`."""
    return _ENDING.sub(r"\1", chunk) if "'" in chunk else chunk


def _split(chunk: str, levels: Sequence[re.Pattern[str]]) -> list[str]:
    """The terms of a chunk: the whole in one normal form, then those of its parts if there are several."""
    if levels:
        parts = [part for part in levels[0].split(chunk) if part]
        if len(parts) < 2:
            return _split(parts[0], levels[1:]) if parts else []
        return [_term(chunk), *(term for part in parts for term in _split(part, levels[1:]))]
    humps = _humps(chunk)
    return [_term(chunk), *(_term(hump) for hump in humps if len(humps) > 1)]


def _humps(word: str) -> list[str]:
    """The parts of a camelCase word, or the letters and digits of one such as python3 or 20GB."""
    mixed = _LETTERS_AND_DIGITS.fullmatch(word)
    if mixed:
        return [part for part in mixed.groups() if part]
    if not word.isascii() or word[1:].islower() or word.isupper() or _PLURAL_ACRONYM.fullmatch(word):
        return [word]
    humps = _HUMP.findall(word)
    # A name has humps of some length; what falls to crumbs is a key or base64 (or iOS, which is one word).
    return humps if len(word) >= 2 * len(humps) else [word]


def _term(chunk: str) -> str:
    """A chunk as one term: no case, no joints, no English ending, no more than MAX_TERM_CHARS. Between two
    digits a joint becomes `_`, so that 3.11 is not 311."""
    word = _joined(chunk)
    # Porter's rules would eat the s of two-letter words such as `os` and `as`.
    if len(word) > 2 and word.isascii() and word.isalpha():
        word = stem(word)
    if len(word) <= MAX_TERM_CHARS:
        return word
    return f"{word[: MAX_TERM_CHARS - _DIGEST_CHARS - 1]}_{digest(word)[:_DIGEST_CHARS]}"


def _joined(chunk: str) -> str:
    return _JOINTS.sub(lambda joint: "_" if joint[1] else "", chunk).casefold()


# -- Fingerprints of texts

# Everything but exponents, indices and fractions, which must not melt into the number beside them.
_COMPATIBLE = lazy_pattern("[^\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u215f\u2189]+")
_QUOTES = dict(zip("\"'“„‘«»「『`", "\"'”“’»«」』`", strict=True))


def compatible(text: str) -> str:
    """The text in its compatibility form (NFKC), except for exponents, indices and fractions."""
    return _COMPATIBLE.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


def _inner_span(text: str) -> tuple[int, int]:
    """The span of the text without closing full stops and quotes round the whole."""
    start, end = 0, len(text)
    while True:
        end = _without_full_stop(text, start, end)
        if not _is_quoted(text, start, end):
            return start, end
        start, end = start + 1, end - 1


def _without_full_stop(text: str, start: int, end: int) -> int:
    stop = end
    while stop > start and text[stop - 1] in ".。":
        stop -= 1
    # A full stop closes a word; the dots of `cd ..` and `src/.` are words themselves.
    closes = stop > start and (text[stop - 1].isalnum() or text[stop - 1] in "\"'”’»」』)]}`%")
    return stop if closes else end


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether one pair of quotation marks holds all of it, as in "a" but not in "a" or "b"."""
    if end - start < 2:
        return False
    opening, closing = text[start], text[end - 1]
    inside = text[start + 1 : end - 1]
    return _QUOTES.get(opening) == closing and opening not in inside and closing not in inside


def digest(text: str) -> str:
    """The digest of a text, for `text_hash`."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# -- Porter's stemmer (1980)

Rules = dict[str, str]

# A word that ends in a suffix of the left column, with a measure above the step's limit, gets the right one.
STEP_2: Rules = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble",
}  # fmt: skip
STEP_3: Rules = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic",  # codespell:ignore ative
    "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
STEP_4: Rules = dict.fromkeys(
    (
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant",
        "ement", "ment", "ent",  # codespell:ignore ment
        "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
    ),
    "",
)  # fmt: skip

_STEPS = tuple((rules, tuple(rules), above) for rules, above in ((STEP_2, 0), (STEP_3, 0), (STEP_4, 1)))

# English doubles only these before -ed and -ing; ll, ss and zz belong to the word (fall, hiss, fizz).
DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    word = _step_1c(_step_1b(_step_1a(word)))
    for rules, ends, above in _STEPS:
        if word.endswith(ends):  # most words have none of the suffixes
            word = _longest_suffix(word, rules, above=above)
    return _step_5(word)


LEAST_FAMILY = 5
"""The shortest stem in -if that has a family, such as `verif` and `notif`; not `gif` and `diff`."""


def stem_variants(term: str) -> tuple[str, ...]:
    """The stem and the other one that Porter gives words of its family: `simplify` becomes `simplifi`, and
    `simplification` becomes `simplif`."""
    if term.endswith("if") and len(term) >= LEAST_FAMILY:
        return term, f"{term}i"
    if term.endswith("ifi") and len(term) > LEAST_FAMILY:
        return term, term[:-1]
    return (term,)


def _shape(word: str) -> str:
    """The word as `c` and `v`: y is a vowel after a consonant, and a consonant elsewhere."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_short(word: str) -> bool:
    """Porter's *o: consonant, vowel, consonant other than w, x and y, as in `hop`."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step_1a(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _with_ending_restored(rest) if _has_vowel(rest) else word
    return word


def _with_ending_restored(rest: str) -> str:
    """A word without its -ed or -ing, with its ending restored: hopp -> hop, fil -> file."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest.endswith(DOUBLES):
        return rest[:-1]
    if _measure(rest) == 1 and _ends_short(rest):
        return rest + "e"
    return rest


def _step_1c(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _longest_suffix(word: str, rules: Rules, *, above: int) -> str:
    """Replace the longest suffix that has a rule; a suffix that fails its measure ends the step."""
    for length in range(min(7, len(word)), 1, -1):
        suffix, rest = word[-length:], word[:-length]
        if suffix in rules:
            applies = _measure(rest) > above and (suffix != "ion" or rest[-1] in "st")
            return rest + rules[suffix] if applies else word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        return word[:-1]
    return word

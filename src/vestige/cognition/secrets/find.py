"""Finding secrets in a text: keys, tokens, passwords, private keys, and what stands where one would stand.

Not a secret are hashes, ids, public keys, certificates, placeholders (`<your-key>`, `${TOKEN}`, `changeme`),
keys that say themselves that they are examples (`AKIAIOSFODNN7EXAMPLE`), and well-known defaults
(`postgres:postgres@localhost`). Everything is linear in the length of the text.

Disguises are removed before matching: characters without width, full-width and other styled letters, and
letters of other scripts that look like Latin ones (homoglyphs). Every position is one of the given text.
"""

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from vestige.cognition.secrets.assignments import NAME_HINTS, Found, assignments
from vestige.cognition.secrets.commands import (
    HEADER_HINTS,
    PLACES,
    addresses,
    headers,
    manifests,
    options,
    queries,
)
from vestige.cognition.secrets.entropy import classes, is_drawn, looks_random
from vestige.cognition.secrets.hints import HintSet
from vestige.cognition.secrets.private_keys import private_keys
from vestige.cognition.secrets.provider_keys import SHAPES, Shape
from vestige.cognition.secrets.values import (
    begins_with_description,
    is_mixed_password,
    is_odd_password,
    is_placeholder,
)
from vestige.cognition.text.word_lists import pattern, sections
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

SHOWN = 4  # The number of characters shown at either end of a long random secret, to identify it.
LONG = 20
_HARMLESS = lazy_pattern(
    r"data:[\w/+.-]{1,60};base64,[A-Za-z0-9+/=]+"
    r"|-----BEGIN (?:CERTIFICATE|[A-Z0-9 ]{0,20}PUBLIC KEY)[^-]{0,40}-----[A-Za-z0-9+/=\s\\]*"
    r"|\b(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\w{1,20}|sk-ssh-\S{1,30}) AAAA[A-Za-z0-9+/=]+"
    r"|\bsha(?:1|256|384|512)[-:=][A-Za-z0-9+/=_-]{27,}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The position of a secret, its kind, and the reason."""

    kind: str
    start: int
    end: int
    reason: str


def find_secrets(text: str) -> list[Secret]:
    """Every secret in a text, in order; no two overlap."""
    if text.isascii():
        return _apart(_secrets(text))
    return _apart(
        (kind, places[start], places[end], reason)
        for plain, places in _undisguised(text)
        for kind, start, end, reason in _secrets(plain)
    )


def _secrets(text: str) -> Iterator[Found]:
    harmless = [found.span() for found in _HARMLESS.finditer(text)] if len(text) > LONG else []
    return (one for one in _candidates(text) if not _inside(one, harmless))


def redacted(text: str, secrets: Iterable[Secret], *, marked: bool = True) -> str:
    """The text with every secret replaced by a mark, or removed if it is not to be marked."""
    kept, at = [], 0
    for one in secrets:
        kept += [text[at : one.start], f"[redacted: {one.kind}]" if marked else ""]
        at = one.end
    return "".join([*kept, text[at:]])


def excerpt(text: str, secret: Secret) -> str:
    """Enough of a secret to identify it: both ends of a long random one, nothing of a guessable one."""
    value = text[secret.start : secret.end]
    if len(value) >= LONG and looks_random(value) and not any(map(str.isspace, value)):
        return f"{value[:SHOWN]}…{value[-SHOWN:]}"
    return "…"


def position(text: str, secret: Secret) -> tuple[int, int]:
    """Its line and column, both from 1."""
    line = text.count("\n", 0, secret.start) + 1
    return line, secret.start - text.rfind("\n", 0, secret.start)


# -- Disguises: characters that look like others, or like nothing

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001d173-\U0001d17a\U000e0100-\U000e01ef"
)
"""Joiners, directions, fillers, variation selectors."""
_MARKS = "\u0300-\u036f\u20d0-\u20f0"
"""Marks drawn over or under the character before them."""
_TAGS = "\U000e0000-\U000e007f"
"""An invisible copy of ASCII, which programs can read."""
_HIDDEN = lazy_pattern(f"[{_INVISIBLE}{_TAGS}]+")
_HIDDEN_OR_MARKS = lazy_pattern(f"[{_INVISIBLE}{_MARKS}]+")
_LOOKALIKES = {
    ord(one): plain
    for plain, *others in map(str.split, sections("vestige.cognition.secrets", "lookalikes")[""])
    for one in others
}
_LOOKALIKES |= {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
_UNBROKEN = lazy_pattern(r"\S+")
_SOME_LATIN = lazy_pattern(f"[A-Za-z0-9{_TAGS}]")


def _undisguised(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """The text without disguises, with the places of its characters and its end in the given one. If it may
    be spelled with the letters of several scripts, a second reading follows in which these are Latin."""
    styles = {ord(one): _unstyled(one) for one in set(text) if one > "\x7f"}
    plain, places = _without(text, _HIDDEN)
    first = plain.translate(styles)
    yield first, places
    plain, places = _without(text, _HIDDEN_OR_MARKS)
    second = plain.translate(styles)
    if not _LOOKALIKES.keys().isdisjoint(styles):
        second = _UNBROKEN.sub(_latin, second)
    if second != first:
        yield second, places


def _unstyled(one: str) -> str:
    plain = unicodedata.normalize("NFKC", one)
    return plain if len(plain) == 1 and plain.isascii() else one


def _latin(found: re.Match[str]) -> str:
    """A run of characters in Latin letters, if it has some: a word of another script alone is no disguise."""
    run = found.group()
    if run.isascii():
        return run
    return run.translate(_LOOKALIKES) if _SOME_LATIN.search(run) else run


def _without(text: str, left_out: re.Pattern[str]) -> tuple[str, Sequence[int]]:
    if not left_out.search(text):
        return text, range(len(text) + 1)
    kept, places, at = [], array("I"), 0
    for found in left_out.finditer(text):
        kept.append(text[at : found.start()])
        places.extend(range(at, found.start()))
        at = found.end()
    kept.append(text[at:])
    places.extend(range(at, len(text) + 1))
    return "".join(kept), places


# -- Secrets that people write down: seed phrases, recovery codes, PINs, random strings

SEED_HINTS = ("seed", "mnemonic", "phrase", "word", "bip", "metamask", "trezor")
_LISTS = sections("vestige.cognition.secrets", "phrases")


def _hints(name: str) -> tuple[str, ...]:
    return tuple(" ".join(_LISTS[name]).split())


PHRASE_HINTS = tuple(_LISTS["phrase_hints"])
CODE_HINTS = tuple(
    f"{word}{joint}code"
    for word in ("recovery", "backup", "rescue", "2fa", "mfa", "scratch", "emergency")
    for joint in ("", " ", "_", "-")
)
_SEED = pattern(_LISTS["seed"])
_WORDS = pattern(_LISTS["seed_words"], re.NOFLAG)
_PROSE = frozenset("the and for with are was were but from has its our their which not into his her".split())
_CODE = r"[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,4}"
_CODES = lazy_pattern(
    r"\b(?:recovery|backup|rescue|2fa|mfa|scratch|emergency)[ _-]?codes?\b"
    r"(?:[^\n:=]{0,40}?(?:[:=\n]|\bare\b|\bis\b)|(?=\s[a-z]{0,8}[\d-]))\s{0,4}"
    rf"(?P<secret>{_CODE}(?:[\s,;/|]{{1,4}}{_CODE}){{0,30}})",
    re.IGNORECASE,
)
_PIN = pattern(_LISTS["pin"], re.NOFLAG)
_SAFE = pattern(_LISTS["safe"])
_GROUPED = pattern(_LISTS["grouped_codes"])
_LICENCE = pattern(_LISTS["licence_key"])
_CARD_WORDS = pattern(_LISTS["card_codes"])
_PASSPHRASE = pattern(_LISTS["passphrase"], re.MULTILINE)
_APP_PASSWORD = pattern(_LISTS["app_password"])
_TOKEN = lazy_pattern(r"(?<![\w+/=.~-])[A-Za-z0-9+/_=.~-]{20,512}")
_IS_PHRASE = pattern(_LISTS["secret_words"])
_SAYS_CLEARLY = pattern(_LISTS["clear_secret_words"])
"""Words required beside lower-case letters and digits, which could be a hash."""
_LOWER = lazy_pattern(r"[a-z0-9]{24,}$|[A-Z0-9]{24,}$")
_UNSAYS = pattern(_LISTS["other_words"])
_NAME = lazy_pattern(r"[0-9a-fA-F-]+$|[\w-]+(?:\.[\w-]+)+$|[./~]|.*/.*/.*/|https?")
_TELLS = pattern(_LISTS["password_words"])
_TELLS_CLEARLY = pattern(_LISTS["clear_password_words"])
_MADE_UP = lazy_pattern(r"[a-z]\d{2,4}$|[a-z]\d[a-z]")
_PIECE = lazy_pattern(r"(?<![^\s\"'`(:])[^\s\"'`<>(),;]{8,64}(?![^\s\"'`),;.])")
PHRASE_NEAR = 100
BEFORE = 80
"""The largest distance of the word before a random string."""


def seed_phrases(text: str) -> Iterator[Found]:
    """The seed words of a wallet."""
    done = 0
    for word in _SEED.finditer(text):
        if word.start() < done:
            continue
        found = _WORDS.search(text, word.end(), word.end() + 4 * PHRASE_NEAR)
        done = word.end() + PHRASE_NEAR  # what begins so near ends within what was searched
        if found and not _PROSE & set(re.findall("[a-z]+", found["secret"])):
            done = found.end()
            yield "seed phrase", *found.span("secret"), f"follows `{word.group().casefold()}`"


def recovery_codes(text: str) -> Iterator[Found]:
    """Recovery codes, listed after these words."""
    for found in _CODES.finditer(text):
        start = found.start("secret")
        listed = re.finditer(r"[A-Za-z0-9-]+", found["secret"])
        drawn = [one.end() for one in listed if any(map(str.isdigit, one.group()))]
        if drawn and not is_placeholder(found["secret"]) and any(map(str.isdigit, found["secret"][:13])):
            yield "recovery codes", start, start + drawn[-1], "follows `codes`"


def grouped_codes(text: str) -> Iterator[Found]:
    """Seeds for one-time codes, in groups of letters."""
    for found in _GROUPED.finditer(text):
        yield "recovery codes", *found.span("secret"), "is grouped as a seed for one-time codes"


def licence_keys(text: str) -> Iterator[Found]:
    for found in _LICENCE.finditer(text):
        value = found["secret"]
        if value.isupper() and any(map(str.isdigit, value)) and not is_placeholder(value):
            yield "licence key", *found.span("secret"), "is grouped as a licence key"


def pins(text: str) -> Iterator[Found]:
    return _pins(text, _PIN)


def safe_pins(text: str) -> Iterator[Found]:
    """PINs of a door, a card, a phone and the like."""
    return _pins(text, _SAFE)


def card_codes(text: str) -> Iterator[Found]:
    return _pins(text, _CARD_WORDS)


def _pins(text: str, place: re.Pattern[str]) -> Iterator[Found]:
    for found in place.finditer(text):
        if len(set(found["secret"])) > 1:
            yield "PIN", *found.span("secret"), "follows `PIN`"


def passphrases(text: str) -> Iterator[Found]:
    """Phrases of plain words, and the groups of letters of application passwords."""
    for found in _PASSPHRASE.finditer(text):
        if not _PROSE & set(found["secret"].split()) and not begins_with_description(found["secret"]):
            yield "passphrase", *found.span("secret"), "follows `passphrase`"
    for found in _APP_PASSWORD.finditer(text):
        yield "password", *found.span("secret"), "follows `app password`"


def odd_beside_words(text: str) -> Iterator[Found]:
    """Strings that can only be passwords, on a line with a word for one."""
    last = -1
    for word in _TELLS.finditer(text):
        if word.end() <= last:
            continue  # that line was looked through
        start, end = text.rfind("\n", last + 1, word.start()) + 1 or last + 1, text.find("\n", word.end())
        end = min(end if end >= 0 else len(text), word.end() + PHRASE_NEAR)
        start = max(start, word.start() - PHRASE_NEAR, last + 1)
        last = max(last, end)
        for found in _PIECE.finditer(text, start, end):
            value = found.group().rstrip(".,:")
            clear = _TELLS_CLEARLY.match(word.group()) is not None
            if is_odd_password(value) or (clear and _is_made_up(value)):
                reason = f"stands beside `{word.group().casefold()}`"
                yield "password", found.start(), found.start() + len(value), reason


def _is_made_up(value: str) -> bool:
    """Whether letters and digits are mixed so that it is neither a name nor a number."""
    return (
        value.isalnum() and classes(value) == 3 and bool(_MADE_UP.search(value)) and is_mixed_password(value)
    )


def _line_before(text: str, at: int) -> str:
    """The text before on the same line, or the line before if it leads up to it."""
    lines = text[max(0, at - BEFORE) : at].rsplit("\n", 2)
    leads = len(lines) > 1 and not lines[-1].strip()
    return lines[-2] if leads else lines[-1]


def random_beside_words(text: str) -> Iterator[Found]:
    """Strings that look random, on a line with a word for secrets."""
    for found in _TOKEN.finditer(text):
        value = found.group().rstrip(".=")
        plain = classes(value) < 3 or _NAME.match(value)
        if not looks_random(value, least=20) or (plain and not _LOWER.match(value)):
            continue
        beside = (
            _line_before(text, found.start()),
            text[found.end() : found.end() + BEFORE].partition("\n")[0],
        )
        says = _SAYS_CLEARLY if plain else _IS_PHRASE
        named = any(says.search(part) for part in beside) and not any(_UNSAYS.search(part) for part in beside)
        if named and not is_placeholder(value):
            yield "secret", *found.span(), "looks random beside a word for secrets"


# -- Numbers of payment cards beside a word for a card

CARD_HINTS = ("visa", "master", "amex", "american", "maestro", "diners", "card", "kart", "cart", "tarjeta")
FEWEST_DIGITS = 6
"""Test numbers (4242 4242 4242 4242) have fewer different digits."""
_TEST_NUMBERS = frozenset(
    "378282246310005 371449635398431 378734493671000 30569309025904 38520000023237 6011000990139424".split()
)
"""Published test numbers that have more different digits."""
_CARD = lazy_pattern(
    r"(?<![\w.-])[2-6]\d{3}(?:([ -]?)\d{4}\1\d{4}\1\d{4}|[ -]?\d{6}[ -]?\d{4,5})(?![\w-]|\.\d)"
)
_SAYS = pattern(_LISTS["card_words"])
NEAR = 60
"""The largest distance of the word from the number, on the same line."""


def cards(text: str) -> Iterator[Found]:
    """Possible card numbers. A real one has the right check digit; of others one in ten has."""
    for found in _CARD.finditer(text):
        digits = re.sub(r"\D", "", found.group())
        if not _has_check_digit(digits) or len(set(digits)) < FEWEST_DIGITS or digits in _TEST_NUMBERS:
            continue
        before = text[max(0, found.start() - NEAR) : found.start()].rpartition("\n")[2]
        after = text[found.end() : found.end() + NEAR].partition("\n")[0]
        if _SAYS.search(before) or _SAYS.search(after):
            yield "card number", *found.span(), "is a card number beside a word for cards"


def _has_check_digit(digits: str) -> bool:
    """The Luhn checksum: every second digit from the right is doubled."""
    doubled = (int(one) * (1 + place % 2) for place, one in enumerate(reversed(digits)))
    return sum(sum(divmod(one, 10)) for one in doubled) % 10 == 0


# -- All detectors together

DETECTORS: tuple[tuple[Callable[[str], Iterator[Found]], tuple[str, ...]], ...] = (
    (addresses, ("://",)),
    (queries, ("?", "&")),
    (headers, HEADER_HINTS),
    (options, (" -",)),
    *((place.passwords, place.hints) for place in PLACES),
    (assignments, NAME_HINTS),
    (seed_phrases, SEED_HINTS),
    (passphrases, PHRASE_HINTS),
    (recovery_codes, CODE_HINTS),
    (grouped_codes, _hints("grouped_hints")),
    (licence_keys, _hints("licence_hints")),
    (pins, _hints("pin_hints")),
    (safe_pins, _hints("safe_hints")),
    (card_codes, _hints("card_code_hints")),
    (cards, CARD_HINTS),
    (random_beside_words, _hints("random_hints")),
    (odd_beside_words, _hints("password_hints")),
)
"""Detectors by context, each with hints of which one must occur."""


@cache
def _shapes() -> tuple[HintSet, tuple[tuple[Shape, int], ...]]:
    hints = HintSet(shape.hint for shape in SHAPES)
    return hints, tuple((shape, hints.mask([shape.hint])) for shape in SHAPES)


@cache
def _detectors() -> tuple[HintSet, tuple[tuple[Callable[[str], Iterator[Found]], int], ...]]:
    hints = HintSet(hint for _, given in DETECTORS for hint in given)
    return hints, tuple((detect, hints.mask(given)) for detect, given in DETECTORS)


def _candidates(text: str) -> Iterator[Found]:
    for start, end in private_keys(text):
        yield "private key", start, end, "is a block of a private key"
    yield from manifests(text)  # its value may be longer than a piece
    # A long text is searched in pieces: a search holds the interpreter lock to its end. What begins in a
    # piece is looked for with the words before it and to its end.
    for at in range(0, max(1, len(text)), PIECE_CHARS):
        first = max(0, at - PIECE_BEFORE)
        for kind, start, end, reason in _in_piece(text[first : at + PIECE_CHARS + PIECE_AFTER]):
            if at <= first + start < at + PIECE_CHARS:
                yield kind, first + start, first + end, reason


PIECE_CHARS, PIECE_BEFORE, PIECE_AFTER = 100_000, 4_000, 20_000


def _in_piece(text: str) -> Iterator[Found]:
    hints, shapes = _shapes()
    here = hints.found(text)
    for shape, bit in shapes:
        if here & bit:
            yield from _shaped(text, shape)
    hints, detectors = _detectors()
    here = hints.found(_folded(text))
    for detect, bits in detectors:
        if here & bits:
            yield from detect(text)


def _folded(text: str) -> str:
    """The text in lower case. Patterns that ignore case take the `İ` and `ı` of Turkish for an `i`."""
    plain = text.casefold()
    return plain if plain.isascii() else plain.replace("i\u0307", "i").replace("ı", "i")


def _shaped(text: str, shape: Shape) -> Iterator[Found]:
    for found in shape.pattern.finditer(text):
        groups = found.groupdict()
        value = groups.get("secret") or found.group()
        drawn = groups.get("drawn") or value
        random = is_drawn(drawn, least=4) if shape.distinctive else looks_random(drawn, least=10)
        if random and not is_placeholder(drawn):
            start, end = found.span("secret" if groups.get("secret") else 0)
            yield shape.kind, start, end, f"has the shape of a {shape.kind}"


def _inside(found: Found, spans: list[tuple[int, int]]) -> bool:
    before = bisect_right(spans, (found[1], found[2] + 1)) - 1
    return before >= 0 and found[1] < spans[before][1]


def _apart(found: Iterable[Found]) -> list[Secret]:
    """One secret where several overlap: over their whole span, of the kind found first."""
    ranked = sorted(enumerate(found), key=lambda one: (one[1][1], one[0]))
    apart: list[tuple[int, Found]] = []
    for rank, (kind, start, end, reason) in ranked:
        if apart and start < apart[-1][1][2]:
            before, (held, begin, until, why) = apart[-1]
            first = (held, why) if before <= rank else (kind, reason)
            apart[-1] = (min(before, rank), (first[0], begin, max(until, end), first[1]))
        else:
            apart.append((rank, (kind, start, end, reason)))
    return [Secret(kind=kind, start=start, end=end, reason=reason) for _, (kind, start, end, reason) in apart]

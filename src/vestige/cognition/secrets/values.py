"""Secret values: whether a value in the place of a secret is one, or only a name, a word or a placeholder."""

import re

from vestige.cognition.secrets.entropy import WORDY, classes, irregular, looks_random, wordiness
from vestige.cognition.text.word_lists import pattern, sections, words
from vestige.core.patterns import lazy_pattern

LOOKED_AT = 100  # The number of characters checked for a placeholder, which is short.
_LISTS = sections("vestige.cognition.secrets", "values")
LONG_LETTERS = 20  # The least number of letters for a word that nobody can read.
_CONSONANTS = lazy_pattern(r"[^aeiouyAEIOUY]{4}")
LONG_MIXTURE = 16
_DIGITS = lazy_pattern(r"\d+")
_STATES = words(_LISTS["states"])
"""Words that describe a password without giving it."""
_REMARKS = words(_LISTS["remarks"])
"""Function words: a phrase with one of them is a sentence about a password."""
_STATE_ENDS = pattern(_LISTS["state_endings"], re.NOFLAG)
_IDEOGRAPH = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts without spaces: a sentence would look like one word."""
_TECHNICAL = pattern(_LISTS["technical"])  # Technical terms that end with a number.
_LEET = lazy_pattern(r"\d\D|\d\d$|^\D{6,}\d$")
_ODD = lazy_pattern(r"[!@#$%^&*?+~][^\s]|[^\s][!#$%^&*?]$")
_PLACEHOLDER = pattern(_LISTS["placeholder"], re.NOFLAG)
_REFERENCE = pattern(_LISTS["reference"])
"""The beginnings of values that only reference a secret."""
_CALL = lazy_pattern(r"[A-Za-z_][\w.:>-]*[(\[]|[A-Za-z_]+(?:\.[A-Za-z_]+)+$|[A-Za-z_]\w*->")
_TYPES = words(_LISTS["types"])
"""Words in the place of a secret that are not one: types, states, methods, well-known defaults."""
_MEASURE = lazy_pattern(
    r"v?\d+\.\d[\w.+~-]*$|v?\d[\d.,:/x-]*\+?[- ]?(?:[a-z%]{0,12}|[A-Z]{1,3})$"
    r"|[A-Z]{2,6}-?\d{1,5}$|[a-z]{1,3}\d{1,4}$"
)
_UUID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_GROUPS = lazy_pattern(r"[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){2,7}$")
_PHRASE = lazy_pattern(r"[a-zA-Z]{3,12}(?:[ -][a-zA-Z]{3,12}){3,9}$")
_INNER = lazy_pattern(r"[A-Za-z][&!?%#$*+^~][A-Za-z]")
_RULES = lazy_pattern(r"\w+(?::[\w,]+)?(?:\|\w+(?::[\w,]+)?)+$")
_ADDRESS = lazy_pattern(
    r"[/\\|=<>{}()\[\]]|@[^\s.@]*\.|:\d|\+\+|\w&\w+=|%[0-9A-F]{2}|\*\*|&&|\$\w|[#@]\d+$|~\d|^[@#&]|\^\d|\d[+*]\d"
)
_REMARK = lazy_pattern(
    r"\b(?:characters?|chars|digits?|letters?|long|days?|at|be|is|to|of|in|by)\b|[{}%<>=]", re.I
)
_SYMBOL = lazy_pattern(r"[^\w\s]")


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder or a reference to a secret."""
    plain = value.strip().strip("\"'`")[:LOOKED_AT].lstrip("-")
    return (
        plain.casefold() in _TYPES
        or _PLACEHOLDER.search(plain.casefold()) is not None
        or _REFERENCE.match(plain) is not None
        or _RULES.match(plain) is not None
        or len(set(plain)) <= 2
    )


def is_password(value: str, *, quoted: bool, named: bool) -> bool:
    """Whether this is a password: what a person types. `named`: its name is in capitals, as in a file of
    environment variables, where even a plain word is a password."""
    if not 5 <= len(value) <= 256 or is_placeholder(value) or (not quoted and _CALL.match(value)):
        return False
    if (any(map(str.isspace, value)) and not (quoted and named)) or _IDEOGRAPH.search(value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if letters and digits:
        return not _MEASURE.match(value) or (named and quoted)
    if _INNER.search(value) and classes(value) == 2 and len(value) >= 8:
        return True
    if letters and _SYMBOL.search(value.strip(".,;:!?")):
        return quoted or named
    if letters and classes(value) == 2 and len(value) >= 10:
        return wordiness(value) < WORDY
    return named and not digits and "_" not in value and is_plain_password(value)


def is_plain_password(value: str) -> bool:
    """Whether a plain word in the place of a password could be one: it does not describe one."""
    plain = value.strip("!?").casefold()
    if not 5 <= len(value) <= 40 or is_placeholder(value) or plain in _STATES or _STATE_ENDS.search(plain):
        return False
    parts = plain.split("-")
    if not value.isascii() or not any(map(str.isalpha, value)):
        return False
    return all(part.isalnum() for part in parts) and not (len(parts) > 1 and _STATES & set(parts))


def is_spaced_password(value: str) -> bool:
    """Whether quoted words with a digit among them are a password, not a description of one."""
    words = value.split()
    return (
        2 <= len(words) <= 6
        and not _STATES & {word.casefold().strip(".,:") for word in words}
        and not is_placeholder(value)
        and any(map(str.isdigit, value))
        and not _REMARK.search(value)
    )


def is_passphrase(value: str) -> bool:
    """Whether three or more plain words are a password: not a sentence, and not a description of one."""
    words = value.split()
    if not 3 <= len(words) <= 10 or len(value) > LOOKED_AT or is_placeholder(value) or _REMARK.search(value):
        return False
    sentence = words[0].istitle() and not any(map(str.istitle, words[1:]))
    plain = [word.casefold() for word in words]
    ends = (len(word) > 5 and _STATE_ENDS.search(word) for word in (plain[0], plain[-1]))
    described = (_STATES | _REMARKS) & set(plain) or any(ends)
    return not sentence and not described and all(word.replace("-", "").isalpha() for word in words)


def begins_with_description(value: str) -> bool:
    """Whether the first of several words describes a password."""
    return value.split()[0].casefold() in _STATES


def is_mixed_password(value: str) -> bool:
    """Whether letters and digits are mixed as in a password that a person made up."""
    plain = value.replace("-", "").replace("_", "")
    return (
        plain.isalnum()
        and is_password(value, quoted=False, named=False)
        and bool(_LEET.search(value))
        and not _TECHNICAL.match(value)
    )


def is_odd_password(value: str) -> bool:
    """Whether this has letters, digits and signs like a password, unlike an address, path or formula."""
    return (
        8 <= len(value) <= 40
        and is_strong_password(value)
        and bool(_ODD.search(value))
        and not _ADDRESS.search(value)
    )


def is_strong_password(value: str) -> bool:
    """Whether this can hardly be anything but a password, in any context."""
    if not 7 <= len(value) <= 128 or is_placeholder(value) or _CALL.match(value):
        return False
    if "/" in value.strip("/") or any(map(str.isspace, value)):
        return False
    if _INNER.search(value) and classes(value) == 2 and len(value) >= 10:
        return True
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if not (letters and digits) or _MEASURE.match(value):
        return False
    return bool(_SYMBOL.search(value.rstrip(".,;:"))) or (classes(value) == 3 and wordiness(value) < 1)


def is_token(value: str, *, quoted: bool) -> bool:
    """Whether this is a token or key: what a machine made."""
    if not 8 <= len(value) <= 4096 or is_placeholder(value) or (not quoted and _CALL.match(value)):
        return False
    if any(c.isspace() for c in value):
        return False
    if classes(value) < 2 and not _SYMBOL.search(value):
        return is_unreadable(value)
    if _UUID.match(value) or _GROUPS.match(value):
        return len(irregular(value)) > 10
    if is_mixture(value) or looks_random(value, least=10):
        return True
    return is_strong_password(value) and wordiness(value) < 0.7


def is_key(value: str, least: int = 20) -> bool:
    """Whether this can hardly be anything but a key, in any context."""
    if any(map(str.isspace, value)) or is_placeholder(value) or _CALL.match(value):
        return False
    return any(map(str.isdigit, value)) and looks_random(value, least=least)


def is_unreadable(value: str) -> bool:
    """Whether these are letters of one case that no language has in this order, as in some tokens."""
    return (
        value.isascii()
        and value.isalpha()
        and len(value) >= LONG_LETTERS
        and len(set(value)) > LONG_LETTERS // 2
        and len(_CONSONANTS.findall(value)) > 1
    )


def is_mixture(value: str) -> bool:
    """Whether letters and digits take turns too often for a name, even if some of the letters read well."""
    return len(value) >= LONG_MIXTURE and value.isalnum() and len(_DIGITS.findall(value)) > 3


def is_phrase(value: str) -> bool:
    """Whether this consists of several plain words, like a passphrase."""
    return _PHRASE.match(value) is not None

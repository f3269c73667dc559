"""Removing secrets from the text of a project before anything of it is indexed or shown.

The rules are those for memories. They read every line closely, which takes too long for a whole repository,
so they get only the lines that can have a secret, each with its neighbours: lines with a word for secrets and
a value, with a long run of letters and digits, with a password in an address, or in other letters than Latin.
In a program a value is a literal: `token = next(words)` has none.
"""

import re
from collections.abc import Iterable, Iterator, Set
from functools import cache
from typing import TYPE_CHECKING

from vestige.cognition.code.languages import is_code
from vestige.core.patterns import lazy_pattern

if TYPE_CHECKING:
    from vestige.cognition.secrets.find import Secret

_WORDS = (
    "pass pwd pw= secret token key cred auth bearer cookie login otp 2fa mfa seed mnemonic phrase licen sess "
    "csrf psk salt pepper visa amex card puk cvv cvc signing private jeton clave contrase senha parola heslo "
    "kennwort zugang geheim wachtwoord identifiant mdp recovery backup pin pw wpa "
    "wifi combination ldap mysql curl"
).split()


def _any_of(words: Iterable[str]) -> str:
    """A pattern for whether one of several words is there: a tree of their letters, which is tried at each
    place of a text in a third of the time of a list."""
    endings: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""  # it is found; a longer word says no more
        endings.setdefault(word[0], []).append(word[1:])
    branches = [re.escape(first) + _any_of(rest) for first, rest in sorted(endings.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


_HINT = lazy_pattern(_any_of(_WORDS))
_VALUE = lazy_pattern(r"[\"'`=:\d]|\bis\b|\bare\b|-[puw]")
_LITERAL = lazy_pattern(r"[\"'`]|[a-z_]\d+[a-z_]|\d[a-z]|\d{4}|\bis\b")
_RUN = lazy_pattern(r"(?<![a-z0-9+/_=.~-])[a-z0-9+/_=.~-]{16,}+")
_ADDRESS = lazy_pattern("://")
_NOT_ASCII = lazy_pattern(r"[^\x00-\x7f]")
_DIGIT = lazy_pattern(r"\d")
_WHOLE = ("PRIVATE KEY", "b3BlbnNzaC1rZXktdjE", "PuTTY-User-Key-File-", '"kty"')
"""What secrets of many lines have."""
_PASS_WORD = lazy_pattern(r"(?i)pass")
_PASS = lazy_pattern(r"(?i)(?<![\w/&+$\"'-])pass(?:es)?[ \t\n](?!\s{0,3}(?:[:=]|is\b|are\b))")
VERB_CHARS = 200
_OPENING = ("[", "(", "{", "\\")
_MANIFEST = lazy_pattern(r"kind[\"']?\s{0,4}:\s{0,4}[\"']?Secret\b")


@cache
def _shape() -> re.Pattern[str]:
    from vestige.cognition.secrets.provider_keys import SHAPES  # a pass without changes needs no rules

    return re.compile(_any_of({one.hint for one in SHAPES if len(one.hint) > 2}))


def without_secrets(text: str, path: str = "") -> tuple[str, int]:
    """The text with every secret replaced by a mark, in as many lines as before; and how many there were."""
    secrets = secrets_in(text, path)
    if not secrets:
        return text, 0
    kept, at = [], 0
    for one in secrets:
        breaks = "\n" * text.count("\n", one.start, one.end)
        kept += [text[at : one.start], f"[redacted: {one.kind}]{breaks}"]
        at = one.end
    return "".join([*kept, text[at:]]), len(secrets)


def secrets_in(text: str, path: str = "") -> "list[Secret]":
    """The secrets of a source file, in order."""
    from vestige.cognition.secrets.find import Secret, find_secrets  # as above

    value = _LITERAL if is_code(path) else _VALUE
    if any(mark in text for mark in _WHOLE) or _MANIFEST.search(text):
        return find_secrets(text)
    found = (
        Secret(kind=one.kind, start=start + one.start, end=start + one.end, reason=one.reason)
        for start, end in _suspect_spans(text, value)
        for one in find_secrets(text[start:end])
    )
    return [one for one in found if not _follows_a_verb(text, one)]


def _follows_a_verb(text: str, secret: "Secret") -> bool:
    """Whether the word for a password is the verb: programs and their pages pass values all the time. A value
    with a digit counts as a password all the same, unless it is a list."""
    value = text[secret.start : secret.end]
    if secret.reason != "follows `pass`" or (_DIGIT.search(value) and not value.startswith(_OPENING)):
        return False
    before = text[max(0, secret.start - VERB_CHARS) : secret.start]
    return any(_PASS.match(before, one.start()) for one in list(_PASS_WORD.finditer(before))[-1:])


def _suspect_spans(text: str, value: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Runs of lines that can have a secret, with the line before and after each."""
    suspects = _suspect_lines(text, value)
    if not suspects:
        return
    spans: list[list[int]] = []
    before, at, last = 0, 0, False
    for line in text.split("\n"):
        following = at + len(line) + 1
        suspect = at in suspects
        if suspect and spans and spans[-1][1] >= before:
            spans[-1][1] = following
        elif suspect:
            spans.append([before, following])
        elif last:
            spans[-1][1] = following
        before, at, last = at, following, suspect
    yield from ((start, min(end, len(text))) for start, end in spans)


def _suspect_lines(text: str, value: re.Pattern[str]) -> set[int]:
    """Where lines begin that can have a secret. The text is searched as a whole, not line by line: most lines
    have nothing, and a search of its own for each of them took a fifth of the time of an index."""
    plain = text.lower()
    if len(plain) != len(text):  # a letter that is two in lower case; lines with one are suspects anyway
        plain = "".join(one if one.isascii() else "?" for one in text).lower()
    found: set[int] = set()
    for start, end in _lines_with(_HINT, plain):
        if value.search(plain, start, end):
            found.add(start)
    if not text.isascii():
        found.update(start for start, _ in _lines_with(_NOT_ASCII, text))
    if "://" in plain:
        found.update(start for start, end in _lines_with(_ADDRESS, plain) if plain.find("@", start, end) >= 0)
    found.update(_lines_with_a_key(text, plain, found))
    return found


def _lines_with_a_key(text: str, plain: str, known: Set[int]) -> Iterator[int]:
    """Where the other lines begin that have a long run with a digit, or a long run and the start of a key.
    The start is sought once in a line, however many runs it has: a line may be a whole file."""
    shape = _shape()
    start = end = 0
    suspect = sought = False
    for run in _RUN.finditer(plain):
        if run.start() >= end:  # the first of its line
            start = plain.rfind("\n", end, run.start()) + 1
            end = _end_of_line(plain, run.end())
            suspect, sought = start in known, False
        if suspect:
            continue
        suspect = _DIGIT.search(plain, *run.span()) is not None
        if not (suspect or sought):
            suspect, sought = shape.search(text, start, end) is not None, True
        if suspect:
            yield start


def _lines_with(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """The lines in which a pattern is found, each once, as places in the text."""
    at = 0
    while match := pattern.search(text, at):
        end = _end_of_line(text, match.end())
        yield text.rfind("\n", at, match.start()) + 1 or at, end
        at = end + 1


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end

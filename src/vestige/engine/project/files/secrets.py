"""Removing secrets from the text of a project before anything of it is indexed or shown.

The rules are those for memories. They read every line closely, which takes too long for a whole repository,
so they get only the lines that can have a secret, each with its neighbours: lines with a word for secrets and
a value, with a long run of letters and digits, with a password in an address, or in other letters than Latin.
In a program a value is a literal: `token = next(words)` has none.
"""

import re
from collections.abc import Iterator

from vestige.cognition.code.languages import is_code
from vestige.cognition.secrets.find import Secret, find_secrets
from vestige.cognition.secrets.provider_keys import SHAPES

_WORDS = (
    "pass pwd pw= secret token key cred auth bearer cookie login otp 2fa mfa seed mnemonic phrase licen sess "
    "csrf psk salt pepper visa amex card puk cvv cvc signing private jeton clave contrase senha parola heslo "
    "kennwort zugang geheim wachtwoord identifiant mdp recovery backup pin pw wpa "
    "wifi combination ldap mysql curl"
).split()
_HINT = re.compile("|".join(map(re.escape, _WORDS)))
_VALUE = re.compile(r"[\"'`=:\d]|\bis\b|\bare\b|-[puw]")
_LITERAL = re.compile(r"[\"'`]|[a-z_]\d+[a-z_]|\d[a-z]|\d{4}|\bis\b")
_RUN = re.compile(r"[a-z0-9+/_=.~-]{16,}")
_DIGIT = re.compile(r"\d")
_SHAPE = re.compile("|".join(sorted({re.escape(one.hint) for one in SHAPES if len(one.hint) > 2})))
_WHOLE = ("PRIVATE KEY", "b3BlbnNzaC1rZXktdjE", "PuTTY-User-Key-File-", '"kty"')
"""What secrets of many lines have."""
_MANIFEST = re.compile(r"kind[\"']?\s{0,4}:\s{0,4}[\"']?Secret\b")


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


def secrets_in(text: str, path: str = "") -> list[Secret]:
    """The secrets of a source file, in order."""
    value = _LITERAL if is_code(path) else _VALUE
    if any(mark in text for mark in _WHOLE) or _MANIFEST.search(text):
        return find_secrets(text)
    return [
        Secret(kind=one.kind, start=start + one.start, end=start + one.end, reason=one.reason)
        for start, end in _suspect_spans(text, value)
        for one in find_secrets(text[start:end])
    ]


def _suspect_spans(text: str, value: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Runs of lines that can have a secret, with the line before and after each."""
    spans: list[list[int]] = []
    before, at, last = 0, 0, False
    for line in text.split("\n"):
        following = at + len(line) + 1
        suspect = _is_suspect(line, value)
        if suspect and spans and spans[-1][1] >= before:
            spans[-1][1] = following
        elif suspect:
            spans.append([before, following])
        elif last:
            spans[-1][1] = following
        before, at, last = at, following, suspect
    yield from ((start, min(end, len(text))) for start, end in spans)


def _is_suspect(line: str, value: re.Pattern[str]) -> bool:
    if not line.isascii():
        return True
    plain = line.lower()
    if _HINT.search(plain) and value.search(plain):
        return True
    if "@" in plain and "://" in plain:
        return True
    runs = [found.group() for found in _RUN.finditer(plain)]
    return any(_DIGIT.search(run) for run in runs) or (bool(runs) and _SHAPE.search(line) is not None)

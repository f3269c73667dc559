"""Secrets recognised by their place: in a command line, a file, a URL, a header, or beside a user name."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator

from vestige.cognition.secrets import values
from vestige.cognition.secrets.assignments import Found
from vestige.cognition.secrets.entropy import looks_random
from vestige.cognition.text.word_lists import sections
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

_ARGUMENT = lazy_pattern(r"[a-z_]{1,20}=")  # The next argument of a call.


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordPlace:
    """A place of a password in a command line or a file. One of the hints occurs there; if it could be
    something else, only a `strong` password counts, or one that is `mixed` of letters and digits; if it is
    `certain`, anything counts."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    strong: bool = False
    mixed: bool = False
    certain: bool = False

    def holds(self, value: str) -> bool:
        """Whether the value there is a password."""
        if value.count("|") > 1 or _ARGUMENT.match(value):
            return False
        if self.certain:
            return not values.is_placeholder(value)
        if values.is_strong_password(value):
            return True
        if self.mixed:
            return values.is_mixed_password(value)
        return not self.strong and values.is_password(value, quoted=False, named=True)

    def passwords(self, text: str) -> Iterator[Found]:
        """Passwords on a command line, and pairs of a user and a password."""
        for found in self.pattern.finditer(text):
            start = found.start("secret")
            value = found["secret"].rstrip(".,;)")
            if self.holds(value):
                yield "password", start, start + len(value), "is given as a password"


_WORD = r"[\"']?(?P<secret>[^\s\"'`-][^\s\"'`]{3,127})"
_DIRECTIVE = (
    r"(?:requirepass|masterauth|rootpw|bindpw|rpcpassword|remote_password|insecure-password|auth_pass"
    r"|wpa_passphrase|smtp_sasl_password|proxy_password|vnc_password)"
)
_HOST = r"(?<![\w.*:/-])(?:(?:[\w-]{1,63}\.){1,6}[\w-]{1,63}|localhost|\*)"
_PGPASS = rf"{_HOST}:(?:\d{{3,5}}|\*):(?:[a-z][\w-]{{0,62}}|\*):(?:[a-z][\w.-]{{0,62}}|\*):{_WORD}"
_PARTS = {"<word>": _WORD, "<directive>": _DIRECTIVE, "<pgpass>": _PGPASS}


def _place(line: str) -> PasswordPlace:
    hints, kind, pattern = line.split(" | ", 2)
    for name, part in _PARTS.items():
        pattern = pattern.replace(name, part)
    return PasswordPlace(
        hints=tuple(hints.split()),
        pattern=lazy_pattern(pattern, re.IGNORECASE | re.MULTILINE),
        strong=kind == "strong",
        mixed=kind == "mixed",
        certain=kind == "certain",
    )


PLACES = tuple(map(_place, sections("vestige.cognition.secrets", "password_places")[""]))
_QUERY = lazy_pattern(
    r"[?&](?:code|otp|auth|key|k|t|hash|invite|magic|ticket|sso|sid|jwt|sig|signature|secret|api_?key|token|pin"
    r"|access_token|id_token|private_token|auth_?token|invitation|reset|verify|confirmation|session)="
    r"(?P<secret>[\w.~%+/-]{4,2048})=*",
    re.IGNORECASE,
)
_ONCE = lazy_pattern(r"[?&](?:otp|pin)=\d{4,8}$", re.IGNORECASE)
_HASH = lazy_pattern(r"[0-9a-f-]+$")
_OPTION = lazy_pattern(r"\s-[a-zA-Z]\s(?P<secret>[A-Za-z0-9_.=+/-]{24,400})(?!\S)")


def queries(text: str) -> Iterator[Found]:
    """Keys in the query of a URL, which give access to its page."""
    for found in _QUERY.finditer(text):
        if values.is_key(found["secret"]) or _ONCE.match(found.group()):
            yield "key in a URL", *found.span("secret"), "stands in the query of a URL"


def options(text: str) -> Iterator[Found]:
    """Random strings given to a short option of a command."""
    for found in _OPTION.finditer(text):
        value = found["secret"]
        if values.is_key(value) and not _HASH.match(value) and "/" not in value:
            yield "key", *found.span("secret"), "is given to a command"


_SECRET_KIND = lazy_pattern(
    r"^[ \t]{0,8}kind:[ \t]{1,4}[\"']?Secret\b|\"kind\"\s{0,4}:\s{0,4}\"Secret\"", re.MULTILINE
)
_DATA = lazy_pattern(
    r"^[ \t]{0,8}data:[ \t]{0,4}\n(?P<lines>(?:[ \t]{1,12}[^\s#][^\n]*+\n?)++)", re.MULTILINE
)
_JSON_DATA = lazy_pattern(r"\"data\"\s{0,4}:\s{0,4}\{(?P<lines>[^{}]*+)\}")
_BASE64 = r"[A-Za-z0-9+/]{8,}+={0,2}+"
_ENTRY = lazy_pattern(
    r"(?<![\w.-])[\w.-]{1,80}:[ \t]{1,4}(?:[|>][+-]?[ \t]{0,4}\n[ \t]{1,16})?[\"']?"
    rf"(?P<secret>{_BASE64}(?:\n[ \t]{{1,16}}[A-Za-z0-9+/]++={{0,2}}+$)*+)[\"']?[ \t]*+$",
    re.MULTILINE,
)
_JSON_ENTRY = lazy_pattern(rf"\"\s{{0,4}}:\s{{0,4}}\"(?P<secret>{_BASE64})\"")


def manifests(text: str) -> Iterator[Found]:
    """The encoded values of a Kubernetes Secret, whose names may say nothing."""
    if "Secret" not in text or not _SECRET_KIND.search(text):
        return
    for data, entry in ((_DATA, _ENTRY), (_JSON_DATA, _JSON_ENTRY)):
        for lines in data.finditer(text):
            for found in entry.finditer(text, *lines.span("lines")):
                if _is_data(found["secret"]):
                    yield "Kubernetes secret", *found.span("secret"), "is the data of a Secret"


def _is_data(encoded: str) -> bool:
    """Whether this is the base64 of bytes or of a text that stands for nothing else."""
    raw = _raw("".join(encoded.split()))
    if raw is None:
        return False
    try:
        return not values.is_placeholder(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return not values.is_placeholder(encoded)  # a word such as `changeme` is base64 too


# -- URLs and headers

HEADER_HINTS = ("bearer", "basic", "auth", "cookie", "authorization")
_URL = lazy_pattern(r"://(?:(?!://)[^\s\"'<>`])+")
_PORT = lazy_pattern(r"\d{1,5}(?:[/?#]|$)")
_BEARER = lazy_pattern(r"\bbearer\s{1,4}\\?[\"']?(?P<secret>[A-Za-z0-9._~+/=|:-]{12,4096})", re.IGNORECASE)
_BASIC = lazy_pattern(
    r"\b(?:basic\s{1,4}|auth\\?[\"']\s?:\s?)\\?[\"']?(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})", re.IGNORECASE
)
_SCHEME = lazy_pattern(
    r"\bauthorization\\?[\"']?\s?[:=]\s{0,2}\\?[\"']?[A-Za-z][\w-]{1,20}\s{1,2}"
    r"(?P<secret>[\w.~+/=-]{16,1024})",
    re.IGNORECASE,
)
_COOKIE = lazy_pattern(
    r"\bcookies?2?\b[^\n:={(]{0,40}[:=]\s?\\?[\"']?(?P<pairs>[^\n\"']{8,4096})", re.IGNORECASE
)
_PAIR = lazy_pattern(r"[\w.$!%-]{1,64}=(?P<secret>[^;\s\\]{12,2048})")


def addresses(text: str) -> Iterator[Found]:
    """Passwords in the authority of a URL: scheme://user:password@host."""
    for found in _URL.finditer(text):
        userinfo, at, host = found.group()[3:].rpartition("@")
        user, colon, password = userinfo.partition(":")
        begin = found.start() + 3
        if at and host and values.is_key(user):
            yield "token in a URL", begin, begin + len(userinfo), "stands before the host of a URL"
            continue
        if not (at and colon and host and password) or "/" in user or _PORT.match(password):
            continue
        start = begin + len(user) + 1
        if not values.is_placeholder(password) and password != user and len(password) > 2:
            yield "password in a URL", start, start + len(password), "stands before the host of a URL"


def headers(text: str) -> Iterator[Found]:
    """Secrets in authorisation headers: bearer tokens, basic authentication, cookies."""
    for found in _BEARER.finditer(text):
        start, end = found.span("secret")
        end -= text[start:end].endswith(".")
        if values.is_token(text[start:end], quoted=False):
            yield "bearer token", start, end, "follows `bearer`"
    for found in _SCHEME.finditer(text):
        if values.is_token(found["secret"], quoted=False):
            yield "authorization", *found.span("secret"), "stands in an authorization header"
    for found in _BASIC.finditer(text):
        if _is_basic(found["secret"]):
            yield "basic authentication", *found.span("secret"), "follows `basic`"
    for found in _COOKIE.finditer(text):
        for pair in _PAIR.finditer(text, *found.span("pairs")):
            if looks_random(pair["secret"]) and not values.is_placeholder(pair["secret"]):
                yield "cookie", *pair.span("secret"), "is the value of a cookie"


def _is_basic(encoded: str) -> bool:
    """Whether this is the base64 of user:password."""
    decoded = _decoded(encoded) or ""
    _, colon, password = decoded.partition(":")
    return bool(colon and password) and decoded.isprintable() and not values.is_placeholder(password)


def _decoded(encoded: str) -> str | None:
    """The decoded text; None if it is not the base64 of a text."""
    raw = _raw(encoded)
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _raw(encoded: str) -> bytes | None:
    try:
        return b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except Error:
        return None

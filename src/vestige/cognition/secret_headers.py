"""Secrets that are told by their place in the address of a URL or in a header."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator

from vestige.cognition.entropy import looks_random
from vestige.cognition.secret_names import Found
from vestige.cognition.secret_values import is_key, is_placeholder, is_token

HEADER_HINTS = ("bearer", "basic", "auth", "cookie", "authorization")
_URL = re.compile(r"://(?:(?!://)[^\s\"'<>`])+")
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")
_BEARER = re.compile(r"\bbearer\s{1,4}\\?[\"']?(?P<secret>[A-Za-z0-9._~+/=|:-]{12,4096})", re.IGNORECASE)
_BASIC = re.compile(
    r"\b(?:basic\s{1,4}|auth\\?[\"']\s?:\s?)\\?[\"']?(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})", re.IGNORECASE
)
_SCHEME = re.compile(
    r"\bauthorization\\?[\"']?\s?[:=]\s{0,2}\\?[\"']?[A-Za-z][\w-]{1,20}\s{1,2}"
    r"(?P<secret>[\w.~+/=-]{16,1024})",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"\bcookies?2?\b[^\n:={(]{0,40}[:=]\s?\\?[\"']?(?P<pairs>[^\n\"']{8,4096})", re.IGNORECASE
)
_PAIR = re.compile(r"[\w.$!%-]{1,64}=(?P<secret>[^;\s\\]{12,2048})")


def addresses(text: str) -> Iterator[Found]:
    """Passwords in the authority of a URL: scheme://user:password@host."""
    for found in _URL.finditer(text):
        userinfo, at, host = found.group()[3:].rpartition("@")
        user, colon, password = userinfo.partition(":")
        begin = found.start() + 3
        if at and host and is_key(user):
            yield "token in a URL", begin, begin + len(userinfo), "stands before the host of a URL"
            continue
        if not (at and colon and host and password) or "/" in user or _PORT.match(password):
            continue
        start = begin + len(user) + 1
        if not is_placeholder(password) and password != user and len(password) > 2:
            yield "password in a URL", start, start + len(password), "stands before the host of a URL"


def headers(text: str) -> Iterator[Found]:
    """What stands in headers that authorise: bearer tokens, basic authentication, cookies."""
    for found in _BEARER.finditer(text):
        start, end = found.span("secret")
        end -= text[start:end].endswith(".")
        if is_token(text[start:end], quoted=False):
            yield "bearer token", start, end, "follows `bearer`"
    for found in _SCHEME.finditer(text):
        if is_token(found["secret"], quoted=False):
            yield "authorization", *found.span("secret"), "stands in an authorization header"
    for found in _BASIC.finditer(text):
        if _is_basic(found["secret"]):
            yield "basic authentication", *found.span("secret"), "follows `basic`"
    for found in _COOKIE.finditer(text):
        for pair in _PAIR.finditer(text, *found.span("pairs")):
            if looks_random(pair["secret"]) and not is_placeholder(pair["secret"]):
                yield "cookie", *pair.span("secret"), "is the value of a cookie"


def _is_basic(encoded: str) -> bool:
    """Whether this is the base64 of user:password."""
    try:
        decoded = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (Error, UnicodeDecodeError):
        return False
    _, colon, password = decoded.partition(":")
    return bool(colon and password) and decoded.isprintable() and not is_placeholder(password)

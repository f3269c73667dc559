"""Private keys: whole, cut, or flattened to one line."""

from collections.abc import Iterator

from vestige.cognition.secrets.entropy import looks_random
from vestige.core.patterns import lazy_pattern

NEAR_END = 16_000
"""How far from its first line the last line of a key is looked for. A longer body must lead up to it."""
LEAST_BODY = 24
_BEGIN = lazy_pattern(r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = lazy_pattern(r"-{4,5} ?END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = lazy_pattern(r"(?:[A-Za-z0-9+/=]|\\+[nr]|[\s|>\"',])+")
_HEADERS = lazy_pattern(
    r"(?:(?:\s|\\+[nr])*(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{0,200})+"
)
_OPENSSH = lazy_pattern(r"b3BlbnNzaC1rZXktdjE(?:[A-Za-z0-9+/=]|\\+[nr]|\s(?=\S)){40,}")
_PUTTY = lazy_pattern(r"PuTTY-User-Key-File-\d")
_MAC = lazy_pattern(r"Private-(?:MAC|Hash): ?[0-9a-fA-F]{20,128}")
_LINES = lazy_pattern(r"Private-Lines: ?\d+(?:\s|\\+[nr])+[A-Za-z0-9+/=\s\\]+")
_JWK = lazy_pattern(r"\\?\"d\\?\"\s{0,4}:\s{0,4}\\?\"([\w-]{20,}+)\\?\"")
_NOISE = lazy_pattern(r"(?<!\\)\\+[nr]|[\s|>\"',=]")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\ \t\r\n\"',")

Span = tuple[int, int]


def private_keys(text: str) -> Iterator[Span]:
    """The spans of private keys."""
    if "PRIVATE KEY" in text:
        yield from _whole(text)
        yield from _tails(text)
    if "b3BlbnNzaC1rZXktdjE" in text:
        yield from (found.span() for found in _OPENSSH.finditer(text))
    if "PuTTY-User-Key-File-" in text:
        yield from _putty(text)
    if "kty" in text:
        yield from (found.span(1) for found in _JWK.finditer(text))


def _whole(text: str) -> Iterator[Span]:
    """Keys with their first line, with or without the last. Each is looked for up to the next one, so that
    the text is read once."""
    for begin in _BEGIN.finditer(text):
        following = _BEGIN.search(text, begin.end())
        limit = following.start() if following else len(text)
        headers = _HEADERS.match(text, begin.end(), limit)
        body = _BODY.match(text, headers.end() if headers else begin.end(), limit)
        if body is not None and _is_body(body.group()):
            near = min(limit, max(begin.end() + NEAR_END, body.end() + 100))
            end = _END.search(text, begin.end(), near)
            yield begin.start(), end.end() if end else body.end()


def _tails(text: str) -> Iterator[Span]:
    """Keys of which only the end is present."""
    for end in _END.finditer(text):
        start = end.start()
        while start > 0 and text[start - 1] in _BASE64:
            start -= 1
        body = text[start : end.start()]
        if _is_body(body):
            yield start + len(body) - len(body.lstrip()), end.end()


def _putty(text: str) -> Iterator[Span]:
    for begin in _PUTTY.finditer(text):
        following = _PUTTY.search(text, begin.end())
        lines = _LINES.search(text, begin.end(), following.start() if following else len(text))
        if lines is not None and _is_body(lines.group().partition("\n")[2] or lines.group()[20:]):
            mac = _MAC.search(text, lines.end() - 16, lines.end() + 200)
            yield begin.start(), mac.end() if mac else lines.end()


def _is_body(body: str) -> bool:
    plain = _NOISE.sub("", body)
    return len(plain) >= LEAST_BODY and looks_random(plain[:200], least=LEAST_BODY)

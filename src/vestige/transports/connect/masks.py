"""Masks secrets of other servers in a settings file, so that it can be shown.

Secrets are recognised by name and position, on the safe side: hiding a harmless value costs little.
"""

import re
from bisect import bisect_right
from collections.abc import Collection

MASK = "********"

_STRING = r'(?:"""(?:[^\\]|\\.)*?"""+|\'\'\'.*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
_COMMENT = r"(?://[^\n]*|/\*.*?\*/|#[^\n]*)"
_TOKEN = re.compile(rf"(?P<comment>{_COMMENT})|{_STRING}(?=\s*[:=])|(?P<value>{_STRING})", re.DOTALL)
_PLACE = r"\b(?:env|environment|env_http_headers|http_headers|headers)[\"']?"
_SECTION = re.compile(
    rf"{_PLACE}\s*[:=]\s*\{{(?:{_STRING}|{_COMMENT}|[^{{}}\"])*+"  # in braces
    rf"|^[ \t]*\[[^\]\n]*{_PLACE}[ \t]*\][^\n]*(?:\n(?![ \t]*\[)[^\n]*)*"  # a table of TOML
    rf"|{_PLACE}\.[^=\n]{{1,200}}=[^\n]*",  # a dotted name of TOML
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_NAME = r"(?:key|token|secret|pass|pwd|auth|credential|cookie|bearer)[\w.-]{0,60}"
_NAMED = re.compile(rf"{_NAME}[\"']?\s*[:=,]\s*\[?\s*\Z", re.IGNORECASE)
_NAMED_CHARS = 100
"""Characters before a value in which its name is searched."""
_WITHIN = re.compile(
    rf"(?P<before>{_NAME}[\"']?\s*[:=]\s*|(?<![\w-])--[\w-]{{0,60}}{_NAME}\s+|\bBearer +)"
    r"(?:\"[^\"\n]*\"|'[^'\n]*'|(?:(?:Bearer|Basic) +)?[^\s&]+)"
    r"|(?<=://)[^/\s@]+(?=@)"
    r"|\b(?:vst_|sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|hf_)[\w-]{4,}",
    re.IGNORECASE,
)
"""A secret in a longer text: after its name or option, in a URL, or with a known prefix."""


def hidden(text: str, own: Collection[str] = ()) -> str:
    """JSON or TOML with the same lines, and values that may be secrets masked, except those in `own`, which
    are given as written, with quotes.
    """
    places = [(0, 0), *(found.span() for found in _SECTION.finditer(text))]

    def seen(token: re.Match[str]) -> str:
        shown, value = token.group(), token["value"]
        if value is None:
            return _WITHIN.sub(_masked, shown) if token["comment"] else shown
        if value in own:
            return shown
        start, end = places[bisect_right(places, (token.start(), len(text))) - 1]
        if start <= token.start() < end or _NAMED.search(
            text, max(0, token.start() - _NAMED_CHARS), token.start()
        ):
            return shown[0] + "\n".join([MASK] * (shown.count("\n") + 1)) + shown[0]
        return shown[0] + _WITHIN.sub(_masked, shown[1:-1]) + shown[0]

    return _TOKEN.sub(seen, text)


def _masked(found: re.Match[str]) -> str:
    return (found["before"] or "") + MASK

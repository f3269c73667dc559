"""Finding text that tries to command the agent that reads it: pure rules, linear in the length of the text.

A finding is `clear` if there is hardly another reason to write so; else it only counts for texts from
sources that are trusted less than an agent. A text that quotes such words to write about them has no clear
finding.
"""

import base64
import binascii
import codecs
import enum
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from vestige.cognition.text.word_lists import pattern, sections
from vestige.core.lazy_dataclass import dataclass
from vestige.core.origin import Origin
from vestige.core.patterns import lazy_pattern


class InjectionKind(enum.StrEnum):
    """What a text tries."""

    OVERRIDE = "override"
    """To replace the instructions of the agent."""
    ORDER = "order"
    """To make the agent run or change something."""
    SECRECY = "secrecy"
    """To keep something from the user."""
    HIDDEN = "hidden"
    """To carry characters that are not seen."""
    MARKUP = "markup"
    """To hide orders in comments or invisible elements."""
    ENCODED = "encoded"
    """To hide orders in an encoding."""
    TOOL = "tool"
    """To look like a call of a tool."""
    ROLE = "role"
    """To look like a message of the system or the user."""
    FENCE = "fence"
    """To end the quotation that it is in."""
    EXFILTRATION = "exfiltration"
    """To send data elsewhere."""
    MEANING = "meaning"
    """To command an agent in words that no rule knows, by the learned judgement."""


@dataclass(frozen=True, slots=True)
class FoundInjection:
    kind: InjectionKind
    clear: bool = True


_LISTS = sections("vestige.cognition.evidence.injection", "orders")
_WORDS = ("agent", "named", "this", "instructions", "data", "send", "away")


def _pattern(name: str) -> "re.Pattern[str]":
    """The pattern of a section, with the lists of words that it names."""
    source = "".join(_LISTS[name])
    for word in _WORDS:
        source = source.replace(f"{{{word}}}", "".join(_LISTS[word]))
    return pattern([source], re.RegexFlag(0))


NEAR = 240
"""The most characters between a dangerous command and the words that order it."""
MOST_DECODED = 20
"""Encoded passages of a text that are read, the longest first."""

_OVERRIDE = _pattern("override")
_ADDRESSED = _pattern("addressed")
_LEAD = _pattern("lead")
_DANGER = _pattern("danger")
_SECRECY = _pattern("secrecy")
_UNSEEN_ORDER = _pattern("unseen_order")
_POISON_MEMORY = _pattern("poison_memory")
_DECODE_AND_RUN = _pattern("decode_and_run")
_RUNS = _pattern("runs")
_CALL_IT = _pattern("call_it")
_FENCE = _pattern("fence")
_EXFILTRATION = _pattern("exfiltration")
_ABOUT = _pattern("about")

# -- Characters that are not seen

_WIDTHLESS = "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u200e\u200f\u180e"
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_UNSEEN = str.maketrans("", "", _WIDTHLESS + _BIDI)
_SPACES = lazy_pattern(r"[ \t\f\v]+")
_TURNED = lazy_pattern("[\u202d\u202e]")
_SPACED_OUT = lazy_pattern(f"(?:[A-Za-z ][{_WIDTHLESS}]){{5}}")
_RUN = lazy_pattern("[\u200b\u200c\u200d\u2060-\u2064\ufeff]{8}")
_TAGGED = lazy_pattern("(?<!\U0001f3f4)[\U000e0020-\U000e007f]{8}")
_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}

_INVISIBLE = lazy_pattern(
    # What is not closed hides the rest as well, and is not looked at again from every further beginning.
    r"<!--((?:[^-]|-(?!->)){0,2000}+)(?:-->)?"
    r"|<template>((?:[^<]|<(?!/template>)){0,2000}+)(?:</template>)?"
    r"|\[//\]: # \(([^)\n]{0,500})\)"
    r"|<(?:p|div|span|font|b|i)\b(?=[^>]{0,200}(?:\bhidden\b|display: ?none|opacity: ?0|font-size: ?[01]px"
    r"|color(?::|=\") ?(?:white|#fff)))[^>]{0,200}>([^<]{0,500})<"
    r"|\b(?:alt|title)=\"([^\"]{0,500})\""
)

# -- Encodings

_BASE64 = lazy_pattern(r"[A-Za-z0-9+/]{24,}={0,2}")
_HEX = lazy_pattern(r"\b(?:[0-9a-fA-F]{2}){16,}\b")
_PERCENT = lazy_pattern(r"(?:%[0-9a-fA-F]{2}){8,}")

# -- Imitations

_TOOL = lazy_pattern(
    r"</?(?:antml:)?function_calls>|<(?:antml:)?invoke name=|</?tool_(?:call|use|code)\b[^>\n]{0,80}>"
    r"|</tool_result>|<\|tool_call|\[tool_calls\]|\"type\" ?: ?\"tool_use\"|\"method\" ?: ?\"tools/call\""
    r"|(?:^|\n)action input:|\bdefault_api\.\w+\("
)
_TOOL_JSON = lazy_pattern(r"\"(?:tool|name)\" ?: ?\"\w+\", ?\"(?:arguments|parameters|input)\" ?: ?\{")
_ROLE = lazy_pattern(
    r"<\|(?:im_start|im_end|system|assistant|user|end|eot_id|start_header_id|end_header_id|endoftext)\|>"
    r"|</?(?:assistant|human|admin)>|\"role\" ?: ?\"(?:system|developer)\", ?\"content\" ?: ?\"you "
    r"|<</?sys>>|\[/inst\]|</?system(?:[-_](?:reminder|message|prompt))?>"
    r"|(?:^|\n)#{2,3} ?(?:system|assistant) ?: ?(?:\n|$)"
    r"|(?:^|\n)human: [^\n]{0,300}\n\s{0,3}assistant:"
    r"|^system ?: |\n(?:system|developer) ?: "
    r"|\[system (?:message|prompt|notice|override)\]"
)
_CLOSING = lazy_pattern(
    r"(?:^|\n|\]\]>|\") {0,3}</(?:[a-z]+-recall|context|data|document|documents|memory|memories"
    r"|untrusted\w*|user_data"
    r"|retrieved\w*)>"
)

_QUOTED = lazy_pattern(r"[\"“”'`‘’«»][^\"“”'`‘’«»\n]{8,300}[\"“”'`‘’«»]")


def find_injections(text: str) -> tuple[FoundInjection, ...]:
    """What a text tries, each kind once. Empty for a harmless one."""
    found: dict[InjectionKind, FoundInjection] = {}
    for one in (*_unseen(text), *_encoded(text), *_spoken(text)):
        known = found.get(one.kind)
        if known is None or (one.clear and not known.clear):
            found[one.kind] = one
    return tuple(found.values())


def suspicious(text: str, origin: str | None) -> tuple[str, ...]:
    """The kinds that count for a text of this origin: none for the user's own, only clear ones for an
    agent's."""
    if origin == Origin.USER:
        return ()
    close = origin in (None, Origin.ASSISTANT)
    return tuple(one.kind.value for one in find_injections(text) if one.clear or not close)


def _unseen(text: str) -> Iterator[FoundInjection]:
    """Orders or data in characters that are not seen."""
    if text.isascii():
        return
    signs = (_TURNED, _SPACED_OUT, _RUN, _TAGGED)
    if any(sign.search(text) for sign in signs):
        yield FoundInjection(InjectionKind.HIDDEN)
    hidden = "".join(character for character in text if ord(character) in _TAGS).translate(_TAGS)
    if len(hidden) >= 8:
        yield from _spoken(hidden)


def plain(text: str) -> str:
    """The text as it is compared: without unseen characters and styles, in lower case, with single spaces."""
    shown = text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_UNSEEN))
    return _SPACES.sub(" ", shown.casefold().replace("\r", "\n"))


def _spoken(text: str) -> Iterator[FoundInjection]:
    """What the words say."""
    words = plain(text)
    quoted = _about_injection(words)
    for kind, applies in _RULES:
        if applies(words):
            yield FoundInjection(kind, clear=not quoted)
    yield from _invisible(words)
    if _ADDRESSED.search(words):
        yield FoundInjection(InjectionKind.ORDER, clear=False)
    if _TOOL_JSON.search(words):
        yield FoundInjection(InjectionKind.TOOL, clear=bool(_CALL_IT.search(words)) and not quoted)


def _about_injection(words: str) -> bool:
    """Whether a text writes about such texts: it names them, and what it quotes is in quotation marks."""
    if not _ABOUT.search(words):
        return False
    rest = _QUOTED.sub(" ", words)
    return not any(applies(rest) for _, applies in _RULES)


def _orders(words: str) -> bool:
    """Whether a text orders something dangerous, of an agent or on every occasion."""
    for danger in _DANGER.finditer(words):
        near = words[max(0, danger.start() - NEAR) : danger.end() + NEAR]
        if _LEAD.search(near) or _ADDRESSED.search(near):
            return True
    return False


def _closes(words: str) -> bool:
    """Whether a text closes an element of a context that it did not open."""
    match = _CLOSING.search(words)
    if match is None:
        return bool(_FENCE.search(words))
    name = match[0].rpartition("</")[2].rstrip(">")
    return f"<{name}>" not in words[: match.start()] or bool(_FENCE.search(words))


def _flat(applies: Callable[[str], object]) -> Callable[[str], bool]:
    """A rule for the words of a text, wherever its lines are broken."""
    return lambda words: bool(applies(words.replace("\n", " ")))


_RULES: tuple[tuple[InjectionKind, Callable[[str], bool]], ...] = (
    (InjectionKind.OVERRIDE, _flat(lambda words: _OVERRIDE.search(words))),
    (InjectionKind.ORDER, _flat(_orders)),
    (InjectionKind.ORDER, _flat(lambda words: _POISON_MEMORY.search(words))),
    (InjectionKind.SECRECY, _flat(lambda words: _SECRECY.search(words))),
    (InjectionKind.TOOL, lambda words: bool(_TOOL.search(words))),
    (InjectionKind.ROLE, lambda words: bool(_ROLE.search(words))),
    (InjectionKind.FENCE, _closes),
    (InjectionKind.EXFILTRATION, _flat(lambda words: _EXFILTRATION.search(words))),
    (InjectionKind.ENCODED, lambda words: bool(_DECODE_AND_RUN.search(words))),
)


def _invisible(words: str) -> Iterator[FoundInjection]:
    for match in _INVISIBLE.finditer(words):
        inner = next((group for group in match.groups() if group), "")
        if inner and _UNSEEN_ORDER.search(inner):
            yield FoundInjection(InjectionKind.MARKUP)
            return


def _encoded(text: str) -> Iterator[FoundInjection]:
    """Orders in passages that are encoded."""
    if any(_is_order(one) for one in _decoded(text)):
        yield FoundInjection(InjectionKind.ENCODED)


def _is_order(words: str) -> bool:
    said = plain(words)
    return bool(_RUNS.search(said)) or any(applies(said) for _, applies in _RULES)


def _decoded(text: str) -> Iterator[str]:
    blobs = sorted((match[0] for match in _BASE64.finditer(text)), key=len, reverse=True)
    for blob in blobs[:MOST_DECODED]:
        yield from _readable(_unbase64(blob))
    for match in sorted((match[0] for match in _HEX.finditer(text)), key=len, reverse=True)[:MOST_DECODED]:
        yield from _readable(bytes.fromhex(match))
    yield from (unquote(match[0]) for match in _PERCENT.finditer(text))
    if "rot13" in text.casefold():
        yield codecs.encode(text, "rot13")


def _unbase64(blob: str) -> bytes:
    body = blob.rstrip("=")
    body = body[: len(body) - 1] if len(body) % 4 == 1 else body
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return b""


def _readable(raw: bytes) -> Iterator[str]:
    """The bytes as text, if they are words."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return
    if " " in text and text.isprintable():
        yield text

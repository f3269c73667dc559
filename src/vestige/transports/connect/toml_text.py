"""Edits TOML by statements: the rest keeps its comments and order. The standard library reads TOML but does
not write it. A text is split into statements, a header or a pair each, and one of them is replaced, added or
removed."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from vestige.transports.connect.clients import Entry, Json, Keys

_QUOTED = r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_HEADER = re.compile(rf"\[\[?(?:[^\]\"'\n]|{_QUOTED})*\]\]?")
_KEY = re.compile(rf"(?:[^=\"'\n]|{_QUOTED})+")
_TOKEN = re.compile(
    rf'(?P<text>"""(?:[^\\]|\\.)*?"""+|\'\'\'.*?\'\'\'+|{_QUOTED})'
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<other>[^\"'\[\]{}#\n]+)",
    re.DOTALL,
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK_LINE = re.compile(r"(?<=\n)[ \t]*\r?\n\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlStatement:
    """A header or a pair: its full name, its lines, and the position of a pair's value. `table` counts the
    headers so far: a pair belongs to the header with the same number."""

    keys: Keys
    table: int
    start: int
    end: int
    value: tuple[int, int] | None = None


def read(text: str) -> Entry:
    return tomllib.loads(text)


def put(text: str, keys: Keys, value: Json) -> str:
    """The text with a value at `keys`: in place, as a pair of its table, or as a new table. ValueError if the
    existing form is not supported, such as a dotted key."""
    newline = "\r\n" if "\r\n" in text else "\n"
    statements = list(_statements(text))
    for one in statements:
        if one.keys == keys and one.value is not None:
            return text[: one.value[0]] + _shown(value) + text[one.value[1] :]
    header = next((one for one in statements if one.keys == keys[:-1] and one.value is None), None)
    if header is not None:
        at = max(one.end for one in statements if one.table == header.table)
        return text[:at] + _ending(text[:at], newline) + _pair(keys[-1], value) + newline + text[at:]
    inline = next(
        (one for one in statements if one.value is not None and keys[: len(one.keys)] == one.keys), None
    )
    if inline is not None:
        name = ".".join(inline.keys)
        raise ValueError(f"`{name}` is an inline table; write its parts as tables, [{name}.NAME]")
    if not isinstance(value, dict) or any(one.keys[: len(keys)] == keys for one in statements):
        raise ValueError(f"`{'.'.join(keys)}` has a form that cannot be edited")
    gap = _ending(text, newline)
    if text.strip() and not _BLANK_LINE.search(text + gap):
        gap += newline
    lines = [f"[{'.'.join(map(_key, keys))}]", *(_pair(key, one) for key, one in value.items())]
    return text + gap + "".join(line + newline for line in lines)


def take(text: str, keys: Keys) -> str:
    gone = [one for one in _statements(text) if one.keys[: len(keys)] == keys]
    if not gone:
        raise KeyError(".".join(keys))
    for one in reversed(gone):
        before = text[: one.start]
        if one.value is None:
            before = _BLANK_LINE.sub("", before)  # the blank line above a table is removed with it
        text = before + text[one.end :]
    return text


def _statements(text: str) -> Iterator[TomlStatement]:
    prefix: Keys = ()
    table, at = 0, _gap(text, 0)
    while at < len(text):
        line = text.rfind("\n", 0, at) + 1
        if header := _HEADER.match(text, at):
            prefix, table = _names(header.group()), table + 1
            _, end = _value(text, header.end())
            yield TomlStatement(keys=prefix, table=table, start=line, end=end)
        else:
            key = _KEY.match(text, at)
            if key is None:  # impossible for valid TOML
                raise ValueError("it is not TOML")
            stop, end = _value(text, key.end() + 1)
            begin = key.end() + 1 + len(text[key.end() + 1 : stop]) - len(text[key.end() + 1 : stop].lstrip())
            keys = (*prefix, *_names(f"{key.group().strip()} = 0"))
            yield TomlStatement(keys=keys, table=table, start=line, end=end, value=(begin, stop))
        at = _gap(text, end)


def _gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> tuple[int, int]:
    """The end of a value that starts here, and the end of its last line."""
    depth, stop = 0, at
    while (token := _TOKEN.match(text, at)) is not None:
        kind = token.lastgroup
        if kind == "newline" and not depth:
            return stop, token.end()
        depth += {"open": 1, "close": -1}.get(kind or "", 0)
        at = token.end()
        if kind in ("text", "open", "close") or (kind == "other" and token.group().strip()):
            stop = token.start() + len(token.group().rstrip())
    return stop, at


def _names(statement: str) -> Keys:
    """The names in a header or before a value; the standard library unquotes them."""
    names: list[str] = []
    inner: object = tomllib.loads(statement)
    while isinstance(inner, dict) and inner:
        name, inner = next(iter(inner.items()))
        names.append(name)
    return tuple(names)


def _ending(text: str, newline: str) -> str:
    return "" if not text or text.endswith("\n") else newline


def _pair(key: str, value: Json) -> str:
    return f"{_key(key)} = {_shown(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _shown(value: Json) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_pair(key, one) for key, one in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    # JSON escapes are valid in TOML, which needs one more.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

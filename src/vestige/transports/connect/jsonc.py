"""JSON with comments and trailing commas, as in settings files; both survive an edit. An edit changes the
text of one member and nothing else. Files are parsed into nodes with positions."""

import json
import re
from dataclasses import dataclass

from vestige.transports.connect.clients import Entry, Json, Keys

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_INDENT = re.compile(r"^[ \t]*")
_FIRST_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
UNIT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value and its position; members of an object and items of an array have positions too."""

    start: int
    end: int
    value: Json
    members: tuple["Member", ...] = ()
    """Of an array its items, whose keys are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A key with its value; `end` is after the comma, if there is one."""

    key: str
    start: int
    end: int
    node: Node

    @property
    def has_comma(self) -> bool:
        return self.end > self.node.end


def read(text: str) -> Entry:
    """The object in a text; an empty text is an empty object. ValueError states the error and position."""
    value = _parse(text).value
    if not isinstance(value, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - it is the text that is wrong
    return value


def put(text: str, keys: Keys, value: Json) -> str:
    if _skip(text, 0) == len(text):
        gap = _newline(text) if text.strip("\ufeff \t\r\n") and not text.endswith("\n") else ""
        return text + gap + _formatted(_nested(keys, value), "", UNIT, _newline(text)) + _newline(text)
    node, found = _parse(text), 0
    while found < len(keys) and (member := _member(node, keys[found])):
        node, found = member.node, found + 1
    if found == len(keys):
        shown = _formatted(value, _indent_at(text, node.start), _unit(text), _newline(text))
        return text[: node.start] + shown + text[node.end :]
    if not isinstance(node.value, dict):
        raise ValueError(f"`{'.'.join(keys[:found])}` is not an object")  # noqa: TRY004 - as above
    return _insert(text, node, keys[found], _nested(keys[found + 1 :], value))


def append(text: str, keys: Keys, value: Json) -> str:
    """The text with a value at the end of the array at `keys`, which is made if it is missing."""
    if _skip(text, 0) == len(text):
        return put(text, keys, [value])
    node = _parse(text)
    for key in keys:
        member = _member(node, key) if isinstance(node.value, dict) else None
        if member is None:
            return put(text, keys, [value])
        node = member.node
    if not isinstance(node.value, list):
        raise ValueError(f"`{'.'.join(keys)}` is not a list")  # noqa: TRY004 - as above
    return _insert(text, node, "", value)


def take(text: str, keys: Keys) -> str:
    node = _parse(text)
    for key in keys[:-1]:
        node = _found(node, key).node
    return _cut(text, node, _found(node, keys[-1]))


def take_item(text: str, keys: Keys, index: int) -> str:
    """The text without an item of the array at `keys`, which must exist."""
    node = _parse(text)
    for key in keys:
        node = _found(node, key).node
    return _cut(text, node, node.members[index])


def _cut(text: str, node: Node, member: Member) -> str:
    index = node.members.index(member)
    start, end = _content_end(text, node.start + 1, member.start), member.end
    follower = node.members[index + 1] if index + 1 < len(node.members) else None
    if follower and not _begins_line(text, follower.start):
        start, end = member.start, follower.start
    before, after = text[:start], text[end:]
    if index and index == len(node.members) - 1 and not member.has_comma:
        # The previous member is now the last: its comma is removed, text after the comma stays.
        last = node.members[index - 1]
        before = text[: last.node.end] + text[last.end : start]
    if len(node.members) == 1 and not text[node.start + 1 : start].strip():
        after = after.lstrip()
    return before + after


def _parse(text: str) -> Node:
    start = _skip(text, 0)
    if start == len(text):
        return Node(start=start, end=start, value={})
    try:
        node = _node(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    rest = _skip(text, node.end)
    if rest != len(text):
        raise _wrong(text, rest)
    return node


def _node(text: str, at: int) -> Node:
    if text.startswith("{", at):
        return _object(text, at)
    if text.startswith("[", at):
        return _array(text, at)
    if found := _STRING.match(text, at):
        return Node(start=at, end=found.end(), value=_string(text, found))
    if found := _SCALAR.match(text, at):
        value: Json = json.loads(found.group())
        return Node(start=at, end=found.end(), value=value)
    raise _wrong(text, at)


def _object(text: str, start: int) -> Node:
    members: list[Member] = []
    at = _skip(text, start + 1)
    while not text.startswith("}", at):
        if members and not members[-1].has_comma:
            raise _wrong(text, at)
        found = _STRING.match(text, at)
        if found is None:
            raise _wrong(text, at)
        colon = _skip(text, found.end())
        if not text.startswith(":", colon):
            raise _wrong(text, colon)
        node = _node(text, _skip(text, colon + 1))
        comma = _skip(text, node.end)
        end = comma + 1 if text.startswith(",", comma) else node.end
        members.append(Member(key=_string(text, found), start=at, end=end, node=node))
        at = _skip(text, end)
    value = {member.key: member.node.value for member in members}
    return Node(start=start, end=at + 1, value=value, members=tuple(members))


def _array(text: str, start: int) -> Node:
    items: list[Member] = []
    at = _skip(text, start + 1)
    while not text.startswith("]", at):
        if items and not items[-1].has_comma:
            raise _wrong(text, at)
        node = _node(text, at)
        comma = _skip(text, node.end)
        end = comma + 1 if text.startswith(",", comma) else node.end
        items.append(Member(key="", start=at, end=end, node=node))
        at = _skip(text, end)
    value: Json = [item.node.value for item in items]
    return Node(start=start, end=at + 1, value=value, members=tuple(items))


def _string(text: str, found: re.Match[str]) -> str:
    try:
        return str(json.loads(found.group()))
    except ValueError:
        raise _wrong(text, found.start()) from None


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int) -> ValueError:
    if at >= len(text):
        return ValueError("it ends too early")
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return ValueError(f"line {line}, column {column} is not JSON")


def _member(node: Node, key: str) -> Member | None:
    same = [member for member in node.members if member.key == key]
    if len(same) > 1:
        raise ValueError(f"`{key}` occurs twice")
    return same[0] if same else None


def _found(node: Node, key: str) -> Member:
    member = _member(node, key)
    if member is None:
        raise KeyError(key)
    return member


def _insert(text: str, node: Node, key: str, value: Json) -> str:
    """Add a last member to an object, or a last item to an array, formatted like its neighbours."""
    name = "" if isinstance(node.value, list) else f"{json.dumps(key, ensure_ascii=False)}: "
    newline, unit = _newline(text), _unit(text)
    end = _content_end(text, node.start + 1, node.end - 1)
    last = node.members[-1] if node.members else None
    head = text[:end]
    comma = "," if last and last.has_comma else ""
    if last and not last.has_comma:
        head = text[: last.node.end] + "," + text[last.node.end : end]
    if not _spread(text, node):
        shown = f"{name}{json.dumps(value, ensure_ascii=False)}"
        return head + (" " if last else "") + shown + comma + text[end:]
    outer = _indent_at(text, node.start)
    inner = _indent_at(text, last.start) if last and _begins_line(text, last.start) else outer + unit
    shown = f"{name}{_formatted(value, inner, unit, newline)}"
    tail = text[end:]
    if "\n" not in text[end : node.end]:
        tail = newline + outer + tail.lstrip()
    return head + newline + inner + shown + comma + tail


def _spread(text: str, node: Node) -> bool:
    """Whether an object has its members on separate lines; an empty one follows the rest of the file."""
    if node.members:
        return "\n" in text[node.start : node.end]
    return "\n" in text.strip() or node.start == _skip(text, 0)


def _content_end(text: str, start: int, end: int) -> int:
    """The end of the last character that is not white space, between two positions."""
    return start + len(text[start:end].rstrip())


def _nested(keys: Keys, value: Json) -> Json:
    for key in reversed(keys):
        value = {key: value}
    return value


def _formatted(value: Json, indent: str, unit: str, newline: str) -> str:
    """An object, or a list of objects, over several lines, everything else on one."""
    inner = indent + unit
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        items = (f"{inner}{_formatted(one, inner, unit, newline)}" for one in value)
        return f"[{newline}{f',{newline}'.join(items)}{newline}{indent}]"
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    lines = (
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_formatted(one, inner, unit, newline)}"
        for key, one in value.items()
    )
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"


def _indent_at(text: str, at: int) -> str:
    found = _INDENT.match(text[text.rfind("\n", 0, at) + 1 : at])
    return found.group() if found else ""


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _unit(text: str) -> str:
    found = _FIRST_INDENT.search(text)
    return found.group(1) if found else UNIT


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"

"""JSON files: an array, an object that holds one or a tool's answer around it; or lines, a record each."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson

from vestige.core.errors import InvalidInput, TooLarge
from vestige.exchange.importers.fields import as_json
from vestige.exchange.importers.memories import CONTENT, memory_of
from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target, UnreadRecords
from vestige.exchange.portable.file import has_too_many_values

BOM = b"\xef\xbb\xbf"

# -- Arrays

MAX_FILE_BYTES = 256_000_000
MAX_VALUES = 10_000_000
"""The most values of a file that is read whole; they take up to 0.8 GB."""
SMALLER = "Write one object a line (JSON lines): such files may have any size."
WRAPPERS = ("results", "memories", "nodes", "items", "content")
"""The names under which files and answers hold their records; `content` is the list of an MCP answer."""


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=_array_records(path, target))


def _array_records(path: Path, target: Target) -> Iterator[Brought]:
    """The memories of a JSON file, in its order."""
    for number, found in enumerate(_unwrapped(load(path), path), start=1):
        place = f"item {number}"
        if isinstance(found, UnreadRecords):
            yield found
        elif isinstance(found, Mapping):
            yield memory_of(found, place, target)
        else:
            yield UnreadRecords(kind=MEMORY, place=place, reason="it is not a JSON object")


def load(path: Path) -> object:
    """The whole file; InvalidInput if it is not JSON."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise TooLarge(
            f"{path} has {size:,} bytes; a JSON file may have at most {MAX_FILE_BYTES:,}.", hint=SMALLER
        )
    raw = path.read_bytes().removeprefix(BOM)
    if has_too_many_values(raw, MAX_VALUES):
        raise TooLarge(f"{path} holds more than {MAX_VALUES:,} values.", hint=SMALLER)
    try:
        return orjson.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{path} is not UTF-8: byte {exc.start} cannot be read.") from exc
    except orjson.JSONDecodeError as exc:
        raise InvalidInput(f"{path} is not JSON: {exc}.") from exc


def _unwrapped(value: object, path: Path) -> Iterator[object]:
    """The records, however they are wrapped."""
    if isinstance(value, list):
        for one in value:
            yield from _from_answer(one, path) if _is_answer(one) else (one,)
        return
    if isinstance(value, Mapping):
        for name in WRAPPERS:
            if isinstance(value.get(name), list):
                yield from _unwrapped(value[name], path)
                return
        if any(isinstance(value.get(name), str) for name in CONTENT):
            yield value
            return
    raise InvalidInput(
        f"{path} holds no list of records.",
        hint=f"Expected an array, or an object with one as {', '.join(map(repr, WRAPPERS[:2]))}.",
    )


def _is_answer(value: object) -> bool:
    """Whether this is a part of an MCP answer: {type: text, text: …}."""
    return (
        isinstance(value, Mapping)
        and value.get("type") == "text"
        and set(value) <= {"type", "text", "annotations"}
    )


def _from_answer(part: object, path: Path) -> Iterator[object]:
    inner = as_json(part["text"]) if isinstance(part, Mapping) and "text" in part else None
    if isinstance(inner, list | Mapping):
        yield from _unwrapped(inner, path)
    else:
        yield UnreadRecords(kind=MEMORY, place="an answer", reason="the text of an answer is not JSON")


# -- Lines; a broken one is skipped

MAX_LINE_BYTES = 16_000_000


@contextmanager
def reading_lines(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=_line_records(path, target))


def _line_records(path: Path, target: Target) -> Iterator[Brought]:
    """The memories of a file with one object a line."""
    for number, found in objects(path):
        yield found if isinstance(found, UnreadRecords) else memory_of(found, f"line {number}", target)


def objects(path: Path) -> Iterator[tuple[int, Mapping[str, object] | UnreadRecords]]:
    """Every non-empty line with its number: its object, or the reason why it has none."""
    with path.open("rb") as file:
        number, whole = 0, True
        while line := file.readline(MAX_LINE_BYTES):
            begins, whole = whole, line.endswith(b"\n") or len(line) < MAX_LINE_BYTES
            if not begins:  # the rest of a line that was too long
                continue
            number += 1
            text = line.removeprefix(BOM).strip()
            if not whole:
                yield number, _broken(number, f"the line is longer than {MAX_LINE_BYTES:,} bytes")
            elif text:
                yield number, _parsed(text, number)


def _parsed(line: bytes, number: int) -> Mapping[str, object] | UnreadRecords:
    if has_too_many_values(line):
        return _broken(number, "the line holds too many values")
    try:
        found = orjson.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return _broken(number, "the line is not UTF-8")
    except orjson.JSONDecodeError:
        return _broken(number, "the line is not JSON")
    return found if isinstance(found, dict) else _broken(number, "the line is not a JSON object")


def _broken(number: int, reason: str) -> UnreadRecords:
    return UnreadRecords(kind=MEMORY, place=f"line {number}", reason=reason)

"""JSON lines: a record a line; a broken line is skipped."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from vestige.exchange.importers.memories import MEMORY, memory_of
from vestige.exchange.importers.records import Brought, Target, UnreadRecords

MAX_LINE_BYTES = 16_000_000
BOM = b"\xef\xbb\xbf"


def records(path: Path, target: Target) -> Iterator[Brought]:
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
    try:
        found = orjson.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return _broken(number, "the line is not UTF-8")
    except orjson.JSONDecodeError:
        return _broken(number, "the line is not JSON")
    return found if isinstance(found, dict) else _broken(number, "the line is not a JSON object")


def _broken(number: int, reason: str) -> UnreadRecords:
    return UnreadRecords(kind=MEMORY, place=f"line {number}", reason=reason)

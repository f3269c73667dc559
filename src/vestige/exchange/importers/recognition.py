"""Import formats: a file's format is recognised by its content, not by its name alone."""

import enum
import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from vestige.core.errors import InvalidInput, TooLarge
from vestige.exchange.importers import graph_lines, json_files, markdown, reference
from vestige.exchange.importers.records import Reading, Target, UnreadRecords
from vestige.exchange.portable.file import FAMILY
from vestige.store.sqlite.file.reference import is_database

GZIP = b"\x1f\x8b"
LINES_TRIED = 50
"""The number of lines tried: a line format may begin with a few broken lines."""


class ImportFormat(enum.StrEnum):
    """The formats that can be imported."""

    PORTABLE = "portable"
    REFERENCE = "reference"
    SERVER_MEMORY = "server-memory"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


READERS = {
    ImportFormat.SERVER_MEMORY: graph_lines.records,
    ImportFormat.JSON: json_files.array_records,
    ImportFormat.JSONL: json_files.line_records,
    ImportFormat.MARKDOWN: markdown.records,
}


def recognise(path: Path) -> ImportFormat:
    """The format of a file or folder; InvalidInput names the possible ones."""
    if path.is_dir():
        return ImportFormat.MARKDOWN
    if is_database(path):
        return ImportFormat.REFERENCE
    with path.open("rb") as file:
        if file.read(len(GZIP)) == GZIP:
            return _packed(path)
    return _of_lines(path) or _of_text(path)


def _packed(path: Path) -> ImportFormat:
    try:
        with gzip.open(path) as file:
            begin = file.read(200)
    except (OSError, EOFError, zlib.error):
        begin = b""
    if FAMILY.encode() in begin.split(b"\n", 1)[0]:
        return ImportFormat.PORTABLE
    raise InvalidInput(
        f"{path} is a packed file, but not an export of Vestige.",
        hint="Unpack it first; a snapshot of a whole data directory is for `vestige restore`.",
    )


def _of_lines(path: Path) -> ImportFormat | None:
    """The format of JSON lines; None when it is something else."""
    found = [one for _, one in islice(json_files.objects(path), LINES_TRIED)]
    whole = [one for one in found if not isinstance(one, UnreadRecords)]
    if not whole:
        return None
    if whole[0] is found[0]:
        if str(whole[0].get("format", "")).startswith(FAMILY):
            return ImportFormat.PORTABLE
        if len(found) == 1 and _holds_records(whole[0]):
            return ImportFormat.JSON
    elif path.suffix.lower() in markdown.ENDINGS:  # a note that shows some JSON
        return None
    elif _is_json(path):
        return ImportFormat.JSON
    return ImportFormat.SERVER_MEMORY if any(map(graph_lines.is_graph, whole)) else ImportFormat.JSONL


def _holds_records(first: Mapping[str, object]) -> bool:
    return any(isinstance(first.get(name), list) for name in json_files.WRAPPERS)


def _is_json(path: Path) -> bool:
    try:
        json_files.load(path)
    except TooLarge:
        raise
    except InvalidInput:
        return False
    return True


def _of_text(path: Path) -> ImportFormat:
    if path.suffix.lower() in markdown.ENDINGS:
        return ImportFormat.MARKDOWN
    if _is_json(path):
        return ImportFormat.JSON
    raise InvalidInput(
        f"{path} is not in a format that can be imported.",
        hint=f"Say which one it is with `from`: {', '.join(ImportFormat)}.",
        details={"formats": list(ImportFormat)},
    )


@contextmanager
def reading(path: Path, form: ImportFormat, target: Target) -> Iterator[Reading]:
    """The records of a file in a foreign format, which the portable format is not."""
    if form is ImportFormat.REFERENCE:
        with reference.reading(path, target) as opened:
            yield opened
        return
    yield Reading(records=READERS[form](path, target))

"""What a value must be before it is kept: refusals that say what is wrong and what to do."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from vestige.core.errors import InvalidInput, TooLarge

MAX_CONTENT_BYTES = 1_000_000
MAX_LABEL_CHARS = 1_000
MAX_LABEL_BYTES = 2_000
MAX_NAME_BYTES = 500
MAX_DOCUMENT_ID_BYTES = 1_100
"""What a database can index: PostgreSQL takes 2,700 bytes a row, and there an edge is found by two ids, a
kind and a node. The id of a document may be made of two others."""
MAX_METADATA_BYTES = 100_000

SCHEMA_NAMES = (
    "It takes small letters, digits and _, at most 63 of them, begins with a letter or _, and not with pg_, "
    "which is the server's; nor is it information_schema."
)
_SCHEMA_NAME = re.compile(r"(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,62}")
_NUL_IN_JSON = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_content(content: str) -> None:
    """Refuse text that is empty, too long, or that no store could keep faithfully."""
    if not content.strip():
        raise InvalidInput("The content is empty.", hint="Give the text to remember.")
    size = len(check_text("content", content))
    if size > MAX_CONTENT_BYTES:
        raise TooLarge(
            f"The content has {size:,} bytes; at most {MAX_CONTENT_BYTES:,} are taken.",
            hint="Split it into several memories that share a `thread`, with a `position` each.",
            details={"bytes": size, "limit": MAX_CONTENT_BYTES},
        )


def is_schema_name(name: str) -> bool:
    """Whether a schema of a database can have this name: `SCHEMA_NAMES` is the rule in words."""
    return _SCHEMA_NAME.fullmatch(name) is not None


def check_label(name: str, label: str) -> None:
    """Refuse a short text field that is blank, too long, or not storable."""
    check_text(name, label)
    if not label.strip():
        raise InvalidInput(f"`{name}` is blank.", hint="Leave it out instead.")
    if len(label) > MAX_LABEL_CHARS:
        raise TooLarge(f"`{name}` has {len(label):,} characters; at most {MAX_LABEL_CHARS:,} are taken.")


def check_short(name: str, label: str, most_bytes: int = MAX_LABEL_BYTES) -> None:
    """Refuse a label that a database could not index. Asked of what is written, not of what is there: earlier
    versions took longer ones."""
    check_label(name, label)
    if 4 * len(label) <= most_bytes:
        return
    size = len(label.encode())
    if size > most_bytes:
        raise TooLarge(
            f"`{name}` has {size:,} bytes in UTF-8; at most {most_bytes:,} are taken.",
            hint="Shorten it.",
            details={"bytes": size, "limit": most_bytes},
        )


def check_name(name: str, told: str) -> None:
    """Refuse an id or kind that a database could not index beside others."""
    check_short(name, told, MAX_NAME_BYTES)


def check_text(name: str, text: str) -> bytes:
    """The text as UTF-8; InvalidInput for NUL characters and lone surrogates."""
    if "\0" in text:
        raise InvalidInput(f"`{name}` contains a NUL character.", hint="Remove it and send the text again.")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidInput(
            f"`{name}` is not valid Unicode: a lone surrogate at character {exc.start}.",
            hint="Send whole characters; a surrogate is half of one.",
            details={"position": exc.start},
        ) from exc


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Refuse metadata that is not a JSON object of text every store can keep, or too large."""
    size = len(check_json("metadata", metadata))
    if size > MAX_METADATA_BYTES:
        raise TooLarge(f"`metadata` has {size:,} bytes; at most {MAX_METADATA_BYTES:,} are taken.")


def check_json(name: str, value: object) -> bytes:
    """The value as JSON; InvalidInput for what JSON cannot hold, NUL characters and lone surrogates."""
    try:
        written = orjson.dumps(value, default=dict)
    except (orjson.JSONEncodeError, TypeError) as exc:
        raise InvalidInput(f"`{name}` cannot be kept as JSON: {exc}.") from exc
    if nul_in_json(written):
        raise InvalidInput(f"`{name}` contains a NUL character.", hint="Remove it and send it again.")
    return written


def nul_in_json(written: bytes) -> bool:
    """Whether a text in this JSON holds a NUL. PostgreSQL keeps it, and can then look into it no more."""
    # The plain search is much faster, and nearly always enough.
    return b"\\u0000" in written and _NUL_IN_JSON.search(written) is not None


def check_moment(name: str, moment: datetime | None) -> None:
    """Refuse a datetime that is not aware and in UTC."""
    if moment is not None and moment.utcoffset() != timedelta(0):
        raise InvalidInput(f"`{name}` must be a UTC time.")


def check_window(begin: datetime | None, end: datetime | None) -> None:
    """Refuse a time window that ends before it begins."""
    if begin is not None and end is not None and end < begin:
        raise InvalidInput(
            "A memory cannot stop being true before it starts.",
            hint="Give a `valid_until` that is later than `valid_from`.",
        )


def utc(moment: datetime) -> datetime:
    """The moment in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

"""Checks of values before they are stored; errors state the problem and what to do."""

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
"""Limits of database indexes: PostgreSQL allows 2,700 bytes a row, and finds an edge by two ids, a kind and a
node. The id of a document may combine two others.
"""
MAX_METADATA_BYTES = 100_000

SCHEMA_NAMES = (
    "Use lower-case letters, digits and _, at most 63; start with a letter or _. It must not start with "
    "pg_ (reserved by the server) or be information_schema."
)
_SCHEMA_NAME = re.compile(r"(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,62}")
_NUL_IN_JSON = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_content(content: str) -> None:
    """Reject text that is empty, too long, or not storable."""
    if not content.strip():
        raise InvalidInput("The content is empty.", hint="Give the text to remember.")
    size = len(check_text("content", content))
    if size > MAX_CONTENT_BYTES:
        raise TooLarge(
            f"The content has {size:,} bytes; the limit is {MAX_CONTENT_BYTES:,}.",
            hint="Split it into several memories that share a `thread`, with a `position` each.",
            details={"bytes": size, "limit": MAX_CONTENT_BYTES},
        )


def is_schema_name(name: str) -> bool:
    """Whether a database schema can have this name: `SCHEMA_NAMES` states the rule."""
    return _SCHEMA_NAME.fullmatch(name) is not None


def check_label(name: str, label: str) -> None:
    """Reject a short text field that is blank, too long, or not storable."""
    check_text(name, label)
    if not label.strip():
        raise InvalidInput(f"`{name}` is blank.", hint="Omit it instead.")
    if len(label) > MAX_LABEL_CHARS:
        raise TooLarge(f"`{name}` has {len(label):,} characters; the limit is {MAX_LABEL_CHARS:,}.")


def check_short(name: str, label: str, most_bytes: int = MAX_LABEL_BYTES) -> None:
    """Reject a label that a database cannot index. Only for writes: earlier versions stored longer ones."""
    check_label(name, label)
    if 4 * len(label) <= most_bytes:
        return
    size = len(label.encode())
    if size > most_bytes:
        raise TooLarge(
            f"`{name}` has {size:,} bytes in UTF-8; the limit is {most_bytes:,}.",
            hint="Shorten it.",
            details={"bytes": size, "limit": most_bytes},
        )


def check_name(name: str, value: str) -> None:
    """Reject an id or kind that a database cannot index together with others."""
    check_short(name, value, MAX_NAME_BYTES)


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
    """Reject metadata that is not a storable JSON object, or too large."""
    size = len(check_json("metadata", metadata))
    if size > MAX_METADATA_BYTES:
        raise TooLarge(f"`metadata` has {size:,} bytes; the limit is {MAX_METADATA_BYTES:,}.")


def check_json(name: str, value: object) -> bytes:
    """The value as JSON; InvalidInput for values JSON cannot hold, NUL characters and lone surrogates."""
    try:
        written = orjson.dumps(value, default=dict)
    except (orjson.JSONEncodeError, TypeError) as exc:
        raise InvalidInput(f"`{name}` cannot be stored as JSON: {exc}.") from exc
    if nul_in_json(written):
        raise InvalidInput(f"`{name}` contains a NUL character.", hint="Remove it and send it again.")
    return written


def nul_in_json(written: bytes) -> bool:
    """Whether a text in this JSON contains NUL, which PostgreSQL stores but then cannot query."""
    # The plain search is much faster and usually enough.
    return b"\\u0000" in written and _NUL_IN_JSON.search(written) is not None


def check_moment(name: str, moment: datetime | None) -> None:
    """Reject a datetime that is not aware and in UTC."""
    if moment is not None and moment.utcoffset() != timedelta(0):
        raise InvalidInput(f"`{name}` must be a UTC time.")


def check_window(begin: datetime | None, end: datetime | None) -> None:
    """Reject a time window that ends before it starts."""
    if begin is not None and end is not None and end < begin:
        raise InvalidInput(
            "`valid_until` is before `valid_from`.",
            hint="Give a `valid_until` later than `valid_from`.",
        )


def utc(moment: datetime) -> datetime:
    """The time in UTC; without a zone it is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

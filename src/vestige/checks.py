"""What a value must be before it is kept: refusals that say what is wrong and what to do."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from vestige.errors import InvalidInput, TooLarge

MAX_CONTENT_BYTES = 1_000_000
MAX_LABEL_CHARS = 1_000
MAX_METADATA_BYTES = 100_000

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


def check_label(name: str, label: str) -> None:
    """Refuse a short text field that is blank, too long, or not storable."""
    check_text(name, label)
    if not label.strip():
        raise InvalidInput(f"`{name}` is blank.", hint="Leave it out instead.")
    if len(label) > MAX_LABEL_CHARS:
        raise TooLarge(f"`{name}` has {len(label):,} characters; at most {MAX_LABEL_CHARS:,} are taken.")


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
    try:
        written = orjson.dumps(metadata, default=dict)
    except (orjson.JSONEncodeError, TypeError) as exc:
        raise InvalidInput(f"`metadata` cannot be kept as JSON: {exc}.") from exc
    if len(written) > MAX_METADATA_BYTES:
        raise TooLarge(f"`metadata` has {len(written):,} bytes; at most {MAX_METADATA_BYTES:,} are taken.")
    # The plain search is much faster, and nearly always enough.
    if b"\\u0000" in written and _NUL_IN_JSON.search(written):
        raise InvalidInput("`metadata` contains a NUL character.", hint="Remove it and send it again.")


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

"""Converts values to columns and back: times, JSON, float32 vectors."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from vestige.core.errors import InvalidInput
from vestige.core.models import NO_METADATA, check_text, nul_in_json, utc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_INTEGER = 2**63 - 1
NOBODY = "\u2028\u205f\u2028"
"""Blank, so it is never a label."""


def moment_text(moment: datetime) -> str:
    """A time as fixed-width text in UTC: sorting the text sorts the times."""
    return utc(moment).isoformat(timespec="microseconds")


def optional_text(moment: datetime | None) -> str | None:
    """A time that may be missing."""
    return None if moment is None else moment_text(moment)


def optional_moment(text: str | None) -> datetime | None:
    """The time back from its text."""
    return None if text is None else datetime.fromisoformat(text)


def microseconds(moment: datetime) -> int:
    """A time as an integer, exactly."""
    return (utc(moment) - EPOCH) // MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The time back from its integer."""
    return EPOCH + timedelta(microseconds=count)


def json_text(value: object) -> str:
    """A value as compact JSON; InvalidInput for what JSON cannot hold."""
    try:
        return orjson.dumps(value, default=_plain).decode("utf-8")
    except TypeError as exc:
        raise InvalidInput(f"A value cannot be stored as JSON: {exc}.") from exc


def json_mapping(text: str) -> Mapping[str, Any]:
    """A mapping back from its JSON, closed against changes."""
    return NO_METADATA if text == "{}" else MappingProxyType(orjson.loads(text))


def json_strings(text: str) -> tuple[str, ...]:
    """A tuple of strings back from its JSON."""
    return () if text == "[]" else tuple(orjson.loads(text))


class SqlList(list[Any]):
    """Values for `IN (SELECT value FROM json_each(?))`: one statement text for any number of them, so that
    it is prepared once. SQLite gets a JSON array; PostgreSQL has arrays of its own."""

    def __conform__(self, _protocol: object) -> str:
        try:
            written = orjson.dumps(list(self))
        except orjson.JSONEncodeError:
            return json_text(askable(self))
        # SQLite would read a text only up to the NUL, and find what is called so.
        return json_text(askable(self)) if nul_in_json(written) else written.decode()


def askable(values: Sequence[Any]) -> list[Any]:
    """The values of a query, with a name that nothing has in place of text that no store can hold."""
    return [
        SqlList(askable(one)) if isinstance(one, list) else NOBODY if _unfit(one) else one for one in values
    ]


def asks(sql: str) -> bool:
    """Whether a statement only reads."""
    return sql.startswith(("SELECT", "WITH"))


def _unfit(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        check_text("text", value)
    except InvalidInput:
        return True
    return False


def listed(values: NDArray[np.int64] | Iterable[str] | Iterable[int]) -> SqlList:
    """Keys, ids or other names as one parameter."""
    return SqlList(values.tolist() if isinstance(values, np.ndarray) else values)


def keys_from_text(text: str | None) -> NDArray[np.int64]:
    """The keys of a `group_concat`: one text costs half as much as a row for each."""
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64)


class VectorBytes(bytes):
    """A vector as it is written. SQLite keeps the bytes; PostgreSQL has a type for vectors."""


def vector_bytes(vector: NDArray[np.float32]) -> VectorBytes:
    """A vector as little-endian float32, whatever the machine."""
    return VectorBytes(np.ascontiguousarray(vector, dtype="<f4").tobytes())


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def natural(count: int) -> int:
    """A limit or offset that a database can take; InvalidInput when it is negative."""
    if count < 0:
        raise InvalidInput("A limit or offset cannot be negative.", details={"given": count})
    return min(count, MAX_INTEGER)

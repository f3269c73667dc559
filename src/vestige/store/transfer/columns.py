"""Validates the values of columns before a database has to refuse them."""

from collections.abc import Callable
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np
import orjson

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_INTEGER, nul_in_json
from vestige.store.sql.filters import moment_text

Fault = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    kind: str
    optional: bool = False

    def fault(self, value: Any) -> Fault:  # whatever a driver gives
        if value is None:
            return None if self.optional else f"{self.name} is missing"
        found = KINDS[self.kind](value)
        return None if found is None else f"{self.name} {found}"


def columns(spec: str) -> tuple[Column, ...]:
    """Columns from their names and kinds, such as `key:integer thread:text?`."""
    found = []
    for one in spec.split():
        name, kind = one.split(":")
        found.append(Column(name=name, kind=kind.removesuffix("?"), optional=kind.endswith("?")))
    return tuple(found)


def _text(value: object) -> Fault:
    if not isinstance(value, str):
        return "is not a text"
    if "\0" in value:
        return "contains a NUL character"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None


def _moment(value: object) -> Fault:
    try:
        same = isinstance(value, str) and moment_text(datetime.fromisoformat(value)) == value
    except (ValueError, OverflowError):
        same = False
    return None if same else "is not a time"


def _json(value: object) -> Fault:
    fault = _text(value)
    if fault is not None:
        return fault
    try:
        orjson.loads(str(value))
    except orjson.JSONDecodeError:
        return "is not JSON"
    return "contains a NUL character" if nul_in_json(str(value).encode()) else None


def _integer(value: object) -> Fault:
    fits = isinstance(value, int) and -MAX_INTEGER - 1 <= value <= MAX_INTEGER
    return None if fits else "is not an integer"


def _number(value: object) -> Fault:
    return None if isinstance(value, int | float) and isfinite(value) else "is not a number"


def _bytes(value: object) -> Fault:
    return None if isinstance(value, bytes) else "is not bytes"


def _vector(value: object) -> Fault:
    if not isinstance(value, bytes) or not value or len(value) % 4:
        return "is not a vector"
    return None if np.isfinite(np.frombuffer(value, dtype="<f4")).all() else "is not finite"


KINDS: dict[str, Callable[[Any], Fault]] = {
    "text": _text,
    "moment": _moment,
    "json": _json,
    "integer": _integer,
    "number": _number,
    "bytes": _bytes,
    "vector": _vector,
}

"""Qdrant: the points of a local folder, read without its library. mem0 keeps its memories so by default.

The library stores each point as a pickle of its own class. A pickle can run any code, so it is not loaded: a
reader that knows no class but stand-ins interprets it, and anything else in it makes the point unreadable.
"""

import pickle
import pickletools
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path

from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target, UnreadRecords, own_file
from vestige.exchange.importers.tools.chroma import document_of
from vestige.store.sqlite.file.foreign import ForeignDatabase, opened

TOOL = "qdrant"
FILE = "storage.sqlite"
TABLES = {"points": ("id", "point")}
MODULES = ("qdrant_client.", "pydantic.", "pydantic_core.", "uuid")
"""Modules whose classes are replaced by a stand-in."""
UNPICKLED = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError,
    MemoryError, OverflowError, AssertionError, RecursionError, struct.error,
)  # fmt: skip
"""What a broken or hostile pickle raises, and an id of too many digits to write out."""
MOST_STEPS, MOST_TUPLES = 100_000, 500
"""The most instructions of a pickle, and the most that make a tuple or a frozen set. Their hash and their end
are computed by recursion in C, which a deep enough nesting takes beyond the stack."""
MOST_VALUES, DEEPEST = 10_000, 20
"""The most values of a payload, and how deep they may be nested."""


class _StandIn:
    """Any class of the library: it only holds the state that it is given."""

    state: object = None

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        self.state = state


# Not the one in C, which lets the file choose how much memory it takes.
class _PointReader(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> type[_StandIn]:
        if module.startswith(MODULES):
            return _StandIn
        raise pickle.UnpicklingError(f"{module}.{name}")


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=_records(path, target))


def storages(folder: Path) -> dict[str, Path]:
    """The database of each collection of a folder."""
    names = (file.relative_to(folder).as_posix() for file in sorted(folder.glob(f"collection/*/{FILE}")))
    files = (own_file(folder, name) for name in names)
    return {file.parent.name: file for file in files if file is not None}


def _records(path: Path, target: Target) -> Iterator[Brought]:
    found = storages(path) if path.is_dir() else {path.parent.name: path}
    for collection, file in found.items():
        with opened(file) as database:
            yield from _points(database, collection, target)


def _points(file: ForeignDatabase, collection: str, target: Target) -> Iterator[Brought]:
    for number, row in enumerate(file.rows("points"), start=1):
        point = payload_of(row.get("point"))
        if point is None:
            reason = "its point is not in a form that can be read safely"
            yield UnreadRecords(kind=MEMORY, place=f"{collection} {number}", reason=reason)
        else:
            name, fields = point
            yield document_of(fields, (TOOL, collection, name), target)


def payload_of(pickled: object) -> tuple[str, Mapping[str, object]] | None:
    """The id and the payload of a point; None if it cannot be read safely."""
    if not isinstance(pickled, bytes):
        return None
    try:
        if not _is_small(pickled):
            return None
        point = _PointReader(BytesIO(pickled)).load()
        match point.state if isinstance(point, _StandIn) else None:
            case {"__dict__": {"id": str() | int() as name, "payload": dict(payload)}}:
                return (str(name), payload) if _is_plain(payload) else None
            case _:
                return None
    except UNPICKLED:
        return None


def _is_small(pickled: bytes) -> bool:
    """Whether a pickle has no more instructions than a point needs. They are counted, not run."""
    tuples = 0
    for steps, (opcode, _, _) in enumerate(pickletools.genops(pickled)):
        tuples += opcode.name.startswith(("TUPLE", "FROZENSET"))
        if steps >= MOST_STEPS or tuples > MOST_TUPLES:
            return False
    return True


def _is_plain(payload: Mapping[object, object]) -> bool:
    """Whether a payload is a JSON value of a sensible size. In a pickle a value may contain itself, or hold
    another one any number of times."""
    left: list[tuple[object, int]] = [(payload, 0)]
    seen = 0
    while left:
        value, depth = left.pop()
        seen += 1
        if seen > MOST_VALUES or depth > DEEPEST:
            return False
        match value:
            case dict() if all(isinstance(key, str) for key in value):
                left += ((one, depth + 1) for one in islice(value.values(), MOST_VALUES))
            case list():
                left += ((one, depth + 1) for one in islice(value, MOST_VALUES))
            case str() | int() | float() | None:
                continue
            case _:
                return False
    return True

"""Points are read from their pickles without running any code of them."""

import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.world import World
from tests.exchange.importers.imports import DATA, imported, nodes, reasons
from vestige.exchange.importers.tools.qdrant import payload_of

STORAGE = DATA / "mem0" / "qdrant" / "collection" / "mem0" / "storage.sqlite"


class Attack:
    """Unpickled by the standard library, it would call a function."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.made_by = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.made_by


def stored() -> bytes:
    with closing(sqlite3.connect(f"{STORAGE.as_uri()}?immutable=1", uri=True)) as db:
        found: bytes = db.execute("SELECT point FROM points").fetchone()[0]
    return found


def test_a_pickle_that_calls_a_function_is_not_run(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "qdrant" / "collection" / "notes"
    folder.mkdir(parents=True)
    attack = Attack(os.mkdir, str(tmp_path / "ran"))
    with closing(sqlite3.connect(folder / "storage.sqlite")) as db:
        db.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        points = (pickle.dumps(attack), pickle.dumps({"id": 1, "payload": {}}), stored(), b"", "text")
        db.executemany("INSERT INTO points VALUES (?, ?)", enumerate(points))
        db.commit()

    done = imported(world, tmp_path / "qdrant")

    assert (done["format"], done["memoriesImported"]) == ("qdrant", 1)
    assert reasons(done) == {("memory", "its point is not in a form that can be read safely"): 4}
    assert not (tmp_path / "ran").exists()


def test_a_pickle_cannot_take_memory_by_a_large_number() -> None:
    """The reader in C would make a table of as many entries as the number says."""
    assert payload_of(b"\x80\x04Nr\xff\xff\xff\x7f.") is None


@pytest.mark.parametrize(
    "deep",
    [b")" + b"\x85" * 2_000_000 + b"0", b"})" + b"\x85" * 2_000_000 + b"Ns0"],
    ids=["tuples", "a key of tuples"],
)
def test_a_pickle_of_millions_of_nested_values_is_not_read(deep: bytes) -> None:
    code = f"from {payload_of.__module__} import payload_of; import sys; "
    code += "sys.exit(payload_of(sys.stdin.buffer.read()) is not None)"

    # In a process of its own: a stack that runs over ends it.
    ended = subprocess.run([sys.executable, "-c", code], input=b"\x80\x04" + deep + b"N.", timeout=120)

    assert ended.returncode == 0


@given(st.binary(max_size=60), st.integers(0, 700))
def test_whatever_the_bytes_are_nothing_is_raised(noise: bytes, at: int) -> None:
    whole = stored()
    payload_of(noise)
    payload_of(whole[:at] + noise + whole[at + len(noise) :])


class PointStruct:
    """A point, which is pickled as the library pickles its own."""

    def __init__(self, payload: dict[str, object], name: int = 7) -> None:
        self.payload, self.name = payload, name

    def __getstate__(self) -> dict[str, object]:
        return {"__dict__": {"id": self.name, "vector": [0.1], "payload": self.payload}}


def pretend_to_be_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let points be pickled under the name of the library's class."""
    library = ModuleType("qdrant_client.http.models.models")
    monkeypatch.setattr(library, "PointStruct", PointStruct, raising=False)
    monkeypatch.setattr(PointStruct, "__module__", library.__name__)
    for name in ("qdrant_client", "qdrant_client.http", "qdrant_client.http.models", library.__name__):
        monkeypatch.setitem(sys.modules, name, library)


def test_a_payload_that_is_endless_or_not_json_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_to_be_the_library(monkeypatch)
    ring: dict[str, object] = {"text": "Round."}
    ring["again"] = ring
    many: list[object] = ["x"]
    for _ in range(15):
        many = [many] * 10
    odd: list[dict[str, object]] = [ring, {"text": "Many.", "many": many}, {"text": "Bytes.", "raw": b"x"}]

    for payload in odd:
        assert payload_of(pickle.dumps(PointStruct(payload))) is None
    assert payload_of(pickle.dumps(PointStruct({"text": "Fine."}))) == ("7", {"text": "Fine."})


def test_an_id_too_long_to_write_out_makes_one_point_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_to_be_the_library(monkeypatch)
    assert payload_of(pickle.dumps(PointStruct({"text": "Fine."}, 10**5_000))) is None


def test_keys_too_deep_to_compare_make_one_point_unreadable() -> None:
    deep = b"N" + pickle.TUPLE1 * 20_000
    assert payload_of(b"\x80\x04}(" + deep + b"N" + deep + b"Nu.") is None


@pytest.mark.parametrize("key", ["text", "content", "page_content", "document"])
def test_documents_of_other_programs_are_read_by_the_usual_names(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    pretend_to_be_the_library(monkeypatch)
    (tmp_path / "collection" / "c").mkdir(parents=True)
    with closing(sqlite3.connect(tmp_path / "collection" / "c" / "storage.sqlite")) as db:
        db.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        points = [PointStruct({key: "Bees like lavender.", "page": 3}), PointStruct({"page": 4})]
        db.executemany("INSERT INTO points VALUES (?, ?)", enumerate(map(pickle.dumps, points)))
        db.commit()

    done = imported(world, tmp_path)

    bees = nodes(world)["Bees like lavender."]
    assert bees["metadata"]["imported"] == {"page": 3, "collection": "c"}
    assert reasons(done) == {("memory", "it has a vector, but no text"): 1}

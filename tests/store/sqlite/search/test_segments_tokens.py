"""Token bits in the files of vectors: the same sketch as from the database, and gone with what is purged."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.store.support import sqlite_files
from tests.store.support.generators import SIGNATURE, T0, a_memory, axis, embedded, forget, held, some_tokens
from tests.store.support.index_files import files_of, folder_of, publish_early, units
from tests.store.support.sqlite_files import open_at
from vestige.core.candidates import Sketch
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Add, Revise
from vestige.store.contract.search import Probe
from vestige.store.sqlite.search import segment_file, segments
from vestige.store.sqlite.search.segment_file import ListedSegment
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store

MARK = bytes([0xC3, 0x5A, 0x77, 0x18, 0x9D, 0x41, 0xEE, 0x26, 0xB7, 0x03, 0xF9, 0x64])
"""Bits that no other memory has, and that are no text."""


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    publish_early(monkeypatch)


def fill(store: SqliteStore, count: int, first: int = 0) -> dict[str, list[int]]:
    """Memories with vectors of one or two pieces, most of them with tokens; those tokens."""
    given = {}
    for number in range(first, first + count):
        memory = a_memory(f"m{number:03}")
        some = [] if number % 7 == 3 else [number, 3 * number % 256][: 1 + number % 2]
        rows = [some] * (1 + number % 3 // 2)
        tokens = [] if number % 11 == 5 else [some_tokens(*one, asked=number % 5 == 0) for one in rows]
        vectors = units(number, len(rows))
        store.commit(
            [Add(memory=memory, embedded=embedded(memory, *vectors, tokens=tokens))], access=EVERYTHING
        )
        given[memory.id] = [bits for one in rows for bits in one] if tokens else []
    return given


def sketch_of(store: SqliteStore) -> tuple[dict[str, list[int]], Sketch]:
    """The token bits of every memory, by its id, as a search sees them."""
    probe = Probe(vector=axis(0), signature=SIGNATURE, least_cosine=-1.0, per_arm=999)
    pool = store.gather(probe, access=EVERYTHING)
    assert pool.sketch is not None
    sketch = pool.sketch
    found = {}
    for name, owner in zip(pool.ids, sketch.around[:, 0].tolist(), strict=True):
        start, length = sketch.starts[owner], sketch.lengths[owner]
        found[name] = [] if owner < 0 else sketch.bits[start : start + length, 0].tolist()
    return found, sketch


def without_rows(path: Path) -> None:
    """Take the token bits out of the database, so that only files have them."""
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM token_bits")
    db.close()


def test_files_and_tail_together_have_the_tokens_of_every_memory(path: Path, store: SqliteStore) -> None:
    given = fill(store, 60)
    before, _ = sketch_of(store)
    store.rebuild_index()
    given |= fill(store, 5, first=60)
    assert before == {name: given[name] for name in before}
    assert sketch_of(store)[0] == given
    other = open_at(path)
    assert sketch_of(other)[0] == given
    other.close()


def test_a_search_reads_no_tokens_of_the_database_that_a_file_has(path: Path, store: SqliteStore) -> None:
    given = fill(store, 60)
    store.rebuild_index()
    _, sketch = sketch_of(store)
    without_rows(path)
    other = open_at(path)
    found, mapped = sketch_of(other)
    assert found == given
    np.testing.assert_array_equal(mapped.asked, sketch.asked)
    other.close()


def test_a_memory_that_was_written_again_has_its_new_tokens(path: Path, store: SqliteStore) -> None:
    given = fill(store, 60)
    store.rebuild_index()
    for name, tokens in (("m007", [some_tokens(200, 201)]), ("m008", [])):
        memory = replace(held(store, name).memory, content="another text", revision=2, updated_at=T0)
        made = embedded(memory, axis(1), tokens=tokens)
        store.commit([Revise(memory=memory, reason="edited", embedded=made)], access=EVERYTHING)
        given[name] = [200, 201] if tokens else []
    assert sketch_of(store)[0] == given
    store.rebuild_index()
    assert sketch_of(store)[0] == given


def test_purging_a_memory_removes_its_token_bits_from_every_file(path: Path, store: SqliteStore) -> None:
    given = fill(store, 40)
    memory = a_memory("marked")
    store.commit(
        [Add(memory=memory, embedded=embedded(memory, axis(2), tokens=[some_tokens(*MARK)]))],
        access=EVERYTHING,
    )
    store.rebuild_index()
    assert any(MARK in file.read_bytes() for file in files_of(path))
    forget(store, "marked")
    everything = [path, *path.parent.glob("vestige.db-*"), *files_of(path)]
    assert not any(MARK in file.read_bytes() for file in everything)
    assert sketch_of(store)[0] == given


def as_before(file: Path, one: ListedSegment) -> bytes:
    """A file as the version before token bits wrote it."""
    content = segment_file.read(file, one, SIGNATURE.dimension)
    layout = segment_file._layout(one.rows, SIGNATURE.dimension, None)
    image = bytearray(layout["end"])
    coded = content.coded
    parts: list[NDArray[np.generic]] = [
        content.ids, content.keys, content.spans, coded.scales, coded.rests, coded.codes, content.vectors,
    ]  # fmt: skip
    for name, part in zip(layout, parts, strict=False):
        image[layout[name] : layout[name] + part.nbytes] = part.tobytes()
    check = crc32(memoryview(image)[layout["ids"] : layout["codes"]])
    segment_file.HEADER.pack_into(
        image, 0, segment_file.WITHOUT_TOKENS, content.profile, SIGNATURE.dimension, one.rows, one.first_id,
        one.last_id, content.deaths, coded.longest, check,
    )  # fmt: skip
    return bytes(image)


def test_files_of_the_version_before_are_used_and_written_again(path: Path, store: SqliteStore) -> None:
    given = fill(store, 60)
    store.rebuild_index()
    expected, _ = sketch_of(store)
    store.close()
    with sqlite3.connect(path) as db:
        files = segments.listed(db, 1)
    db.close()
    for one in files:
        file = folder_of(path) / one.file
        file.write_bytes(as_before(file, one))
    reader = open_at(path, read_only=True)
    assert sketch_of(reader)[0] == expected == given
    assert reader._kept.matrix._rows.filed > 0, "their vectors are mapped"
    reader.close()
    other = open_at(path)
    segments.publish(other._connections)
    assert all(one.read_bytes().startswith(segment_file.MAGIC) for one in files_of(path))
    assert sketch_of(other)[0] == given
    other.close()

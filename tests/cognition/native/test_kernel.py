"""The compiled library: the same results as numpy, whatever the sizes, and only arrays that it may read."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vestige.cognition.native import kernel as native
from vestige.cognition.native.kernel import FOLDER, Kernel
from vestige.cognition.native.platforms import file_name
from vestige.cognition.ranking import bm25, maxsim
from vestige.core.candidates import Sketch

LIBRARY = FOLDER / (file_name() or "-")
pytestmark = pytest.mark.skipif(
    not LIBRARY.is_file(),
    reason="THE COMPILED LIBRARY IS NOT TESTED: no C compiler was there when it was installed",
)
CLOSE = 1e-6
Number = TypeVar("Number", bound=np.generic)


@contextmanager
def in_numpy() -> Iterator[None]:
    native.allow(False)
    try:
        yield
    finally:
        native.allow(True)


def forms() -> list[Kernel]:
    """The library with each set of instructions that this processor has."""
    library = ctypes.CDLL(str(LIBRARY))
    most = Kernel(library).lanes
    return [Kernel(library, lanes) for lanes in (4, 8, 16) if lanes <= most]


def unaligned(array: NDArray[Number]) -> NDArray[Number]:
    """The same numbers at an address that is no multiple of their size."""
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def random_sketch(
    rng: np.random.Generator, owners: int, dimension: int, candidates: int, longest: int
) -> Sketch:
    lengths = rng.integers(1, longest + 1, owners)
    tokens = int(lengths.sum())
    return Sketch(
        bits=rng.choice(np.array([0, 255, 0xA5, 1, 128], dtype=np.uint8), (tokens, -(-dimension // 8))),
        asked=rng.random(tokens) < rng.choice([0.0, 0.3, 1.0]),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        around=rng.integers(-1, owners, (candidates, 5)),
    )


@given(
    st.integers(1, 9),
    st.sampled_from([1, 7, 8, 9, 20, 384]),
    st.integers(1, 40),
    st.integers(0, 12),
    st.sampled_from([1, 2, 33]),
    st.integers(0, 10_000),
)
def test_maxsim_is_the_same_in_numpy_and_in_the_library(
    owners: int, dimension: int, tokens: int, candidates: int, longest: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sketch = random_sketch(rng, owners, dimension, candidates, longest)
    states = rng.standard_normal((tokens, dimension)).astype(np.float32)
    states /= np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-9)
    weights = [rng.random(tokens) + 0.01, rng.random(tokens) + 0.01]

    compiled = maxsim.match(states, weights, sketch)
    with in_numpy():
        plain = maxsim.match(states, weights, sketch)

    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one.own, other.own, rtol=0, atol=CLOSE)
        np.testing.assert_allclose(one.context, other.context, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_every_set_of_instructions_finds_the_same_from_any_address(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    chosen = next((one for one in forms() if one.lanes == lanes), None)
    if chosen is None:
        pytest.skip(f"{32 * lanes}-BIT VECTORS ARE NOT TESTED: this processor has none")
    sketch = random_sketch(rng, 30, 384, 9, 50)
    states = rng.standard_normal((19, 384)).astype(np.float32)
    states /= np.linalg.norm(states, axis=1, keepdims=True)

    found = chosen.best(
        unaligned(states),
        unaligned(sketch.bits),
        unaligned(sketch.asked),
        unaligned(sketch.starts),
        unaligned(sketch.lengths),
        scale=maxsim._scale(384),
        worth=maxsim.ASKED,
    )

    for one, other in zip(found, maxsim._best(states, sketch), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE)


def test_no_owner_and_no_candidate_give_no_result() -> None:
    [chosen, *_] = forms()
    none = np.empty(0, dtype=np.int64)
    states = np.zeros((3, 16), dtype=np.float32)

    said, asked = chosen.best(
        states, np.empty((0, 2), dtype=np.uint8), np.empty(0, dtype=np.bool_), none, none, scale=1, worth=1
    )
    assert said.shape == asked.shape == (0, 3)

    rows, slots = chosen.rows(none, none, none, none)
    assert (len(rows), len(slots)) == (0, 0)


@pytest.mark.parametrize(("start", "length"), [(0, 5), (3, 2), (-1, 1), (0, 0)])
def test_tokens_outside_the_sketch_are_refused(start: int, length: int) -> None:
    [chosen, *_] = forms()
    with pytest.raises(ValueError, match="sketch"):
        chosen.best(
            np.zeros((1, 8), dtype=np.float32),
            np.zeros((4, 1), dtype=np.uint8),
            np.zeros(4, dtype=np.bool_),
            np.array([start]),
            np.array([length]),
            scale=1,
            worth=1,
        )


def test_an_owner_or_a_row_that_does_not_exist_is_refused() -> None:
    [chosen, *_] = forms()
    said = np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="neighbour"):
        chosen.context(
            said, said, np.array([[2, -1]]), reach=said[0], answers=said[0], weights=np.ones((1, 3))
        )
    with pytest.raises(ValueError, match="row"):
        chosen.rows(np.array([2]), np.array([-1, -1]), np.array([-1, -1]), np.array([], dtype=np.int64))


@given(st.integers(1, 60), st.integers(0, 6), st.integers(1, 5), st.integers(0, 10_000))
def test_bm25_is_the_same_number_in_numpy_and_in_the_library(
    size: int, terms: int, threads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    group = rng.integers(-1, threads, size)
    before, after = np.full(size, -1), np.full(size, -1)
    for one in range(threads):
        members = np.flatnonzero(group == one)
        before[members[1:]], after[members[:-1]] = members[:-1], members[1:]
    lengths = rng.integers(1, 20, size)
    windows = sum(
        int(lengths[row]) * (1 + int(before[row] >= 0) + int(after[row] >= 0)) for row in range(size)
    )
    collection = bm25.Collection(
        lengths=lengths,
        before=before,
        after=after,
        threads=group,
        thread_lengths=np.bincount(group[group >= 0], lengths[group >= 0], threads).astype(np.int64),
        memories=size,
        total=int(lengths.sum()),
        window_total=windows,
        thread_count=threads,
        thread_total=max(1, int(lengths[group >= 0].sum())),
    )
    has = rng.random((terms, size)) < rng.choice([0.05, 0.5, 1.0])
    numbers, rows = np.nonzero(has)
    postings = bm25.Postings(
        terms=numbers,
        rows=rows,
        counts=rng.integers(1, 5, len(rows)),
        weights=rng.integers(1, 3, terms).astype(np.float64),
    )
    also = rng.integers(0, size, int(rng.integers(0, 4)))

    compiled = bm25.score(postings, collection, also)
    with in_numpy():
        plain = bm25.score(postings, collection, also)

    for name in ("rows", "own", "window", "thread"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(plain, name))
    assert sorted(zip(*map(np.ndarray.tolist, compiled.held), strict=True)) == sorted(
        zip(*map(np.ndarray.tolist, plain.held), strict=True)
    )


def test_the_library_of_another_interface_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "INTERFACE", native.INTERFACE + 1)
    assert native._loaded.__wrapped__() is None


def test_a_damaged_library_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / LIBRARY.name).write_bytes(b"not a library")
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    assert native._loaded.__wrapped__() is None


def test_the_description_says_what_is_in_use() -> None:
    assert native.description().startswith(f"native ({LIBRARY.name}, ")
    with in_numpy():
        assert native.description() == "numpy (search.native is off)"


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("linux", "x86_64", "kernel.linux-x86_64.so"),
        ("darwin", "arm64", "kernel.macos-aarch64.dylib"),
        ("win32", "AMD64", "kernel.windows-x86_64.dll"),
        ("linux", "riscv64", None),
        ("freebsd14", "amd64", None),
    ],
)
def test_a_library_is_named_after_its_platform(system: str, machine: str, name: str | None) -> None:
    assert file_name(system, machine) == name

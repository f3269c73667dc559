"""A portable file: one state has one file, and what is not whole is not taken."""

import gzip
import io
import random
from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from tests.exchange.portable.strategies import SIGNATURE, an_event, lives
from vestige.core.errors import InvalidInput
from vestige.core.models import Memory
from vestige.embed.protocol import Signature
from vestige.exchange.portable import file as portable
from vestige.exchange.portable.file import PortableContents, PortableReader, Writer, packed, unpacked
from vestige.exchange.portable.lines import encode_history, line, place
from vestige.store.merge.histories import CurveHistory, EdgeHistory, EntityHistory, MemoryHistory


def written(
    lives: Sequence[EntityHistory], signature: Signature | None = None, *, pack: bool = False
) -> bytes:
    out = io.BytesIO()
    if pack:
        with packed(out) as inner:
            _write(Writer(inner, signature), lives)
    else:
        _write(Writer(out, signature), lives)
    return out.getvalue()


def _write(writer: Writer, lives: Sequence[EntityHistory]) -> None:
    for life in lives:
        writer.add(life)
    writer.end()


def read(raw: bytes) -> tuple[list[EntityHistory], PortableContents]:
    with unpacked(io.BufferedReader(io.BytesIO(raw))) as lines:
        reader = PortableReader(lines, len(raw))
        return list(reader.histories()), reader.contents


def refused(raw: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as error:
        read(raw)
    return error.value


def a_life(name: str, content: str | None = None) -> MemoryHistory:
    event = an_event(0, "memory.created", name)
    memory = Memory(id=name, content=content or f"This is {name}.", created_at=event.at, updated_at=event.at)
    return MemoryHistory(memory_id=name, events=(event,), versions=(memory,))


CURVE = CurveHistory(events=(an_event(9, "curve.tuned", None, payload={"w20": 0.2}),))
EDGE = EdgeHistory(
    source_id="a",
    target_id="b",
    kind="related",
    events=(an_event(8, "edge.linked", "a", payload={"target": "b", "kind": "related", "weight": 0.5}),),
)
GONE = MemoryHistory(
    memory_id="c",
    events=(
        an_event(0, "memory.created", "c"),
        an_event(1, "memory.deleted", "c", payload={"reason": "asked to"}),
    ),
    versions=(),
)
LIVES: list[EntityHistory] = [CURVE, a_life("a"), a_life("b"), GONE, EDGE]
WHOLE = written(LIVES)
PACKED = written(LIVES, pack=True)


def with_line(number: int, raw: bytes) -> bytes:
    """The file with another line in that place, and a seal that fits."""
    lines = WHOLE.splitlines(keepends=True)[:-1]
    lines[number - 1 : number] = [raw]
    return sealed(lines)


def sealed(lines: Sequence[bytes]) -> bytes:
    seal = portable.Seal(None)
    for raw in lines[:1]:
        seal.take(raw)
    for raw in lines[1:]:
        seal.take(raw, CURVE)
    return b"".join([*lines, seal.last_line()])


@pytest.mark.parametrize("raw", [WHOLE, PACKED], ids=["plain", "packed"])
def test_a_file_tells_what_was_written_and_how_much(raw: bytes) -> None:
    found, contents = read(raw)

    assert found == LIVES
    counted = (contents.lines, contents.memories, contents.deleted, contents.edges, contents.documents)
    assert counted == (5, 2, 1, 1, 0)
    assert gzip.decompress(PACKED) == WHOLE


def test_an_empty_file_of_the_format_has_a_first_and_a_last_line() -> None:
    first, last = written([]).splitlines()

    assert first == b'{"format":"vestige.portable.v1","vectors":null}'
    assert orjson.loads(last).keys() == {"type", "lines", "digest"}
    assert read(written([])) == ([], read(written([]))[1])


def test_packing_leaves_no_trace_of_when_or_under_which_name() -> None:
    assert PACKED[3:8] == b"\0\0\0\0\0"  # no flags, so no name, and no time
    assert written(LIVES, pack=True) == PACKED


@given(st.lists(lives, max_size=6, unique_by=place))
def test_any_lives_in_order_come_back_as_the_same_bytes(found: list[EntityHistory]) -> None:
    raw = written(sorted(found, key=place), SIGNATURE)

    back, contents = read(raw)

    assert contents.signature == SIGNATURE
    assert written(back, SIGNATURE) == raw


@pytest.mark.parametrize("raw", [WHOLE, PACKED], ids=["plain", "packed"])
def test_a_file_that_was_cut_anywhere_is_refused(raw: bytes) -> None:
    for length in range(len(raw)):
        refused(raw[:length])


def test_a_plain_file_with_any_damaged_byte_is_refused() -> None:
    rng = random.Random(6)
    for at in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[at] ^= 1 << rng.randrange(8)
        assert "line" in refused(bytes(damaged)).details, at


def test_a_packed_file_with_any_damaged_byte_is_refused_or_tells_the_same() -> None:
    """The time and the name in the head of a packed file are nobody's: only those may differ unseen."""
    rng = random.Random(6)
    unseen = 0
    for at in range(len(PACKED)):
        damaged = bytearray(PACKED)
        damaged[at] ^= 1 << rng.randrange(8)
        try:
            found, _ = read(bytes(damaged))
        except InvalidInput:
            continue
        assert found == LIVES, at
        unseen += 1
    assert unseen <= 10


@given(st.data())
def test_a_file_that_was_damaged_in_several_places_is_refused(data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(WHOLE) - 1), min_size=1, max_size=5, unique=True))
    damaged = bytearray(WHOLE)
    for at in places:
        damaged[at] ^= data.draw(st.integers(1, 255))
    refused(bytes(damaged))


@each(
    ("raw", "number", "said"),
    [
        (b"", 1, "cut off"),
        (b"SQLite format 3\0\n", 1, "does not begin"),
        (b"[]\n", 1, "does not begin"),
        (b'{"content":"plain"}\n', 1, "does not begin"),
        (b'{"format":"other","vectors":null}\n', 1, "'other'"),
        (b'{"format":"vestige.portable.v2","vectors":null}\n', 1, "vestige.portable.v2"),
        (b'{"format":"vestige.portable.v1"}\n', 1, "`vectors` is missing"),
        (b'{"format":"vestige.portable.v1","more":1,"vectors":null}\n', 1, "`more`"),
        (b'{"format":"vestige.portable.v1","vectors":{"name":"x"}}\n', 1, "`revision`"),
        (with_line(3, b'{"type":"dream"}\n'), 3, "'dream'"),
        (with_line(3, b"{}\n"), 3, "`type` is missing"),
        (with_line(3, b"\n"), 3, "not JSON"),
        (with_line(3, b'{"type":"memory","id":"\xff"}\n'), 3, "not JSON in UTF-8"),
        (with_line(4, line(encode_history(a_life("a"), None))), 4, "a comes a second time"),
        (with_line(4, line(encode_history(CURVE, None))), 4, "out of order"),
        (with_line(2, line(encode_history(a_life("z"), None))), 3, "out of order"),
        (WHOLE + b"more\n", 7, "follows after the last line"),
        (WHOLE + WHOLE, 7, "follows after the last line"),
        (WHOLE[:-1] + b" \n", 7, "digest"),
        (WHOLE.replace(b"This is a.", b"This is A."), 7, "digest"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(raw: bytes, number: int, said: str) -> None:
    for told in (raw, gzip.compress(raw)):
        error = refused(told)

        assert error.details == {"line": number}
        assert said in error.message
        assert f"Line {number} " in error.message


def test_a_line_that_is_too_long_is_neither_read_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(map(len, WHOLE.splitlines(keepends=True)))
    monkeypatch.setattr(portable, "MAX_LINE_BYTES", longest)
    assert written(LIVES) == WHOLE
    assert read(WHOLE)[0] == LIVES

    monkeypatch.setattr(portable, "MAX_LINE_BYTES", longest - 1)

    assert "longer than" in refused(WHOLE).message
    with pytest.raises(InvalidInput, match="The history of"):
        written(LIVES)


def test_a_line_of_too_many_values_is_neither_read_nor_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "MAX_VALUES", 4)
    assert "more than 4 values" in refused(WHOLE).message
    with pytest.raises(InvalidInput, match="more than 4 values"):
        written(LIVES)


@pytest.mark.parametrize(
    ("raw", "many"),
    [
        (b"[[],[],[]]", True),
        (b'["a,b,c,[{", "d\\",\\\\"]', False),
        (b'["\\\\",[],[]]', True),
        (b'["never closed,,,,,,,', False),
        (b"[" + b" " * 1_000 + b"[],[]]", True),
    ],
)
def test_values_are_counted_outside_of_texts_whatever_the_length(
    raw: bytes, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portable, "MAX_VALUES", 3)
    assert portable.has_too_many_values(raw) == many


def test_a_packed_file_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "UNSUSPICIOUS_BYTES", 1_000_000)
    bomb = written([a_life(f"{number:06}", "x" * 999_000) for number in range(40)], pack=True)

    assert "unpacks" in refused(bomb).message

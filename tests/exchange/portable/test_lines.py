"""A life as a line: nothing is lost, and one life has one line."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from tests.exchange.portable.strategies import BEGIN, SIGNATURE, an_event, lives, memory_lives
from vestige.core.errors import InvalidInput
from vestige.core.models import Memory
from vestige.exchange.portable.lines import decode_history, encode_history, line
from vestige.exchange.portable.values import ObjectFields, text
from vestige.exchange.portable.versions import READERS
from vestige.store.contract.changes import Embedded
from vestige.store.merge.absorb import check
from vestige.store.merge.histories import EntityHistory, MemoryHistory


def read(raw: bytes) -> EntityHistory:
    told = ObjectFields("line", orjson.loads(raw))
    life = decode_history(told.take("type", text), told, SIGNATURE)
    told.end()
    check(life)
    return life


def vectors_of(life: EntityHistory) -> Embedded | None:
    return life.embedded if isinstance(life, MemoryHistory) else None


def without_vectors(life: EntityHistory) -> EntityHistory:
    return replace(life, embedded=None) if isinstance(life, MemoryHistory) else life


@given(lives)
def test_a_life_survives_being_written_and_read(life: EntityHistory) -> None:
    raw = line(encode_history(life, SIGNATURE))
    back = read(raw)

    assert raw.count(b"\n") == 1
    assert without_vectors(back) == without_vectors(life)
    assert line(encode_history(back, SIGNATURE)) == raw


@given(st.just("a").flatmap(memory_lives))
def test_vectors_and_token_bits_are_exact(life: MemoryHistory) -> None:
    before, after = life.embedded, vectors_of(read(line(encode_history(life, SIGNATURE))))

    if before is None or after is None:
        assert before is after
        return
    assert (after.signature, after.text_hash) == (before.signature, before.text_hash)
    for one, other in zip(before.pieces, after.pieces, strict=True):
        assert (one.start, one.end) == (other.start, other.end)
        np.testing.assert_array_equal(one.vector, other.vector)
        if one.tokens is None or other.tokens is None:
            assert one.tokens is other.tokens
        else:
            np.testing.assert_array_equal(one.tokens.bits, other.tokens.bits)
            np.testing.assert_array_equal(one.tokens.asked, other.tokens.asked)
            assert other.tokens.asked.dtype == np.bool_


def test_every_field_of_a_memory_is_in_the_format() -> None:
    assert {*READERS, "id"} == {one.name for one in fields(Memory)}


def revised(**changed: Any) -> MemoryHistory:
    """A memory with one revision that changed these fields."""
    first = Memory(id="a", content="Tea is green.", created_at=BEGIN, updated_at=BEGIN, metadata={"n": 1})
    payload = {"fields": sorted(changed), "reason": "edited"}
    events = (an_event(0, "memory.created", "a"), an_event(1, "memory.revised", "a", payload=payload))
    later = replace(first, revision=2, updated_at=BEGIN + timedelta(days=1))
    return MemoryHistory(memory_id="a", events=events, versions=(first, replace(later, **changed)))


def test_a_version_says_only_what_is_other_than_before() -> None:
    told = orjson.loads(line(encode_history(revised(tags=("drink",)), None)))

    assert told["versions"] == [
        {
            "content": "Tea is green.",
            "created_at": "2026-03-01T09:00:00.000000Z",
            "metadata": {"n": 1},
            "updated_at": "2026-03-01T09:00:00.000000Z",
        },
        {"revision": 2, "tags": ["drink"], "updated_at": "2026-03-02T09:00:00.000000Z"},
    ]


@pytest.mark.parametrize("value", [1.0, True, "1", [1], {}])
def test_a_value_of_another_type_is_another_value(value: object) -> None:
    back = read(line(encode_history(revised(metadata={"n": value}), None)))

    assert isinstance(back, MemoryHistory)
    assert repr(back.versions[1].metadata["n"]) == repr(value)


def test_vectors_of_another_model_are_not_written() -> None:
    other = replace(SIGNATURE, revision="2")
    life = replace(revised(), embedded=Embedded(signature=other, text_hash="x", pieces=()))

    assert b"vectors" not in line(encode_history(life, SIGNATURE))


GOOD = line(encode_history(revised(), None))
EVENT = '{"at":"2026-03-01T09:00:00.000000Z","clock":65536,"kind":"memory.created","node":"node-1","seq":1}'


@each(
    ("old", "new", "named"),
    [
        ('"type":"memory"', '"type":"dream"', "'dream'"),
        ('"id":"a"', '"id":7', "`id`"),
        ('"id":"a"', '"id":" "', "`id`"),
        ('"id":"a"', '"id":"a","colour":1', "`colour`"),
        ('"clock":65536', '"clock":-1', "`clock`"),
        ('"clock":65536', '"clock":9223372036854775807', "impossible"),
        ('"clock":65536', '"clock":true', "`clock`"),
        ('"clock":65536', '"clock":1.5', "`clock`"),
        ('"seq":1', '"seq":99999999999999999999', "`seq`"),
        ('"node":"node-1","seq":1', '"node":"","seq":1', "`node`"),
        (EVENT, '{"kind":"memory.created"}', "is missing"),
        (EVENT, "7", "`events`"),
        (',"seq":1}', ',"scope":"project/","seq":1}', "project/"),
        (',"seq":1}', ',"payload":[],"seq":1}', "`payload`"),
        (',"seq":1}', ',"payload":{"a":' + "[" * 300 + "]" * 300 + '},"seq":1}', "JSON"),
        ('"content":"Tea is green."', '"content":""', "empty"),
        ('"content":"Tea is green."', '"content":"a\\u0000b"', "NUL"),
        ('"content":"Tea is green.",', "", "`content` is missing"),
        ('"metadata":{"n":1}', '"metadata":7', "`metadata`"),
        ('"metadata":{"n":1}', '"tags":"drink"', "`tags`"),
        ('"metadata":{"n":1}', '"pinned":1', "`pinned`"),
        ('"metadata":{"n":1}', '"colour":1', "`colour`"),
        ('"metadata":{"n":1}', '"domain_scores":{"a":"b"}', "`domain_scores`"),
        ('"metadata":{"n":1}', '"valid_from":"2026-03-01"', "`valid_from`"),
        ('"metadata":{"n":1}', '"valid_from":"2026-03-01T09:00:00.000000+01:00"', "`valid_from`"),
        ('"metadata":{"n":1}', '"valid_from":"2026-03-01T09:00:00Z"', "`valid_from`"),
        ('"metadata":{"n":1}', '"valid_from":"2026-02-30T09:00:00.000000Z"', "`valid_from`"),
    ],
)
def test_what_is_not_as_it_should_be_is_refused_by_name(old: str, new: str, named: str) -> None:
    assert old.encode() in GOOD

    with pytest.raises(InvalidInput) as refused:
        read(GOOD.replace(old.encode(), new.encode(), 1))

    assert named in refused.value.message


PIECE = '{"end":1,"start":0,"vector":"' + "A" * 64 + '"'


@pytest.mark.parametrize(
    ("pieces", "text_hash"),
    [
        ("", "7"),
        ('{"end":1,"start":0,"vector":"AAAA"}', '"x"'),
        ('{"end":1,"start":0,"vector":"no base64!"}', '"x"'),
        ('{"end":1,"start":0,"vector":"' + "AADAfwAAwH8AAMB/" * 4 + '"}', '"x"'),
        (PIECE + ',"bits":"AAA="}', '"x"'),
        (PIECE + ',"bits":"AAA=","asked":""}', '"x"'),
        (PIECE + ',"bits":"AA==","asked":"AA=="}', '"x"'),
    ],
    ids=["hash", "short", "base64", "NaN", "no asked", "few asked", "half a token"],
)
def test_vectors_that_are_not_what_their_signature_says_are_refused(pieces: str, text_hash: str) -> None:
    told = f',"vectors":{{"pieces":[{pieces}],"text_hash":{text_hash}}},"versions"'

    with pytest.raises(InvalidInput):
        read(GOOD.replace(b',"versions"', told.encode()))

"""What cannot be stored faithfully cannot even be made; what can be made is stored faithfully."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from tests.store.support.generators import SCOPES, T0, a_memory, add, forget, held, hits, ids
from vestige.cognition.text.analyser import query_terms
from vestige.core.errors import InvalidInput, TooLarge
from vestige.core.models import ANYTHING, EVERYTHING, MAX_CONTENT_BYTES, Filter
from vestige.store.contract.store import MemoryStore


@pytest.mark.parametrize("content", ["", "   \n", "a\0b", "lone \ud800 surrogate", "\udfff"])
def test_text_no_store_can_keep_cannot_become_a_memory(content: str) -> None:
    with pytest.raises(InvalidInput):
        a_memory("a", content)
    with pytest.raises(InvalidInput):
        replace(a_memory("a"), phrasings=(content,))
    with pytest.raises(InvalidInput):
        replace(a_memory("a"), tags=(content,))


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "\ud800"])
def test_an_id_no_store_can_keep_is_refused(store: MemoryStore, name: str) -> None:
    with pytest.raises(InvalidInput):
        add(store, a_memory(name))
    assert store.count(ANYTHING, access=EVERYTHING) == 0


def test_text_beyond_the_limit_cannot_become_a_memory() -> None:
    with pytest.raises(TooLarge):
        a_memory("a", "é" * (MAX_CONTENT_BYTES // 2 + 1))


def test_times_that_are_not_utc_cannot_become_a_memory() -> None:
    elsewhere = datetime(2025, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    for moment in (elsewhere, T0.replace(tzinfo=None)):
        with pytest.raises(InvalidInput):
            a_memory("a", at=moment)


@pytest.mark.parametrize(
    "content",
    [
        "\u0301 starts with a combining mark",
        "e\u0301 is not é",
        "👩‍👩‍👧‍👦 🏳️‍🌈 \U0010ffff \ufffe",
        "\ufeffbyte order mark",
        "right \u202e to left \u200b\u200d",
        "tabs\tand\r\nlines\u2028\x0b\x0c\x1b[31m",
        "'; DROP TABLE memories; -- %s ? :name {x}",
        '{"json": "\\u0000"}',
        "ﷺ ǅ ß İ ı",
    ],
)
def test_any_other_text_comes_back_character_by_character(store: MemoryStore, content: str) -> None:
    add(store, replace(a_memory("a", content), tags=(content,), thread=content, metadata={content: content}))
    memory = held(store, "a").memory
    assert memory.content == content
    assert (memory.tags, memory.thread, memory.metadata) == ((content,), content, {content: content})
    assert ids(store.find(Filter(thread=content, tags_all=(content,)), access=EVERYTHING, limit=5)) == ["a"]
    assert store.tag_counts(access=EVERYTHING) == {content: 1}


def test_a_memory_as_long_as_allowed_is_kept_and_found(store: MemoryStore) -> None:
    content = ("quartz " * (MAX_CONTENT_BYTES // 7))[: MAX_CONTENT_BYTES - 8] + " granite"
    add(store, a_memory("a", content), a_memory("b", "marble"))
    assert held(store, "a").memory.content == content
    assert hits(store.lexical(query_terms("granite"), ANYTHING, access=EVERYTHING, limit=5)) == ["a"]
    forget(store, "a")
    assert store.lexical(query_terms("granite"), ANYTHING, access=EVERYTHING, limit=5) == []


@pytest.mark.parametrize("position", [-(2**63), 0, 2**63 - 1])
def test_any_position_of_64_bits_is_kept_and_filtered(store: MemoryStore, position: int) -> None:
    add(store, replace(a_memory("a"), position=position), a_memory("none"))
    assert held(store, "a").memory.position == position
    assert ids(store.find(Filter(position=position), access=EVERYTHING, limit=5)) == ["a"]


def test_scopes_are_kept_as_they_are(store: MemoryStore) -> None:
    add(store, *(replace(a_memory(f"m{number}"), scope=scope) for number, scope in enumerate(SCOPES)))
    assert dict(store.stats(access=EVERYTHING, now=T0).by_scope) == dict.fromkeys(SCOPES, 1)

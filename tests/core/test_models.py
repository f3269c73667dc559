"""What a memory may be: checked when it is made, so that no store has to."""

from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.core.errors import InvalidInput, TooLarge
from vestige.core.models import (
    EVERYTHING,
    MAX_CONTENT_BYTES,
    MAX_LABEL_CHARS,
    MAX_TAGS,
    Access,
    Memory,
    covers,
    normal_scope,
    utc,
)

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PLAIN = Memory(id="1", content="Ada likes tea.", created_at=NOON, updated_at=NOON)
NAIVE = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001  the mistake under test
ELSEWHERE = datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
LABELS = ("node_type", "source", "author", "agent_id", "session_id", "thread")
MOMENTS = (
    "created_at", "updated_at", "occurred_at", "valid_from", "valid_until", "suppressed_at", "archived_at",
)  # fmt: skip


def with_fields(**changes: Any) -> Memory:
    return replace(PLAIN, **changes)


@pytest.mark.parametrize("content", ["", "   ", "\n\t"])
def test_empty_content_is_refused(content: str) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        with_fields(content=content)


def test_content_up_to_the_limit_is_taken_and_counted_in_bytes() -> None:
    assert with_fields(content="x" * MAX_CONTENT_BYTES)
    with pytest.raises(TooLarge) as caught:
        with_fields(content="é" * (MAX_CONTENT_BYTES // 2 + 1))
    assert caught.value.details == {"bytes": MAX_CONTENT_BYTES + 2, "limit": MAX_CONTENT_BYTES}


@each("bad", ["nul \0 inside", "half \ud83d of an emoji"])
@each("name", ["content", *LABELS])
def test_text_that_cannot_be_stored_is_refused_in_every_field(name: str, bad: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        with_fields(**{name: bad})


def test_other_wordings_are_checked_like_content() -> None:
    with pytest.raises(InvalidInput):
        with_fields(phrasings=("fine", "nul \0"))


@pytest.mark.parametrize("name", LABELS)
def test_a_label_is_neither_blank_nor_endless(name: str) -> None:
    assert with_fields(**{name: "x" * MAX_LABEL_CHARS})
    with pytest.raises(InvalidInput, match="blank"):
        with_fields(**{name: "  "})
    with pytest.raises(TooLarge):
        with_fields(**{name: "x" * (MAX_LABEL_CHARS + 1)})


def test_tags_are_labels_and_limited_in_number() -> None:
    assert with_fields(tags=tuple(f"t{i}" for i in range(MAX_TAGS)))
    with pytest.raises(TooLarge, match="101"):
        with_fields(tags=tuple(f"t{i}" for i in range(MAX_TAGS + 1)))
    with pytest.raises(InvalidInput):
        with_fields(tags=("fine", ""))
    with pytest.raises(InvalidInput):
        with_fields(domains=("\0",))


@each("moment", [NAIVE, ELSEWHERE])
@each("name", MOMENTS)
def test_a_time_that_is_not_utc_is_refused(name: str, moment: datetime) -> None:
    with pytest.raises(InvalidInput, match=name):
        with_fields(**{name: moment})


def test_validity_does_not_end_before_it_begins() -> None:
    assert with_fields(valid_from=NOON, valid_until=NOON)
    with pytest.raises(InvalidInput, match="is before `valid_from`"):
        with_fields(valid_from=NOON, valid_until=NOON - timedelta(seconds=1))


def test_a_memory_is_valid_from_its_beginning_until_just_before_its_end() -> None:
    later = NOON + timedelta(days=1)
    memory = with_fields(valid_from=NOON, valid_until=later)
    moments = [NOON - timedelta(seconds=1), NOON, later - timedelta(seconds=1), later]
    assert [memory.valid_at(moment) for moment in moments] == [False, True, True, False]
    assert PLAIN.valid_at(NOON - timedelta(days=10_000))


@pytest.mark.parametrize("position", [2**63, -(2**63) - 1])
def test_a_position_fits_in_64_bits(position: int) -> None:
    with pytest.raises(InvalidInput, match="position"):
        with_fields(position=position)
    assert with_fields(position=2**63 - 1)


def test_a_memory_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PLAIN.content = "Ada likes coffee."  # type: ignore[misc]  # that it fails is what is tested


def test_a_scope_that_is_not_in_normal_form_is_refused() -> None:
    assert with_fields(scope="/project/vestige")
    with pytest.raises(InvalidInput, match="normal form"):
        with_fields(scope="project/vestige/")


@pytest.mark.parametrize(
    ("given_scope", "normal"),
    [
        ("/", "/"),
        ("project", "/project"),
        ("/project/vestige/", "/project/vestige"),
        ("//project//vestige", "/project/vestige"),
        ("  /user/ada ", "/user/ada"),
    ],
)
def test_scopes_are_brought_into_normal_form(given_scope: str, normal: str) -> None:
    assert normal_scope(given_scope) == normal


@pytest.mark.parametrize("bad", ["", "  ", "/a/../b", "./a", "/a/ b", "/a\0", "/" + "x" * MAX_LABEL_CHARS])
def test_scopes_that_are_no_plain_path_are_refused(bad: str) -> None:
    with pytest.raises(InvalidInput):
        normal_scope(bad)


@given(st.lists(st.text("abz-_ é", min_size=1).filter(lambda s: s == s.strip()), max_size=6))
def test_normal_form_is_its_own_normal_form(parts: list[str]) -> None:
    normal = normal_scope("/" + "//".join(parts) + "/")
    assert normal_scope(normal) == normal
    assert normal == "/" + "/".join(parts)


def test_a_scope_covers_itself_and_what_is_below_but_not_its_namesakes() -> None:
    assert covers("/", "/anything")
    assert covers("/project", "/project")
    assert covers("/project", "/project/vestige")
    assert not covers("/project", "/projects")
    assert not covers("/project/vestige", "/project")


def test_access_is_everything_or_what_its_scopes_and_domains_reach() -> None:
    memory = with_fields(scope="/project/vestige", domains=("work", "code"))
    assert EVERYTHING.allows(memory)
    assert Access(scopes=("/user", "/project")).allows(memory)
    assert not Access(scopes=("/user",)).allows(memory)
    assert not Access(scopes=()).allows(memory)
    assert Access(domains=("code",)).allows(memory)
    assert not Access(domains=("home",)).allows(memory)
    assert not Access(scopes=("/project",), domains=("home",)).allows(memory)


def test_a_time_without_a_zone_is_taken_as_utc_and_another_zone_is_converted() -> None:
    assert utc(NAIVE) == NOON
    assert utc(ELSEWHERE) == NOON - timedelta(hours=2)
    assert utc(ELSEWHERE).utcoffset() == timedelta(0)

"""What a text says about since when and until when it is true, through the tools."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from testbed.world import START, HandClock, World, open_world
from vestige.operations.memory.ingest import SmartIngested, render_ingested
from vestige.operations.shared.text import unmarked

FREEZE = "The deploy freeze is on until Friday."  # START is a Sunday; Friday is 6 March


def window(told: dict[str, Any]) -> tuple[str | None, str | None]:
    """The start and the end in an answer or a memory, as days."""
    start, end = (str(told[name])[:10] if told.get(name) else None for name in ("validFrom", "validUntil"))
    return start, end


def test_what_says_until_when_it_is_true_is_found_until_then(world: World) -> None:
    told = world.call("smart_ingest", content=FREEZE)
    assert (*window(told), told["validityWords"]) == (None, "2026-03-07", "until Friday")
    assert world.find("deploy freeze") == [FREEZE]

    world.clock.advance(days=6)  # Saturday

    assert world.find("deploy freeze") == []
    assert world.find("deploy freeze", as_of="2026-03-06") == [FREEZE]
    assert world.find("deploy freeze", include_expired=True) == [FREEZE]
    assert window(world.get(told["nodeId"])) == (None, "2026-03-07")


def test_what_says_since_when_it_is_true_was_not_true_before(world: World) -> None:
    told = world.call("smart_ingest", content="As of 2026-02-10 the rate limit is 100 requests.")

    assert (*window(told), told["validityWords"]) == ("2026-02-10", None, "As of 2026-02-10")
    assert len(world.find("rate limit")) == 1
    assert len(world.find("rate limit", as_of="2026-02-10")) == 1
    assert world.find("rate limit", as_of="2026-02-09") == []


@pytest.mark.parametrize(
    "content",
    [
        "Ada worked at IBM from 2019 to 2021.",
        "Ada works at IBM from 2019 to 2021.",
        "Ada was at IBM until 2020.",
    ],
)
def test_history_is_found_now_and_later(world: World, content: str) -> None:
    told = world.call("smart_ingest", content=content)

    assert "validityWords" not in told
    assert world.find("When is Ada at IBM?") == [content]
    world.clock.advance(days=400)
    assert world.find("When is Ada at IBM?") == [content]


@pytest.mark.parametrize(
    ("content", "words", "begins"),
    [
        ("Starting Monday, Ada works at IBM.", "Starting Monday", "2026-03-02"),
        ("From 5 May on, Ada is at IBM.", "From 5 May on", "2026-05-05"),
        ("From January 2027 Ada works at IBM.", "From January 2027", "2027-01-01"),
        ("Ada works at IBM from January 2027.", "from January 2027", "2027-01-01"),
    ],
)
def test_a_plan_is_found_now_and_later_and_the_answer_says_when_it_begins(
    world: World, content: str, words: str, begins: str
) -> None:
    told = world.call("smart_ingest", content=content)

    assert (*window(told), told["validityWords"], told["beginsAt"][:10]) == (None, None, words, begins)
    said = unmarked(render_ingested(SmartIngested.model_validate(told)))
    assert f"Begins {begins} 00:00 UTC (“{words}”)" in said
    assert world.find("When is Ada at IBM?") == [content]
    world.clock.advance(days=400)
    assert world.find("When is Ada at IBM?") == [content]


@pytest.mark.parametrize(
    ("content", "last"),
    [
        ("The sauna is closed until mid January.", "2027-01-21"),
        ("The lift is out of order for the next two weeks.", "2026-03-16"),
        ("The road is closed from mid March to early May.", "2026-05-11"),
        ("Orders go through Lena until the end of Q3.", "2026-10-01"),
    ],
)
def test_a_part_of_a_month_and_a_time_from_now_on_are_ends(world: World, content: str, last: str) -> None:
    told = world.call("smart_ingest", content=content)

    assert window(told) == (None, last)


def test_of_what_is_to_come_only_the_end_is_kept(world: World) -> None:
    told = world.call("smart_ingest", content="Ada is on leave from 5 May to 9 May.")

    assert (*window(told), told["validityWords"]) == (None, "2026-05-10", "from 5 May to 9 May")
    assert len(world.find("Ada on leave")) == 1


def test_a_text_is_understood_as_of_the_day_it_was_said(world: World) -> None:
    told = world.call("smart_ingest", content=FREEZE, occurred_at="2024-05-01")  # a Wednesday

    assert window(told) == (None, "2024-05-04")
    assert world.find("deploy freeze") == []
    assert world.find("deploy freeze", as_of="2024-05-02") == [FREEZE]


@pytest.mark.parametrize(
    "beside",
    [
        {"thread": "chat", "position": 1},
        {"pinned": True},
        {"node_type": "event"},
        {"valid_until": None},
        {"valid_from": "2026-01-01"},
        {"valid_until": "2026-12-31"},
    ],
)
def test_turns_pins_events_and_what_the_teller_dated_are_left_alone(
    world: World, beside: dict[str, Any]
) -> None:
    told = world.call("smart_ingest", content=FREEZE, **beside)

    assert "validityWords" not in told
    world.clock.advance(days=30)
    assert world.find("deploy freeze") == [FREEZE]


def test_the_same_words_in_another_week_are_another_freeze(world: World) -> None:
    first = world.remember(FREEZE)
    world.clock.advance(days=1)
    assert world.remember(FREEZE) == first
    world.clock.advance(days=8)
    second = world.remember(FREEZE)

    assert second != first
    assert window(world.get(first)) == (None, "2026-03-07")
    assert window(world.get(second)) == (None, "2026-03-14")


def test_a_batch_is_read_text_by_text_and_a_retry_tells_the_same(world: World) -> None:
    request: dict[str, Any] = {
        "items": [
            {"content": FREEZE},
            {"content": "Grass is green."},
            {"content": "Since 2019 Ada leads QA."},
        ],
        "idempotency_key": "once",
    }
    answer = world.call("smart_ingest", **request)

    assert [window(told) for told in answer["results"]] == [
        (None, "2026-03-07"),
        (None, None),
        ("2019-01-01", None),
    ]
    assert world.call("smart_ingest", **request) == {**answer, "replayed": True}


def test_prose_says_until_when_and_by_which_words(world: World) -> None:
    told = SmartIngested.model_validate(world.call("smart_ingest", content=FREEZE))

    assert "Valid until 2026-03-07 00:00 UTC (“until Friday”)." in render_ingested(told)


def test_a_window_survives_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        world.remember(FREEZE)
    clock.advance(days=6)
    with open_world(tmp_path, clock=clock) as world:
        assert world.find("deploy freeze") == []
        assert world.find("deploy freeze", as_of="2026-03-05") == [FREEZE]


# -- states --------------------------------------------------------------------------------------


def test_a_state_is_true_for_thirty_days(world: World) -> None:
    told = world.call("smart_ingest", content="The build is red.", node_type="state")

    assert window(told) == (None, "2026-03-31")
    assert "validityWords" not in told
    world.clock.advance(days=29)
    assert world.find("build") == ["The build is red."]
    world.clock.advance(days=1)
    assert world.find("build") == []
    assert world.find("build", as_of="2026-03-20") == ["The build is red."]


def test_the_time_to_live_is_a_setting(tmp_path: Path) -> None:
    half_a_day: dict[str, Any] = {"memory.state_ttl_days": 0.5}
    with open_world(tmp_path, **half_a_day) as world:
        told = world.call("smart_ingest", content="The build is red.", node_type="state")

        assert datetime.fromisoformat(told["validUntil"]) == START.replace(hour=21)


@pytest.mark.parametrize(
    ("content", "beside", "expected"),
    [
        ("The build is red until Tuesday.", {}, (None, "2026-03-04")),
        ("The build is red since Thursday.", {}, ("2026-02-26", "2026-03-31")),
        ("The build is red.", {"valid_until": "2026-05-01"}, (None, "2026-05-02")),
        ("The build is red.", {"valid_until": None}, (None, None)),
        ("The build is red.", {"valid_from": "2026-05-01"}, ("2026-05-01", "2026-05-31")),
        ("The build is red.", {"valid_from": "9999-12-31"}, ("9999-12-31", None)),
        ("The build is red.", {"pinned": True}, (None, None)),
        ("The build is red.", {"thread": "chat", "position": 1}, (None, None)),
    ],
)
def test_a_state_lives_as_long_as_was_said(
    world: World, content: str, beside: dict[str, Any], expected: tuple[str | None, str | None]
) -> None:
    told = world.call("smart_ingest", content=content, node_type="state", **beside)

    assert window(told) == expected
    assert window(world.get(told["nodeId"])) == expected

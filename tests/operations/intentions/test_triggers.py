"""What is said about a trigger that cannot be taken."""

from typing import Any

import pytest

from testbed.world import World


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ({"all": [5, {"topic": "x"}]}, "`trigger.all.0`: expected an object."),
        ({"in_minutes": 0}, "`trigger.in_minutes`: expected a number above 0, at most 5,270,400."),
        ({"in_minutes": 10**9}, "`trigger.in_minutes`: expected a number above 0, at most 5,270,400."),
        ({"every": "day", "interval": 0}, "`trigger.interval`: expected a whole number from 1 to 10,000."),
        ({"every": "month", "day": 32}, "`trigger.day`: expected a whole number from -1 to 31."),
    ],
)
def test_a_message_says_what_is_expected(world: World, trigger: Any, message: str) -> None:
    error = world.refused("intention", action="set", description="Do it.", trigger=trigger)

    assert error["message"] == message


@pytest.mark.parametrize(
    ("trigger", "message", "hint"),
    [
        ("tomorrow", "expected an object", "An object with type, at"),
        (["monday"], "expected an object", "object"),
        ({"every": "month", "day": 0}, "day", "1 to 31, or -1"),
        ({"every": "week", "days": ["funday"]}, "'funday'", "monday, tuesday"),
        ({"type": "time"}, "at, in_minutes", '{"at": "2026-03-01T14:00Z"}'),
        ({"type": "event"}, "condition", '{"condition": "deploy finished"}'),
        ({"every": "hour", "at": "09:00"}, "`at`", '"every": "day"'),
        ({"every": "day", "days": ["monday"]}, "`days`", '"every": "week"'),
        ({"topic": "?!"}, "has no meaningful word", "word"),
        ({"condition": "..."}, "has no meaningful word", "word"),
        ({"any": [{"all": [{"topic": "x"}] * 11}] * 2}, "the limit is 20", "several"),
        (
            {"all": [{"topic": "x"}, {"all": [{"topic": "y"}, {"all": [{"topic": "z"}] * 2}]}]},
            "deeper than 3",
            "several",
        ),
        ({"every": "day", "start": "2026-05-01", "until": "2026-04-01"}, "not after `start`", "later"),
        ({"every": "month", "day": 1, "months": []}, "is empty", "1 to 12"),
    ],
)
def test_a_refusal_says_what_is_expected(world: World, trigger: Any, message: str, hint: str) -> None:
    error = world.refused("intention", action="set", description="Do it.", trigger=trigger)

    assert message in error["message"]
    assert hint in error["hint"]
    assert "TriggerArguments" not in str(error)

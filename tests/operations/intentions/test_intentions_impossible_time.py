"""An intention for a time that never comes is refused, not kept as one that nothing brings up."""

import pytest

from testbed.world import World


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pay rent every February 30", "every February 30"),
        ("remind me on February 30 to pay rent", "on February 30"),
        ("pay rent every 31st of April", "every 31st of April"),
        ("water plants every 0 days", "every 0 days"),
        ("on 2026-02-31 call Bob", "on 2026-02-31"),
        ("at 25:00 call Bob", "at 25:00"),
        ("URGENT: finish the report by 31 June", "by 31 June"),
    ],
)
def test_a_time_that_never_comes_is_refused_with_its_words(world: World, text: str, words: str) -> None:
    error = world.refused("intention", action="set", description=text)

    assert error["code"] == "invalid_input"
    assert f'"{words}"' in error["message"]
    assert "2026-03-01T14:00Z" in error["hint"]
    assert error["details"] == {"argument": "description", "words": words}
    assert world.call("intention", action="list")["intentions"] == []


def test_the_same_words_are_kept_where_the_trigger_says_when(world: World) -> None:
    text = "Fix the report that ran on February 30"
    made = world.call("intention", action="set", description=text, trigger={"type": "manual"})
    assert made["intention"]["description"] == text


def test_the_29th_of_february_comes(world: World) -> None:
    made = world.call("intention", action="set", description="Remind me to celebrate on 29 February 2028")
    assert made["triggerAt"] == "2028-02-29T09:00:00Z"

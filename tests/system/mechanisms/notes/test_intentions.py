"""Intentions come up when they should, through the public tool, whatever was restarted in between."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testbed.world import World
from tests.cognition.intentions.intention_year import BEGIN, Watch, looks, rules
from tests.system.mechanisms.conftest import ON_A_FILE, Living
from tests.system.mechanisms.fading.test_purge import holding

RULES, PER_SCOPE = 500, 50
LOOKS, RESTART_EVERY = 30, 8


def intend(world: World, description: str, **arguments: Any) -> str:
    return str(world.call("intention", action="set", description=description, **arguments)["intentionId"])


def told(world: World, **context: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.call("intention", action="check", context=context)["triggered"]
    return found


def test_a_rule_comes_up_again_after_a_restart_and_says_what_was_missed(living: Living) -> None:
    intend(living.world, "Remind me to rotate the keys every monday at 10:00")  # it is Sunday, the 1st
    living.clock.now = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
    (first,) = told(living.restart())
    living.clock.now = datetime(2026, 3, 24, 8, 0, tzinfo=UTC)  # three Mondays later
    (again,) = told(living.restart())

    assert (first["description"], first["first"], first["missed"]) == ("rotate the keys", True, 0)
    assert first["dueAt"] == "2026-03-02T10:00:00Z"
    assert (again["dueAt"], again["missed"], again["first"]) == ("2026-03-23T10:00:00Z", 2, True)
    assert again["nextAt"] == "2026-03-30T10:00:00Z"


def test_a_context_brings_it_up_after_a_restart_until_it_is_done(living: Living) -> None:
    name = intend(living.world, "Remind me to check the indexes when I open *.sql in codebase shop")
    world = living.restart()

    assert told(world, codebase="shop", file="src/main.py") == []
    assert told(world, codebase="web", file="db/init.sql") == []
    (found,) = told(world, codebase="shop", file="db/init.sql")
    assert found["id"] == name
    living.restart().call("intention", action="update", id=name, status="complete")
    assert told(living.restart(), codebase="shop", file="db/init.sql") == []


def test_a_deadline_reminds_ahead_of_it_and_is_overdue_afterwards(living: Living) -> None:
    intend(living.world, "Send the report before Friday")  # it is Sunday, the 1st
    living.clock.now = datetime(2026, 3, 5, 8, 59, tzinfo=UTC)
    assert told(living.restart()) == []
    living.clock.now = datetime(2026, 3, 5, 9, 0, tzinfo=UTC)
    (ahead,) = told(living.restart())
    living.clock.now = datetime(2026, 3, 6, 0, 0, tzinfo=UTC)
    (over,) = told(living.restart())

    assert (ahead["description"], ahead["first"], ahead["isOverdue"]) == ("Send the report", True, False)
    assert (ahead["dueAt"], ahead["deadline"]) == ("2026-03-05T09:00:00Z", "2026-03-06T00:00:00Z")
    assert (over["first"], over["isOverdue"], over["priorityName"]) == (True, True, "critical")


def test_a_file_brings_up_what_was_said_without_remind_me(living: Living) -> None:
    intend(living.world, "When I open *.sql, run the migrations")

    (found,) = told(living.restart(), file="db/init.sql")
    assert found["description"] == "run the migrations"


def test_what_happened_before_a_restart_counts_after_it(living: Living) -> None:
    trigger = {"all": [{"condition": "deploy finished"}, {"codebase": "shop"}]}
    intend(living.world, "Write the release notes.", trigger=trigger)

    assert told(living.world, codebase="web", events=["The deploy of the api finished."]) == []
    (found,) = told(living.restart(), codebase="shop")
    assert found["description"] == "Write the release notes."


@ON_A_FILE
@pytest.mark.slow
def test_five_hundred_rules_come_up_exactly_when_they_should_in_a_year_with_restarts(living: Living) -> None:
    living.clock.now = BEGIN
    watches: dict[str, Watch] = {}
    scopes = [f"/rules/{number}" for number in range(RULES // PER_SCOPE)]
    for number, rule in enumerate(rules(seed=5, many=RULES)):
        scope = scopes[number // PER_SCOPE]
        name = intend(living.world, f"Rule {number}", trigger=rule.trigger, scope=scope)
        watches[name] = Watch(rule=rule)

    fired = 0
    for number, moment in enumerate(looks(seed=7, many=LOOKS)):
        living.clock.now = moment.at
        world = living.restart() if number % RESTART_EVERY == 0 else living.world
        found: dict[str, tuple[str, int]] = {}
        for scope in scopes:
            checked = world.call("intention", action="check", context=moment.told(), scope=scope, limit=100)
            assert checked["totalTriggered"] == len(checked["triggered"])
            found |= {
                one["id"]: (one["dueAt"], one["missed"]) for one in checked["triggered"] if one["first"]
            }
        expected = {name: came for name, watch in watches.items() if (came := watch.look(moment))}
        assert found == {name: (_text(due), missed) for name, (due, missed) in expected.items()}
        fired += len(expected)
    assert fired > RULES


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_nothing_comes_up_twice_for_one_moment(living: Living) -> None:
    intend(living.world, "Call Bob.", trigger={"in_minutes": 10})
    living.clock.now += timedelta(minutes=10)

    assert [one["first"] for one in told(living.world)] == [True]
    assert [one["first"] for one in told(living.restart())] == [False]


def test_the_words_of_what_is_deleted_are_in_no_file(living: Living) -> None:
    words = {word: word.encode() for word in ("qvantixol", "wrembluk", "zhorpid")}
    name = intend(living.world, "Remind me to ring Qvantixol tomorrow at 9")
    living.world.call(
        "intention", action="update", id=name, description="Ring Wrembluk.", trigger={"topic": "zhorpid"}
    )
    assert [one["id"] for one in told(living.world, topics=["zhorpid"])] == [name]
    living.close()
    assert set().union(*holding(living, words).values()) >= {"wrembluk", "zhorpid"}

    living.restart().call("intention", action="delete", id=name)
    living.close()
    assert holding(living, words) == {}

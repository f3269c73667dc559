"""Contexts match as people expect of names, files and topics, and parts come together as they should."""

from datetime import UTC, datetime, timedelta

import pytest

from vestige.cognition.intentions.triggers import (
    Compound,
    ContextTrigger,
    EventTrigger,
    Judged,
    Time,
    Trigger,
    TriggerSituation,
    events_met,
    in_context,
    judge,
    next_time,
    stated_words,
)

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def judged(trigger: Trigger, situation: TriggerSituation, since: datetime | None = None) -> Judged:
    met = dict.fromkeys(events_met(trigger, situation.events), NOW)
    return judge(trigger, situation, since=since, set_at=NOW, met=met)


@pytest.mark.parametrize(
    ("pattern", "file", "matches"),
    [
        ("auth.py", "src/auth.py", True),
        ("auth.py", "/home/ada/shop/src/auth.py", True),
        ("auth.py", "src/oauth.py", False),
        ("AUTH.py", "src/auth.py", True),
        ("*.sql", "db/old/init.sql", True),
        ("*.sql", "db/old/init.sql.bak", False),
        ("db/*.sql", "shop/db/init.sql", True),
        ("db/*.sql", "db/old/init.sql", False),
        ("db/**/*.sql", "db/old/init.sql", True),
        ("db/**/*.sql", "db/init.sql", True),
        ("src/**", "src/a/b/c.py", True),
        ("src/", "web/src/app/main.ts", True),
        ("src/", "web/src", False),
        ("/etc/hosts", "/etc/hosts", True),
        ("/etc/hosts", "/srv/etc/hosts", False),
        ("test_?.py", "tests/test_a.py", True),
        ("[ab].py", "c.py", False),
        ("src\\auth.py", "C:\\shop\\src\\auth.py", True),
        ("[z-a].py", "z.py", False),
        ("auth.py", None, False),
    ],
)
def test_a_file_pattern_matches_the_end_of_a_path(pattern: str, file: str | None, matches: bool) -> None:
    assert in_context(ContextTrigger(file_pattern=pattern), TriggerSituation(now=NOW, file=file)) is matches


@pytest.mark.parametrize(
    ("wanted", "told", "matches"),
    [
        ("shop", "shop", True),
        ("Shop", "shop", True),
        ("shop", "/home/ada/shop/", True),
        ("shop", "shop-api", False),
        ("shop", None, False),
    ],
)
def test_a_codebase_is_known_by_its_name(wanted: str, told: str | None, matches: bool) -> None:
    assert in_context(ContextTrigger(codebase=wanted), TriggerSituation(now=NOW, codebase=told)) is matches


@pytest.mark.parametrize(
    ("topic", "told", "matches"),
    [
        ("payment", ["payments"], True),
        ("the payment api", ["Payments", "API of the payments"], True),
        ("art", ["starting"], False),
        ("payment api", ["payments", "api"], False),
        ("payment", [], False),
    ],
)
def test_a_topic_is_known_by_all_its_words_in_one_topic(topic: str, told: list[str], matches: bool) -> None:
    situation = TriggerSituation(now=NOW, topics=stated_words(told))

    assert in_context(ContextTrigger(topic=topic), situation) is matches


def test_every_part_of_a_context_that_is_given_must_match() -> None:
    context = ContextTrigger(codebase="shop", file_pattern="*.sql")

    assert in_context(context, TriggerSituation(now=NOW, codebase="shop", file="a.sql"))
    assert not in_context(context, TriggerSituation(now=NOW, codebase="shop"))
    assert not in_context(context, TriggerSituation(now=NOW, file="a.sql"))


def test_all_wait_for_the_last_and_any_for_the_first() -> None:
    parts = (Time(at=NOW), EventTrigger(condition="tests pass"), ContextTrigger(codebase="shop"))
    heard = stated_words(["All the tests passed."])
    there = TriggerSituation(now=NOW, codebase="shop", events=heard)
    elsewhere = TriggerSituation(now=NOW, codebase="web", events=heard)

    assert judged(Compound(mode="all", parts=parts), there).holds
    assert not judged(Compound(mode="all", parts=parts), elsewhere).holds
    assert judged(Compound(mode="any", parts=parts), elsewhere).holds
    assert not judged(Compound(mode="any", parts=parts[1:]), TriggerSituation(now=NOW)).holds


def test_nested_parts_are_told_apart() -> None:
    inner = Compound(
        mode="any", parts=(EventTrigger(condition="deploy failed"), EventTrigger(condition="tests failed"))
    )
    trigger = Compound(mode="all", parts=(inner, EventTrigger(condition="tests failed")))

    assert events_met(trigger, stated_words(["The deploy failed."])) == {".0.0"}
    assert events_met(trigger, stated_words(["Two tests failed."])) == {".0.1", ".1"}


def test_a_time_that_was_told_is_over_alone_and_stays_beside_others() -> None:
    later = TriggerSituation(now=NOW + timedelta(hours=1), codebase="shop")
    both = Compound(mode="all", parts=(Time(at=NOW), ContextTrigger(codebase="shop")))

    assert not judged(Time(at=NOW), later, since=NOW).holds
    assert judged(both, later, since=NOW).holds


def test_the_next_time_is_the_first_of_any_and_the_last_of_all() -> None:
    parts = (
        Time(at=NOW + timedelta(hours=1)),
        Time(at=NOW + timedelta(hours=2)),
        ContextTrigger(codebase="shop"),
    )

    assert next_time(Compound(mode="any", parts=parts), NOW) == NOW + timedelta(hours=1)
    assert next_time(Compound(mode="all", parts=parts), NOW) == NOW + timedelta(hours=2)
    assert next_time(ContextTrigger(codebase="shop"), NOW) is None

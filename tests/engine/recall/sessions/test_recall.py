"""Filters, time words, excerpts, and which session an id means."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.world import World
from tests.engine.recall.sessions.transcripts import (
    CART,
    LOGIN,
    call_of,
    claude_file,
    conversation,
    index_of,
    plant,
    world_at_home,
)
from tests.exchange.transcripts.homes import Record, write_lines
from vestige.core.errors import NotFound
from vestige.engine.recall.sessions.recall import FoundSessions, excerpt, find_sessions, one_session
from vestige.engine.recall.sessions.refresh import refresh
from vestige.store.contract.sessions import SessionFilter

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_at_home(tmp_path) as opened:
        plant(tmp_path / "home")
        refresh(call_of(opened), index_of(opened))
        yield opened


def ask(world: World, query: str, **where: object) -> FoundSessions:
    return find_sessions(index_of(world), query, SessionFilter(**where), NOW, limit=10)  # type: ignore[arg-type]  # by name


def ids(found: FoundSessions) -> list[str]:
    return [one.session.id for one in found.sessions]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"cwd": "/w"}, {LOGIN, CART}),
        ({"cwd": "/w/cart/"}, {CART}),
        ({"cwd": "/w/car"}, set()),
        ({"repository": "cart"}, {CART}),
        ({"repository": "100%"}, set()),
        ({"clients": ("claude",)}, {LOGIN, CART}),
        ({"clients": ("codex",)}, set()),
        ({"since": datetime(2026, 2, 25, tzinfo=UTC).timestamp()}, {CART}),
        ({"until": datetime(2026, 2, 25, tzinfo=UTC).timestamp()}, {LOGIN}),
        ({"session": LOGIN}, {LOGIN}),
    ],
)
def test_filters_are_part_of_the_search(world: World, where: dict[str, object], expected: set[str]) -> None:
    assert set(ids(ask(world, "test cart", **where))) == expected
    listed = index_of(world).sessions(SessionFilter(**where), limit=10)  # type: ignore[arg-type]  # as above
    assert {one.id for one in listed} == expected


def test_a_session_is_found_by_the_title_that_the_user_gave_it(world: World, tmp_path: Path) -> None:
    named: Record = {"type": "custom-title", "customTitle": "Épic quarterly migration"}
    write_lines(claude_file(tmp_path / "home", LOGIN), [named], "a")
    refresh(call_of(world), index_of(world))
    (one,) = ask(world, "migrations of the quarter").sessions
    assert (one.session.id, one.passages) == (LOGIN, ())
    assert ids(ask(world, "épic login")) == [LOGIN]
    assert ids(ask(world, "quarterly", cwd="/w/cart")) == []
    assert index_of(world).titles(SessionFilter()) == {one.session.key: "Épic quarterly migration"}


def test_words_of_time_limit_the_search_and_are_no_search_terms(world: World) -> None:
    found = ask(world, "what did we do in the last 5 days")
    assert ids(found) == [CART]
    assert found.window is not None
    assert ids(ask(world, "last week")) == [LOGIN]


def test_a_day_of_the_week_is_the_last_one_for_sessions(world: World) -> None:
    assert NOW.strftime("%A") == "Sunday"
    found = ask(world, "what did we do on Friday")  # 2026-02-27
    assert (ids(found), found.widened) == ([CART], False)
    assert ids(ask(world, "the total on friday")) == [CART]


def test_a_time_with_words_finds_what_has_both(world: World) -> None:
    assert ids(ask(world, "the total in the last 5 days")) == [CART]
    assert ids(ask(world, "the flaky test last week")) == [LOGIN]


def test_a_time_without_a_session_widens_the_search_and_says_so(world: World) -> None:
    found = ask(world, "flaky login test in 2019")
    assert (ids(found), found.widened) == ([LOGIN], True)


def test_a_word_that_only_a_tool_printed_is_found_too(world: World) -> None:
    (one,) = ask(world, "flamingo").sessions
    assert one.session.id == LOGIN
    assert "flamingo" in one.passages[0].excerpt


def test_the_excerpt_is_of_the_line_that_matches(world: World) -> None:
    (one,) = ask(world, "token clock").sessions
    (passage,) = one.passages
    assert passage.excerpt.startswith("The clock of the token is wrong")
    assert passage.commands == (("pytest tests/login", 1),)


def test_a_long_line_is_cut_around_the_match() -> None:
    text = "opening line\n" + "x " * 2_000 + "the needle is here" + " y" * 2_000
    shown = excerpt(text, frozenset({"needl"}))
    assert "needle" in shown
    assert len(shown) < 320


def test_a_giant_session_does_not_win_by_its_length(world: World, tmp_path: Path) -> None:
    giant = "eeee0000-0000-4000-8000-000000000009"
    filler = [("user", f"the login and the test and the cart and topic {number}") for number in range(300)]
    write_lines(claude_file(tmp_path / "home", giant), conversation(giant, *filler))
    refresh(call_of(world), index_of(world))
    assert ids(ask(world, "flaky login test"))[0] == LOGIN


def test_the_beginning_of_an_id_names_a_session_if_it_is_the_only_one(world: World) -> None:
    assert one_session(index_of(world), "aaaa").id == LOGIN
    with pytest.raises(NotFound):
        one_session(index_of(world), "nothing")


def test_an_index_that_is_not_there_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with world_at_home(tmp_path / "other") as world:
        assert ids(ask(world, "anything")) == []
        assert not index_of(world).exists()


def test_words_of_one_family_find_each_other(world: World, tmp_path: Path) -> None:
    name = "eeee0000-0000-4000-8000-000000000005"
    turns = (("user", "please simplify the parser"), ("assistant", "I simplified it."))
    write_lines(claude_file(tmp_path / "home", name), conversation(name, *turns))
    refresh(call_of(world), index_of(world))
    (found,) = ask(world, "more simplifications").sessions
    assert (found.session.id, found.passages[0].excerpt) == (name, "please simplify the parser")


def test_a_prompt_that_was_sent_twice_is_quoted_once(tmp_path: Path) -> None:
    plan = "Plan: the telemetry of the cart is off by default. " + "It stays off for everybody. " * 60
    session = "cccc0000-0000-4000-8000-000000000003"
    turns = (("user", plan), ("assistant", "I begin."), ("user", plan), ("assistant", "Done."))
    with world_at_home(tmp_path) as world:
        write_lines(claude_file(tmp_path / "home", session), conversation(session, *turns))
        refresh(call_of(world), index_of(world))
        found = find_sessions(
            index_of(world), "telemetry of the cart", SessionFilter(), NOW, limit=10, passages=4
        )
    (one,) = found.sessions
    assert len(one.passages) == len({each.excerpt for each in one.passages})
    assert sum("telemetry of the cart" in each.excerpt for each in one.passages) == 1

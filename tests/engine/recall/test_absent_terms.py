"""Which texts occur in no memory in reach: nothing is claimed that is not certain."""

import pytest

from testbed.world import World
from vestige.cognition.query.analyse import analyse
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.engine.context import Call
from vestige.engine.recall.absent_terms import find_absent_terms

SOUGHT = "beta then alpha"


def nowhere(world: World, *literals: str, where: Filter = ANYTHING) -> tuple[str, ...]:
    """Which of these texts, quoted in a query, are missing."""
    return gone(world, " ".join(f'"{literal}"' for literal in literals), where=where)


def gone(world: World, query: str, where: Filter = ANYTHING) -> tuple[str, ...]:
    return find_absent_terms(Call(engine=world.app.engine, access=EVERYTHING), analyse(query), where, [])


def test_what_no_memory_holds_is_missing_though_its_words_occur(world: World) -> None:
    world.remember("alpha then beta")

    assert nowhere(world, SOUGHT, "alpha then beta", "gamma") == (SOUGHT, "gamma")


def test_what_is_a_tag_an_id_or_a_source_is_not_missing(world: World) -> None:
    named = world.remember("alpha", tags=[SOUGHT], source="gamma.log")

    assert nowhere(world, SOUGHT, named, "gamma.log", "delta.log") == ("delta.log",)


def test_what_a_filter_keeps_out_is_missing(world: World) -> None:
    world.remember(SOUGHT, scope="/home")

    assert nowhere(world, SOUGHT, where=Filter(scope="/work")) == (SOUGHT,)
    assert nowhere(world, SOUGHT, where=Filter(scope="/home")) == ()


def test_what_the_arm_passes_over_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.remember("alpha then beta")
    monkeypatch.setattr("vestige.cognition.query.literals.COMMON", 0)
    assert nowhere(world, SOUGHT) == (SOUGHT,)

    world.remember(SOUGHT, force_create=True)

    assert nowhere(world, SOUGHT) == ()


def test_of_what_too_many_may_hold_nothing_is_claimed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        world.remember(f"alpha then beta, {number}", force_create=True)
    assert nowhere(world, SOUGHT) == (SOUGHT,)

    monkeypatch.setattr("vestige.engine.recall.absent_terms.READ", 3)

    assert nowhere(world, SOUGHT) == ()


def test_a_text_without_a_word_is_not_claimed_to_be_missing(world: World) -> None:
    world.remember("alpha")

    assert nowhere(world, "…") == ()


# -- what a query names without quoting it --------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "untold"),
    [
        ("Which database does Lighthouse run on?", ("Lighthouse",)),
        ("When was Harbour 3.0 released?", ("Harbour 3.0",)),
        ("When was Lighthouse 3.0 released?", ("Lighthouse 3.0",)),
        ("When was Lighthouse 2.0 released?", ("Lighthouse",)),
        ("When was Harbour 2.0 released?", ()),
        ("is Harbour on PostgreSQL 15", ("PostgreSQL 15",)),
        ("is Harbour on PostgreSQL 16", ()),
        ("What happened on 2026-03-13?", ("2026-03-13",)),
        ("What happened on 12 March 2026?", ()),
        ("What did Melanie name Harbour after?", ()),
        ("When was version 3.0 released?", ("version 3.0",)),
        ("When was version 2.0 released?", ()),
    ],
)
def test_what_no_memory_tells_of_is_missing(world: World, query: str, untold: tuple[str, ...]) -> None:
    world.clock.advance(days=100)
    for text in (
        "Harbour now runs on PostgreSQL 16.",
        "The release of Harbour 2.0 happened on 2026-03-12.",
        "Harbour was named by Mel after a pub.",
    ):
        world.remember(text, force_create=True)

    assert gone(world, query) == untold


def test_a_number_that_another_thing_has_is_missing_where_the_thing_has_another(world: World) -> None:
    world.remember("Otter 3.0 is out.")
    world.remember("Nobody has seen Harbour.")
    assert gone(world, "When was Harbour 3.0 released?") == ()  # it may be what 3.0 is of

    world.remember("Harbour 2.0 is out.")

    assert gone(world, "When was Harbour 3.0 released?") == ("Harbour 3.0",)


def test_what_was_true_once_is_not_missing(world: World) -> None:
    world.remember("Harbour runs on Otter.", valid_until="2026-02-01")

    assert gone(world, "Does it run on Otter?", where=Filter(valid_at=world.clock.now)) == ()
    assert gone(world, "is it in `Otter`", where=Filter(valid_at=world.clock.now)) == ()


def test_a_name_that_the_scope_has_is_not_missing(world: World) -> None:
    world.remember("It runs on MySQL.", scope="/code/lighthouse")

    assert gone(world, "What does Lighthouse run on?", where=Filter(scope="/code/lighthouse")) == ()
    assert gone(world, "What does Lighthouse run on?", where=Filter(scope="/code")) == ("Lighthouse",)


def test_a_number_or_a_day_that_too_many_may_tell_of_is_not_claimed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        world.remember(f"{number} of 15 lamps and 13 ropes", force_create=True)
    queries = ("is Harbour 15 out", "What happened on 2026-01-13?")
    assert [bool(gone(world, query)) for query in queries] == [True, True]

    monkeypatch.setattr("vestige.engine.recall.absent_terms.READ", 3)

    assert "2026-01-13" not in gone(world, queries[1])
    assert "Harbour 15" not in gone(world, queries[0])

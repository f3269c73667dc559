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


def gone(world: World, query: str, where: Filter = ANYTHING, answered: bool | None = None) -> tuple[str, ...]:
    call = Call(engine=world.app.engine, access=EVERYTHING)
    return find_absent_terms(call, analyse(query), where, [], answered=answered)


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


def test_a_version_is_not_missing_however_it_is_written(world: World) -> None:
    world.remember("Version 2 of the API needs a token.")
    world.remember("The client talks to API v3.")

    for asked in ("What does API v2 need?", "What does v2 need?", "Who talks to version 3 of the API?"):
        assert gone(world, asked) == ()
    assert gone(world, "What does v5 need?") == ("v5",)


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


# -- things in lower case and short forms ---------------------------------------------------------

NOTES = (
    "The lamp in the bedroom cost 40 euros.",
    "Miriam's birthday is on 3 May.",
    "The wifi password is on the fridge.",
    "Our car is a Skoda from 2019.",
    "Kessler repaired the roof in March, because a storm had torn off the tiles.",
    "Ada lives in Hamburg and works as a nurse.",
    "Miso, our cat, eats tuna twice a day.",
    "The standup is at 9:30 in room two.",
    "We track bugs in Linear.",
    "The chief technology officer is Noor.",
)


UNKNOWN = {
    "what does the tv in the bedroom cost": ["tv"],
    "What does the TV in the bedroom cost?": ["TV"],
    "Which PC do I use at work?": ["PC"],
    "how old is the bmw": ["bmw"],
    "Did the BMW pass its inspection?": ["BMW"],
    "when is ingrid's birthday": ["ingrid"],
    "when is miriam's birthday": [],
    "who is brandt?": ["brandt"],
    "who is kessler?": [],
    "when did brandt repair the roof": ["brandt"],
    "when did kessler repair the roof": [],
    "Who is the CTO?": [],  # it is written out
    "where is the printer": [],  # it may be there in other words
}


def test_a_name_in_lower_case_or_a_short_one_that_occurs_nowhere_is_missing(world: World) -> None:
    for text in NOTES:
        world.remember(text, force_create=True)

    found = {
        query: world.call("search", query=query, record=False, all=True).get("missing", [])
        for query in UNKNOWN
    }

    assert found == UNKNOWN


def test_a_common_noun_is_missing_only_where_the_best_notes_do_not_answer(world: World) -> None:
    for text in NOTES:
        world.remember(text, force_create=True)
    query = "where is the printer"

    assert gone(world, query, answered=False) == ("printer",)
    assert gone(world, query, answered=None) == ()
    assert gone(world, query, answered=True) == ()
    assert gone(world, "what does the tv cost", answered=True) == ()


def test_a_thing_that_a_memory_names_by_a_synonym_is_not_missing(world: World) -> None:
    world.remember("The television in the kitchen cost 300 euros.")
    world.remember("The list is on the fridge.")

    for query in (
        "what does the tv in the kitchen cost",
        "What does the TV cost?",
        "is it on the refrigerator",
    ):
        assert gone(world, query, answered=False) == ()


ORDINARY = (
    "How much did the lamp in the bedroom cost?",
    "What is the price of the lamp?",
    "what was the price of the bedroom lamp",
    "When is Miriam's birthday?",
    "when is the birthday of miriam",
    "On which day was Miriam born?",
    "What is the wifi password?",
    "where is the password for the wifi",
    "Where can I find the wifi password?",
    "What's on the refrigerator?",
    "What brand is our car?",
    "How old is our automobile?",
    "which car do we drive",
    "Who repaired the roof?",
    "Why was the roof repaired?",
    "What was the reason for the repair of the roof?",
    "When was the roof fixed?",
    "Where does Ada live?",
    "What is Ada's job?",
    "In which city does Ada live?",
    "what's ada's profession",
    "What does the cat eat?",
    "How often does the cat get tuna?",
    "What is the name of our cat?",
    "what does miso like",
    "When is the standup?",
    "What time does the standup start?",
    "Which room is the standup in?",
    "Where do we track bugs?",
    "What tool does the team use for bugs?",
    "Who is the CTO?",
    "What is the CTO's name?",
)


@pytest.mark.parametrize("answered", [None, False])
def test_no_common_word_of_an_ordinary_question_is_missing(world: World, answered: bool | None) -> None:
    for text in NOTES:
        world.remember(text, force_create=True)

    named = {query: missing for query in ORDINARY if (missing := gone_in(world, query, answered))}

    assert named == {}


def gone_in(world: World, query: str, answered: bool | None) -> tuple[str, ...]:
    """What is missing beside the hits of a search."""
    hits = world.call("search", query=query, record=False, all=True)["results"]
    call = Call(engine=world.app.engine, access=EVERYTHING)
    found = [one.memory for one in call.engine.store.get_many([hit["id"] for hit in hits], access=EVERYTHING)]
    return find_absent_terms(call, analyse(query), ANYTHING, found, answered=answered)

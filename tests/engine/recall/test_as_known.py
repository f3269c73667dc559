"""`known_at`: what was reworded since is found by the words of then, and never by those of now."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world

GATEWAY = "The gateway timeout is zanzibar seconds in staging."
INVOICES = "Invoices are archived by quux after a year."
THEN = "2026-03-02T09:00:00Z"
"""A day after the first memories, a day before they are reworded."""


def edit(world: World, memory_id: str, content: str) -> None:
    world.call("memory", action="edit", id=memory_id, content=content)


def look(world: World, query: str, **arguments: Any) -> dict[str, Any]:
    return world.call("search", query=query, record=False, **{"known_at": THEN, **arguments})


def texts(answer: dict[str, Any]) -> list[str]:
    return [hit["content"] for hit in answer["results"]]


def reword(world: World) -> str:
    """The gateway's memory was turned into one of invoices two days later."""
    memory_id = world.remember(GATEWAY)
    world.clock.advance(days=2)
    edit(world, memory_id, INVOICES)
    world.clock.advance(days=1)
    return memory_id


@pytest.mark.parametrize("query", ["zanzibar gateway timeout", '"zanzibar"', "zanz*"])
def test_a_memory_is_found_by_the_words_it_had_then(world: World, query: str) -> None:
    reword(world)

    then, now = look(world, query), look(world, query, known_at=None)

    assert texts(then) == [GATEWAY]
    assert GATEWAY not in texts(now)
    assert then["confidence"] > 10 * now["confidence"]


def test_a_memory_is_not_found_by_words_it_got_later(world: World) -> None:
    reword(world)

    then = look(world, "invoices archived quux", min_confidence=0)

    assert then["confidence"] < 0.1
    assert texts(look(world, "invoices archived quux")) == []
    assert texts(look(world, "invoices archived quux", known_at=None)) == [INVOICES]
    assert all("keywordScore" not in hit for hit in then["results"])


def test_what_was_asked_literally_was_missing_then(world: World) -> None:
    reword(world)

    assert look(world, '"archived by quux"')["missing"] == ["archived by quux"]
    assert "missing" not in look(world, '"gateway timeout is zanzibar"')


def test_reasoning_looks_back_too(world: World) -> None:
    reword(world)

    then = world.call("deep_reference", query="what is the gateway timeout in staging", known_at=THEN)
    later = world.call("deep_reference", query="who archives invoices after a year", known_at=THEN)

    assert then["recommended"]["answer_preview"] == GATEWAY
    assert "recommended" not in later


def test_words_alone_look_back_too(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        reword(world)

        assert texts(look(world, "zanzibar gateway timeout")) == [GATEWAY]
        assert texts(look(world, "invoices archived quux")) == []


def test_an_earlier_wording_outlives_a_restart_but_not_its_memory(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as world:
        memory_id = reword(world)
    with open_world(tmp_path, clock=clock) as world:
        assert texts(look(world, "zanzibar gateway timeout")) == [GATEWAY]
        world.call("memory", action="delete", id=memory_id)
        assert look(world, "zanzibar gateway timeout", min_confidence=0)["total"] == 0


def test_the_wording_in_force_at_that_moment_counts(world: World) -> None:
    memory_id = world.remember("The mascot is a walrus.")
    for name in ("heron", "badger", "walrus"):
        world.clock.advance(days=1)
        edit(world, memory_id, f"The mascot is a {name}.")

    for day, name in enumerate(("walrus", "heron", "badger", "walrus"), 1):
        at = f"2026-03-{day:02}T12:00:00Z"
        sure = {
            asked: look(world, asked, known_at=at)["confidence"] for asked in ("walrus", "heron", "badger")
        }
        assert max(sure, key=sure.__getitem__) == name
        assert texts(look(world, name, known_at=at)) == [f"The mascot is a {name}."]


def test_an_earlier_wording_ranks_as_it_did_then(world: World) -> None:
    """What was reworded meets what was not on one scale: the order of that day comes back."""
    facts = [
        "The gateway timeout is thirty seconds in staging and a minute in production.",
        "The gateway of the harbour office is a Cisco router in the basement.",
        "Ada asked for a longer timeout of the nightly export.",
        "Staging is rebuilt every Sunday night.",
        "The gateway team meets on Tuesdays.",
        "Ferries leave at seven.",
    ]
    ids = [world.remember(fact, force_create=True) for fact in facts]
    world.clock.advance(days=1)
    before = look(world, "gateway timeout in staging", known_at=None, min_confidence=0)
    world.clock.advance(days=1)
    for at in (0, 2, 5):
        edit(world, ids[at], f"The gateway timeout in staging: see page {at}.")

    after = look(world, "gateway timeout in staging", min_confidence=0)

    assert texts(after) == texts(before)
    assert [hit["semanticScore"] for hit in after["results"]] == pytest.approx(
        [hit["semanticScore"] for hit in before["results"]], abs=1e-6
    )
    assert after["confidence"] == pytest.approx(before["confidence"], abs=0.1)


def test_filters_hold_for_earlier_wordings(world: World) -> None:
    memory_id = world.remember(GATEWAY, tags=["ops"], scope="/a")
    world.clock.advance(days=2)
    world.call("memory", action="tag", id=memory_id, add=["billing"], remove=["ops"])
    edit(world, memory_id, INVOICES)

    assert texts(look(world, "zanzibar gateway", tags=["ops"], scope="/a")) == [GATEWAY]
    assert texts(look(world, "zanzibar gateway", tags=["billing"], scope="/a")) == []
    assert texts(look(world, "zanzibar gateway", scope="/b")) == []


def test_the_piece_that_matched_is_cut_from_the_text_of_then(world: World) -> None:
    filler = " ".join(f"Paragraph {n} talks about ordinary things at some length." for n in range(60))
    memory_id = world.remember(f"{filler} The quokka migrated to the southern harbour.")
    world.clock.advance(days=2)
    edit(world, memory_id, "Nothing is left of it. " * 100)

    (hit,) = look(world, "quokka migrated southern harbour", explain=True, detail_level="full")["results"]

    assert hit["explain"]["matchedText"].split(". ")[0] in hit["content"]


def test_without_time_for_their_meaning_earlier_wordings_are_found_by_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reword(world)
    monkeypatch.setattr("vestige.engine.recall.as_known.PIECES", 0)

    (hit,) = look(world, "zanzibar gateway timeout", min_confidence=0)["results"]

    assert (hit["content"], hit["matchType"]) == (GATEWAY, "Keyword")
    assert look(world, "invoices archived quux", min_confidence=0)["total"] == 0


def test_only_so_many_earlier_wordings_are_read_the_latest_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    green = world.remember("The gate is painted green.")
    reword(world)
    edit(world, green, "The ferry leaves at nine.")
    monkeypatch.setattr("vestige.engine.recall.as_known.MOST_WORDINGS", 1)

    assert texts(look(world, "gate painted green", min_confidence=0)) == ["The gate is painted green."]
    assert GATEWAY not in texts(look(world, "zanzibar gateway timeout", min_confidence=0))


@pytest.fixture
def real(tmp_path: Path, real_model_dir: Path) -> Iterator[World]:
    """A world with the model that ships."""
    settings: dict[str, Any] = {"embeddings.cache_dir": str(real_model_dir.parent), "offline": True}
    with open_world(tmp_path, provider="local", **settings) as world:
        assert world.app.engine.embedders.get(60) is not None
        yield world


@pytest.mark.slow
def test_an_earlier_wording_is_found_by_its_meaning_and_not_by_a_later_phrasing(real: World) -> None:
    leo = real.remember("Leo finished his PhD in physics in 2019.")
    cook = real.remember("The cook is allergic to peanuts.")
    real.clock.advance(days=2)
    again = real.call("smart_ingest", content="In 2019 Leo completed a physics PhD.")
    edit(real, cook, "The harbour office closes at noon.")

    assert (again["decision"], again["nodeId"]) == ("reinforce", leo)
    assert texts(look(real, "who must not eat nuts?"))[0] == "The cook is allergic to peanuts."
    assert texts(look(real, "when did the office shut?")) == []
    (hit, *_) = look(real, "Leo completed a doctorate", detail_level="full")["results"]
    assert (hit["content"], hit["phrasings"]) == ("Leo finished his PhD in physics in 2019.", [])
    assert look(real, '"completed a physics PhD"')["missing"] == ["completed a physics PhD"]


def test_nothing_is_missing_that_an_earlier_wording_tells(world: World) -> None:
    world.remember("Ticket 77777 is about the gateway timeout in production.")
    ferry = world.remember("Ferry 48213 leaves at nine.", force_create=True)
    world.clock.advance(days=2)
    edit(world, ferry, "Ferries do not leave any more.")
    asked = "ticket 77777 about the gateway timeout in production, 48213"

    assert "missing" not in look(world, asked, limit=1, min_confidence=0)
    assert look(world, asked, limit=1, min_confidence=0, known_at=None)["missing"] == ["48213"]


def test_an_answer_says_that_not_all_was_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reword(world)
    monkeypatch.setattr("vestige.engine.recall.as_known.MOST_WORDINGS", 0)

    assert "reworded" in look(world, "zanzibar gateway timeout")["note"]
    assert "reworded" in world.call("deep_reference", query="zanzibar gateway timeout", known_at=THEN)["note"]
    assert "reworded" not in look(world, "zanzibar gateway timeout", known_at=None).get("note", "")

"""A search shows what has to do with the query: with the model that ships, and by words only."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.fresh_databases import FreshDatabases
from testbed.world import World, on_postgres, open_world

FOUR = (
    "Deployments need two approvals.",
    "I prefer dark mode in every editor.",
    "The staging database is PostgreSQL 16 on db-2.",
    "Maria leads the payments team.",
)
POSTGRES = tuple(
    f"{what} of postgres {how}."
    for what in ("The backup", "The upgrade", "The password", "The port", "The memory")
    for how in ("is written down in the handbook", "was discussed with Omar")
)


@pytest.fixture(params=["local", "off"])
def four(request: pytest.FixtureRequest, real_model_dir: Path, tmp_path: Path) -> Iterator[World]:
    """A store of four notes, with the model and without it."""
    with opened(tmp_path, real_model_dir, provider=request.param) as world:
        yield world


@contextmanager
def opened(folder: Path, models: Path, **settings: Any) -> Iterator[World]:
    given = {"offline": True, "embeddings.cache_dir": str(models.parent), **settings}
    with open_world(folder, **given) as world:
        if given["provider"] == "local":
            assert world.app.engine.embedders.get(60) is not None
        for text in FOUR:
            world.remember(text)
        yield world


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "query",
    [
        "What is the capital of France?",
        "capital of France",
        "Tell me a joke about penguins.",
        "penguin migration antarctica",
        "How many moons does Neptune have?",
        "sourdough bread recipe",
    ],
)
def test_another_topic_finds_nothing_and_the_answer_says_so(four: World, query: str) -> None:
    answer = four.call("search", query=query)

    assert answer["results"] == []
    assert answer["note"]
    assert "weakerLeftOut" not in answer


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("How many approvals does a deployment need?", FOUR[0]),
        ("dark mode", FOUR[1]),
        ("staging database", FOUR[2]),
        ("PostgreSQL 16", FOUR[2]),
        ("db-2", FOUR[2]),
        ('"payments team"', FOUR[3]),
        ("Maria", FOUR[3]),
        ("maria", FOUR[3]),
    ],
)
def test_a_question_or_key_words_show_what_answers_and_nothing_else(
    four: World, query: str, wanted: str
) -> None:
    assert [hit["content"] for hit in four.call("search", query=query)["results"]] == [wanted]


def test_the_answer_counts_the_weaker_matches_and_all_shows_them(
    real_model_dir: Path, tmp_path: Path
) -> None:
    query = "Which database does staging use?"
    with opened(tmp_path, real_model_dir, provider="local") as world:
        answer = world.call("search", query=query)
        everything = world.call("search", query=query, all=True)
        elsewhere = world.call("search", query="What is the capital of France?", all=True)

    assert answer["total"] + answer["weakerLeftOut"] == everything["total"] == len(FOUR)
    assert "weakerLeftOut" not in everything
    assert elsewhere["total"] == len(FOUR)


@pytest.mark.parametrize("provider", ["local", "off"])
def test_both_stores_leave_out_the_same(
    postgres_databases: FreshDatabases, real_model_dir: Path, tmp_path: Path, provider: str
) -> None:
    queries = ("What is the capital of France?", "Which database does staging use?", "dark mode", "payments")
    url = postgres_databases.take()
    answers = []
    for name, settings in (("sqlite", {}), ("postgres", on_postgres(url))):
        with opened(tmp_path / name, real_model_dir, provider=provider, **settings) as world:
            found = [world.call("search", query=query, record=False) for query in queries]
            answers.append(
                [([hit["content"] for hit in one["results"]], one.get("weakerLeftOut")) for one in found]
            )
    postgres_databases.give_back(url)

    assert answers[0] == answers[1]
    assert answers[0][0] == ([], None)


def test_every_note_on_a_key_word_is_shown(four: World) -> None:
    for text in POSTGRES:
        four.remember(text, force_create=True)

    found = {hit["content"] for hit in four.call("search", query="postgres", limit=20)["results"]}

    assert found >= set(POSTGRES)


def test_a_tag_is_found_though_the_text_says_nothing_of_it(four: World) -> None:
    four.remember("Close the shutters when it storms.", tags=["greenhouse"])

    assert "Close the shutters when it storms." in four.find("greenhouse")


def test_what_a_shown_note_is_linked_to_is_shown_too(four: World) -> None:
    notes = {hit["content"]: hit["id"] for hit in four.call("memory", action="list")["results"]}
    four.call("memory", action="link", id=notes[FOUR[0]], target=notes[FOUR[3]], type="causal", weight=0.9)

    assert FOUR[3] in four.find("How many approvals does a deployment need?")


def test_a_briefing_and_the_evidence_of_an_answer_leave_other_topics_out(four: World) -> None:
    briefing = four.call("session_context", queries=["What is the capital of France?"])
    evidence = four.call("deep_reference", query="What is the capital of France?")

    assert not any(text in briefing["context"] for text in FOUR)
    assert not evidence["evidence"]
    assert FOUR[0] in four.call("session_context", queries=["deployment approvals"])["context"]


@pytest.mark.parametrize(
    ("word", "found"), [("username", "getUserName"), ("RED", "31mRED"), ("user", "getUser")]
)
def test_a_word_that_is_part_of_a_compound_is_found(
    tmp_path: Path, real_model_dir: Path, word: str, found: str
) -> None:
    with opened(tmp_path, real_model_dir, provider="local") as world:
        world.remember("The frontend calls getUserName() before it draws the header.")
        world.remember("The log line is 31mRED when a job fails.")

        shown = [hit["content"] for hit in world.call("search", query=word)["results"]]

    assert any(found in text for text in shown)

"""The gate through the public tools: what the answer tells, and what is kept."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.conversation import load_turns
from benchmarks.quality.corpus import DEFAULT_DATA
from testbed.effort import effort
from testbed.project import PROJECT
from testbed.world import World, open_world
from vestige.app.app import App
from vestige.embed.background import EmbedderSource
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.onnx import OnnxEmbedder
from vestige.embed.protocol import Encoded, Vectors


def test_the_answer_names_the_rival_both_signals_and_the_reason(world: World) -> None:
    old = world.remember("The API rate limit is 100 requests per minute.")

    answer = world.call("smart_ingest", content="The API rate limit is 250 requests per minute.")

    assert (answer["decision"], answer["supersededId"], answer["rivalId"]) == ("supersede", old, old)
    assert answer["rivalPreview"] == "The API rate limit is 100 requests per minute."
    assert 0.4 < answer["similarity"] < 1
    assert (answer["conflict"], answer["conflictDetail"]) == ("value", "100 → 250")
    assert "100 → 250" in answer["reason"]


def test_a_text_with_nothing_near_names_no_rival(world: World) -> None:
    answer = world.call("smart_ingest", content="Herons nest in April.")
    assert answer["decision"] == "create"
    assert not {"rivalId", "rivalPreview", "conflict", "conflictDetail"} & answer.keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Never push to the main branch", "- Never push to the **main** branch!"),
        ("Never push to the main branch!", "Never push to the main branch."),
        ("The threshold is 1.5, as agreed", "The threshold is 1.5 as agreed"),
    ],
)
def test_other_typography_is_the_same_text(world: World, old: str, new: str) -> None:
    first = world.remember(old)
    answer = world.call("smart_ingest", content=new)
    assert (answer["decision"], answer["nodeId"]) == ("reinforce", first)


def test_a_fact_with_many_values_gets_another_one(world: World) -> None:
    first = world.remember("Anna speaks French at home.")

    answer = world.call("smart_ingest", content="Anna speaks Spanish at home.")

    assert (answer["decision"], answer["conflict"], answer["rivalId"]) == ("create", "slot", first)
    assert "validUntil" not in world.get(first)


def test_a_correction_of_one_sentence_does_not_hide_the_others(world: World) -> None:
    both = world.remember("Ada lives in Paris today. Her brother works at Acme.")

    answer = world.call("smart_ingest", content="Ada lives in Lyon today.")

    assert (answer["decision"], answer["relatedIds"]) == ("create", [both])
    assert "validUntil" not in world.get(both)
    edges = world.call("memory", action="get", id=both)["edges"]
    assert [edge["type"] for edge in edges] == ["contradicts"]


def test_what_people_say_to_each_other_corrects_nothing(world: World) -> None:
    first = world.remember("Jon: I live in Paris these days.")
    asked = world.call("smart_ingest", content="Is the deploy on Thursday?")
    told = world.call("smart_ingest", content="Jon: I live in Lyon these days.")

    assert (asked["decision"], told["decision"]) == ("create", "create")
    assert "validUntil" not in world.get(first)


def test_a_state_told_with_its_beginning_ends_what_was_told_before(world: World) -> None:
    old = world.remember("Leo works at Siemens in Munich.")

    answer = world.call("smart_ingest", content="Leo works at Bosch in Munich.", valid_from="2026-01-01")

    assert (answer["decision"], answer["supersededId"]) == ("supersede", old)
    assert world.find("Leo works") == ["Leo works at Bosch in Munich."]


def test_the_decision_is_there_after_a_restart(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        old = world.remember("The default branch is master.")
        new = world.remember("The default branch is main.")
    with open_world(tmp_path) as world:
        assert world.get(old)["supersededBy"] == new
        assert world.find("default branch") == ["The default branch is main."]


class Scattered(HashingEmbedder):
    """A model that puts what corrects the deploy day far from it, and everything else near."""

    def _turn(self, text: str, vector: Vectors) -> Vectors:
        first = np.zeros_like(vector)
        first[0] = 1.0
        if text.startswith("The deploy"):
            first[0], first[1] = 0.5, 0.75**0.5
        return first

    def encode_documents(self, texts: Sequence[str]) -> list[Encoded]:
        made = super().encode_documents(texts)
        return [
            Encoded(vector=self._turn(text, one.vector), tokens=None)
            for text, one in zip(texts, made, strict=True)
        ]


def test_a_correction_finds_what_it_corrects_by_its_words(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        object.__setattr__(world.app.engine, "embedders", EmbedderSource.of(Scattered()))
        meant = world.remember("The deploy is on Wednesday.", force_create=True)
        for name in ("ash", "birch", "cedar", "elm", "fir", "larch"):
            world.remember(f"A {name} grows in the yard.", force_create=True)

        answer = world.call("smart_ingest", content="Turns out the deploy is on Thursday.")

        assert (answer["decision"], answer.get("supersededId")) == ("supersede", meant)


# -- with the model that ships ------------------------------------------------------------------------


@pytest.fixture
def real(real_model_dir: Path, tmp_path: Path) -> Iterator[World]:
    settings: dict[str, Any] = {"embeddings.cache_dir": str(real_model_dir.parent), "offline": True}
    with open_world(tmp_path, provider="local", **settings) as world:
        assert world.app.engine.embedders.get(60) is not None
        yield world


ALIKE = [
    f"User prefers {tool} over {other} for {task}."
    for task in ("scripts", "tests", "notes")
    for tool, other in (("Rust", "Go"), ("Go", "Rust"), ("Python", "Rust"), ("uv", "Poetry"))
]
NOTES = [
    *ALIKE,
    "The build takes about ten minutes.",
    "It takes roughly 10 minutes to build.",
    "Grace leads the data team.",
    "Grace is in charge of the data team.",
    "The API rate limit is 100 requests per minute.",
    "The API rate limit is 250 requests per minute.",
    "Poetry is gone from the repo; install with uv.",
    "Turns out the build takes twenty minutes.",
    *ALIKE[:2],
]


@pytest.mark.slow
def test_what_is_kept_of_earlier_texts_changes_no_decision(
    real: World, real_model_dir: Path, tmp_path: Path
) -> None:
    told = ("decision", "reason", "similarity", "conflict", "conflictDetail", "rivalPreview")
    with open_world(tmp_path / "cold") as cold:
        for note in NOTES:
            # A model that has read nothing yet, for every note.
            source = EmbedderSource.of(OnnxEmbedder(real_model_dir, threads=1))
            fresh = World(App(replace(cold.app.engine, embedders=source)), cold.clock)
            expected, answer = (one.call("smart_ingest", content=note) for one in (fresh, real))
            assert [answer.get(name) for name in told] == [expected.get(name) for name in told]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Leo finished his PhD in physics in 2019.", "In 2019 Leo completed a physics PhD."),
        ("The build takes about ten minutes.", "It takes roughly 10 minutes to build."),
        ("Grace is in charge of the data team.", "Grace leads the data team."),
    ],
)
def test_other_words_for_the_same_strengthen_it_and_are_kept(real: World, old: str, new: str) -> None:
    first = real.remember(old)

    answer = real.call("smart_ingest", content=new)

    assert (answer["decision"], answer["nodeId"], answer["rivalPreview"]) == ("reinforce", first, old)
    node = real.get(first)
    assert (node["content"], node["phrasings"], node["reps"]) == (old, [new], 1)
    assert real.find(new, limit=1) == [old]


@pytest.mark.slow
def test_the_correction_of_the_quickstart_is_one(real: World) -> None:
    page = (PROJECT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    first, second = re.findall(r'^vestige ingest "([^"]+)".*--scope /project/harbour$', page, re.MULTILINE)
    old = real.remember(first)

    answer = real.call("smart_ingest", content=second)

    assert (answer["decision"], answer["supersededId"]) == ("supersede", old)


@pytest.mark.slow
def test_turns_as_plain_notes_are_as_many_texts_found_again(real: World) -> None:
    turns, _ = load_turns(DEFAULT_DATA, effort(60, nightly=300))
    texts = list(dict.fromkeys(turn.text for turn in turns))

    for text in texts:
        real.call("smart_ingest", content=text)

    kept = real.call("system_status")["totalMemories"]
    lost = []
    for text in texts:
        found = real.call("search", query=text, limit=10, record=False, min_confidence=0)["results"]
        if not any(text == hit["content"] or text in hit.get("phrasings", ()) for hit in found):
            lost.append(text)
    assert kept > 0.9 * len(texts)
    assert lost == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Harbour needs two approvals per deployment.", "Harbour needs three approvals per deployment."),
        ("Harbour runs on PostgreSQL 14.", "Harbour runs on PostgreSQL 16 now."),
        ("Deployments need two approvals.", "Deployments need three approvals, not two."),
        ("Deployments need 2 approvals.", "Deployments need 3 approvals, not 2."),
        ("Deployments need two approvals.", "Deployments need three approvals."),
        ("Deployments need 2 approvals.", "Deployments need 3 approvals."),
        ("Deployments need two approvals.", "Deployments need 3 approvals."),
        ("The parser has no tests.", "Forty cases guard the parser as of today."),
    ],
)
def test_the_corrections_that_the_documentation_shows_supersede(real: World, old: str, new: str) -> None:
    first = real.remember(old)
    real.clock.advance(days=1)
    decided = real.call("smart_ingest", content=new)
    assert (decided["decision"], decided.get("supersededId")) == ("supersede", first)

"""The read path through the public tools, on every store: what is found, in which order, and what it leaves.

The hashing embedder knows no meaning and its token states are crude, so that how sure an answer is says
little here: where that is not the point, `min_confidence=0` shows everything.
"""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Invocation
from vestige.core.errors import Cancelled
from vestige.operations.registry.groups import registry

FACTS = (
    "Ada prefers TypeScript over JavaScript for new services.",
    "The staging cluster lives in Frankfurt.",
    "Grace wrote the COBOL importer in March.",
    "Backups are verified every night by opening them.",
)
STAGES = ["relevance", "temporal", "accessibility", "context", "competition", "spreading", "utility"]


@pytest.fixture
def filled(world: World) -> World:
    for text in FACTS:
        world.remember(text)
    return world


def order(world: World, query: str, **arguments: Any) -> list[str]:
    """The ids found, best first, however sure the answer is."""
    answer = world.call("search", query=query, min_confidence=0, record=False, **arguments)
    return [hit["id"] for hit in answer["results"]]


def equals(world: World, first: dict[str, Any], second: dict[str, Any]) -> tuple[str, str]:
    """Two memories of the same words in another order: every arm finds them equal, so the first leads."""
    one = world.remember("oven repair finished", force_create=True, **first)
    other = world.remember("finished oven repair", force_create=True, **second)
    return one, other


# -- reasons -------------------------------------------------------------------------------------


def test_the_memory_that_matches_comes_first_with_its_reasons(filled: World) -> None:
    answer = filled.call("search", query="who wrote the COBOL importer", explain=True, min_confidence=0)

    best = answer["results"][0]
    assert best["content"] == FACTS[2]
    assert best["matchType"] == "Both"
    scores = [hit["combinedScore"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    for place, hit in enumerate(answer["results"], 1):
        stages = hit["explain"]["stages"]
        assert [stage["stage"] for stage in stages] == STAGES
        assert stages[-1]["score"] == hit["combinedScore"]
        assert hit["explain"]["rank"] == stages[-1]["rank"] == place


def test_the_signals_times_their_weights_add_up_to_the_relevance(filled: World) -> None:
    filled.remember("Grace: I wrote it with Ada.", thread="talk")
    answer = filled.call("search", query="What did Grace write?", explain=True, all=True)

    assert len(answer["results"]) == 5
    for hit in answer["results"]:
        signals = hit["explain"]["signals"]
        for one in signals:
            assert one["adds"] == pytest.approx(one["value"] * one["weight"], abs=2e-4)
        total = max(0, sum(one["adds"] for one in signals))
        assert total == pytest.approx(hit["explain"]["stages"][0]["score"], abs=5e-4)


def test_a_stage_that_changes_the_order_says_by_how_many_places(world: World) -> None:
    first, second = equals(world, {}, {"tags": ["ships"]})

    answer = world.call("search", query="oven", context_topics=["ships"], explain=True, min_confidence=0)

    moves = {
        hit["id"]: {s["stage"]: s["moved"] for s in hit["explain"]["stages"]} for hit in answer["results"]
    }
    still = dict.fromkeys(STAGES, 0)
    assert moves == {second: still | {"context": 1}, first: still | {"context": -1}}
    assert [hit["explain"]["stages"][2]["rank"] for hit in answer["results"]] == [2, 1]
    assert [hit["explain"]["stages"][-1]["rank"] for hit in answer["results"]] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"tags": ["a"]}, {"alpha one", "alpha two"}),
        ({"tags_all": ["a", "b"]}, {"alpha two"}),
        ({"include_types": ["event"]}, {"alpha three"}),
        ({"exclude_types": ["event"]}, {"alpha one", "alpha two"}),
        ({"scope": "/project/x"}, {"alpha two", "alpha three"}),
        ({"source": "wiki"}, {"alpha one"}),
        ({"author": "ada"}, {"alpha three"}),
        ({"thread": "t"}, {"alpha three"}),
        ({"domains": ["d"]}, {"alpha two"}),
        ({"created_from": "2026-03-02"}, {"alpha two", "alpha three"}),
        ({"created_to": "2026-03-01"}, {"alpha one"}),
        ({"as_of": "2026-02-01"}, {"alpha one", "alpha three"}),
        ({"min_retention": 0.99}, set()),
        ({"tags": ["a"], "scope": "/project"}, {"alpha two"}),
    ],
)
def test_filters_hold_for_both_arms(world: World, arguments: dict[str, Any], expected: set[str]) -> None:
    world.remember("alpha one", tags=["a"], source="wiki", force_create=True)
    world.clock.advance(days=2)
    world.remember(
        "alpha two",
        tags=["a", "b"],
        scope="/project/x",
        domains=["d"],
        valid_from="2026-03-01",
        force_create=True,
    )
    world.remember(
        "alpha three", node_type="event", scope="/project/x/y", author="ada", thread="t", force_create=True
    )

    assert set(world.find("alpha", **arguments)) == expected
    # By meaning alone as well: no term of this query is a term of the memories.
    assert set(world.find("alphas", **arguments)) <= expected


def test_limit_and_detail_level_shape_the_answer(filled: World) -> None:
    brief = filled.call("search", query="the", limit=2, detail_level="brief", min_confidence=0)
    full = filled.call("search", query="staging cluster", limit=1, detail_level="full", min_confidence=0)

    assert brief["total"] == len(brief["results"]) == 2
    assert "content" not in brief["results"][0]
    assert full["results"][0]["learningState"] == "new"
    assert full["results"][0]["hasEmbedding"] is True


def test_being_found_leaves_a_weak_trace_once_a_day(world: World) -> None:
    memory_id = world.remember("The door code is on the blue card.")
    world.clock.advance(days=30)
    untouched = world.get(memory_id)

    def found() -> dict[str, Any]:
        world.find("door code")
        world.app.settle()
        return world.get(memory_id)

    once, twice = found(), found()

    assert once["retentionStrength"] > untouched["retentionStrength"]
    assert once["timesRetrieved"] == 1
    assert twice == once
    world.clock.advance(days=1)
    assert found()["timesRetrieved"] == 2
    assert twice["reps"] == 0
    assert twice["stability"] == untouched["stability"]


def test_a_search_that_records_nothing_changes_nothing(world: World) -> None:
    memory_id = world.remember("The door code is on the blue card.")
    world.clock.advance(days=3)
    before = world.get(memory_id)

    world.find("door code", record=False)

    assert world.get(memory_id) == before


def test_a_long_text_is_found_by_a_sentence_in_its_middle(world: World) -> None:
    filler = " ".join(f"Paragraph {n} talks about ordinary things at some length." for n in range(120))
    needle = "The quokka migrated to Rottnest in autumn."
    memory_id = world.remember(f"{filler} {needle} {filler}")
    world.remember("Something short about animals.")

    hits = world.call("search", query="quokka Rottnest", explain=True, min_confidence=0)["results"]

    assert hits[0]["id"] == memory_id
    assert "quokka" in hits[0]["explain"]["matchedText"]


def test_a_cancelled_search_stops_and_leaves_no_trace(world: World) -> None:
    memory_id = world.remember("The door code is on the blue card.")
    cancelled = threading.Event()
    cancelled.set()

    with pytest.raises(Cancelled):
        world.app.call_tool(Invocation(name="search", arguments={"query": "door"}, cancelled=cancelled))

    assert world.get(memory_id)["timesRetrieved"] == 0


def test_every_kind_of_evidence_is_replayed_from_the_log_by_rebuild(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        memory_id = world.remember("Alerts go to the on-call channel.")
        for step, action in enumerate(("promote", "demote", "useful", "promote")):
            world.clock.advance(days=step + 0.3)
            world.call("memory", action=action, id=memory_id)
            world.find("alerts channel")
        world.clock.advance(days=9)
        world.call("mark_reviewed", id=memory_id, rating=2)
        world.call("mark_reviewed", id=memory_id, rating=1)
        before = world.get(memory_id)

        rebuild = registry.operations["rebuild"]
        clean = world.app.run(rebuild, {}, lambda *_: None).wire()
        assert (clean["strengths"], clean["drifted"], clean["words"]) == (1, 0, 1)

        # A strength that was tampered with is put right from the log.
        with sqlite3.connect(tmp_path / "vestige.db") as outside:
            outside.execute("UPDATE strengths SET stability = 999")
        outside.close()
        assert world.get(memory_id)["stability"] == 999
        mended = world.app.run(rebuild, {"strengths": True}, lambda *_: None).wire()
        assert mended["drifted"] == 1
        assert world.get(memory_id) == before


# -- stages --------------------------------------------------------------------------------------


def test_a_faded_memory_ranks_below_an_equal_fresh_one(world: World) -> None:
    faded, fresh = equals(world, {}, {})
    assert order(world, "oven repair") == [faded, fresh]

    for _ in range(4):
        world.call("memory", action="demote", id=faded)

    assert order(world, "oven repair") == [fresh, faded]


@pytest.mark.parametrize("topics", [["ships"], ["Ship", "weather"], "ships"])
def test_what_has_the_topics_of_the_context_as_tags_comes_first(
    world: World, topics: list[str] | str
) -> None:
    plain, tagged = equals(world, {"tags": ["trains"]}, {"tags": ["ships"]})

    assert order(world, "oven repair") == [plain, tagged]
    assert order(world, "oven repair", context_topics=topics) == [tagged, plain]


@pytest.mark.parametrize(
    ("then", "query"),
    [
        ("2026-05-20", "oven repair last week"),
        ("2026-05-27", "oven repair 3 days ago"),
        ("2026-03-10", "oven repair in March 2026"),
        ("2026-03-10", "oven repair in March"),
        ("2025-07-10", "oven repair last year"),
        ("2026-01-10", "oven repair before February 2026"),
    ],
)
def test_what_happened_in_the_time_asked_for_comes_first(world: World, then: str, query: str) -> None:
    world.clock.advance(days=90)  # to Saturday, 30 May
    other, meant = equals(world, {"occurred_at": "2026-04-15"}, {"occurred_at": then})

    assert order(world, "oven repair") == [other, meant]
    assert order(world, query) == [meant, other]


def test_a_time_told_by_an_event_is_looked_up_in_the_memory(world: World) -> None:
    world.remember("The harbour release went out.", occurred_at="2026-02-10")
    later, earlier = equals(world, {"occurred_at": "2026-02-20"}, {"occurred_at": "2026-01-20"})

    def ovens(query: str) -> list[str]:
        return [one for one in order(world, query) if one in (later, earlier)]

    assert ovens("oven repair before the harbour release") == [earlier, later]
    assert ovens("oven repair after the harbour release") == [later, earlier]
    # An event that nobody remembers says nothing.
    assert ovens("oven repair before the moon landing") == [later, earlier]


def test_the_newest_among_equals_comes_first_where_the_latest_is_asked_for(world: World) -> None:
    old, new = equals(world, {"occurred_at": "2025-06-01"}, {"occurred_at": "2026-02-01"})

    assert order(world, "oven repair") == [old, new]
    assert order(world, "latest oven repair") == [new, old]


def test_what_was_useful_before_comes_first_among_equals(world: World) -> None:
    plain, helpful = equals(world, {}, {})
    assert order(world, "oven repair") == [plain, helpful]

    world.call("memory", action="useful", id=helpful)

    assert order(world, "oven repair") == [helpful, plain]
    hits = world.call("search", query="oven repair", explain=True, min_confidence=0)["results"]
    gains = [hit["explain"]["stages"][-1]["score"] / hit["explain"]["stages"][-2]["score"] for hit in hits]
    assert gains == pytest.approx([1.01, 1.0], abs=1e-4)


def test_no_stage_lifts_a_memory_above_a_clearly_better_answer(world: World) -> None:
    right = world.remember("The oven repair is booked for Monday.")
    wrong = world.remember("The oven was bought in Porto.", tags=["oven"], occurred_at="2026-02-18")
    for _ in range(5):
        world.call("memory", action="useful", id=wrong)
        world.call("memory", action="demote", id=right)

    found = order(world, "When is the oven repair booked, latest, last week?", context_topics=["oven"])

    assert found == [right, wrong]


# -- literals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "holder", "similar"),
    [
        ('Which sign says "mind the gap"?', "MIND  THE GAP in red.", "Which sign says the mind, gap"),
        ("What is set in src/app/main.py?", "See src/app/main.py:12.", "What is set in app main py, src"),
        ("What is VESTIGE_HOME for?", "Export VESTIGE_HOME.", "What is home for? vestige is home"),
        ("What is ERR-4021 about?", "Seen: ERR-4021 at noon.", "What is 4021 about? err is 4021"),
        ("What is parseOrderLine for?", "Call parseOrderLine().", "What is parse order line for?"),
    ],
)
def test_what_holds_the_literal_comes_first_although_others_are_more_similar(
    world: World, query: str, holder: str, similar: str
) -> None:
    world.remember(similar)
    memory_id = world.remember(holder)

    hits = world.call("search", query=query, min_confidence=0.9)["results"]

    assert [hit["content"] for hit in hits] == [holder, similar]
    assert hits[0]["matchType"] == "Literal"
    assert hits[0]["semanticScore"] < hits[1]["semanticScore"]
    assert world.find(query, retrieval_mode="precise")[0] == world.get(memory_id)["content"]


def test_a_memory_is_found_by_its_id(filled: World) -> None:
    memory_id = filled.remember("Nothing in this text tells.")

    hits = filled.call("search", query=memory_id)["results"]

    assert (hits[0]["id"], hits[0]["matchType"]) == (memory_id, "Literal")


# -- two times -----------------------------------------------------------------------------------


@pytest.fixture
def revised(world: World) -> World:
    """What was said on 1 March was put right on 3 March; something else came on 5 March."""
    memory_id = world.remember("The oven repair costs ninety euros.")
    world.clock.advance(days=2)
    world.call("memory", action="edit", id=memory_id, content="The oven repair costs eighty euros.")
    world.clock.advance(days=2)
    world.remember("Ovens are cleaned by the night shift.")
    world.clock.advance(days=2)
    return world


def test_what_was_known_before_a_revision_is_the_old_text(revised: World) -> None:
    def known(at: str) -> list[str]:
        return revised.find("oven repair costs", known_at=at, min_confidence=0, record=False)

    assert known("2026-03-02") == ["The oven repair costs ninety euros."]
    assert known("2026-03-04") == ["The oven repair costs eighty euros."]
    assert known("2026-03-06") == [
        "The oven repair costs eighty euros.",
        "Ovens are cleaned by the night shift.",
    ]


def test_before_the_first_memory_nothing_was_known(revised: World) -> None:
    answer = revised.call("search", query="oven repair", known_at="2026-02-28")

    assert (answer["total"], answer["confidence"], answer["abstained"]) == (0, 0.0, False)


def test_what_was_true_and_what_was_known_are_asked_apart_and_together(world: World) -> None:
    memory_id = world.remember("Bruno is on call.", valid_from="2026-02-01", valid_until="2026-02-14")
    world.clock.advance(days=2)
    world.call("memory", action="set_validity", id=memory_id, valid_from="2026-02-01", valid_until=None)

    def found(**times: str) -> int:
        return len(world.find("Bruno call", min_confidence=0, record=False, **times))

    assert found() == 1  # as we know now, it never ended
    assert found(as_of="2026-01-31") == 0  # before the first of it was true
    assert found(as_of="2026-02-20") == 1
    assert found(as_of="2026-02-20", known_at="2026-03-02") == 0  # then we thought it had ended
    assert found(as_of="2026-02-10", known_at="2026-03-02") == 1
    assert found(known_at="2026-03-02") == 0  # true is what was true at the time it was known
    assert found(as_of="2026-02-10", known_at="2026-02-20") == 0  # nobody had told us yet


@pytest.mark.slow
def test_of_two_states_that_both_stand_the_one_told_last_goes_first(
    tmp_path: Path, real_model_dir: Path
) -> None:
    settings: dict[str, Any] = {"embeddings.cache_dir": str(real_model_dir.parent), "offline": True}
    with open_world(tmp_path, provider="local", **settings) as world:
        world.remember("Ruth drinks tea with milk.", force_create=True)
        world.clock.advance(days=1)
        world.remember("Ruth drinks tea without milk.", force_create=True)
        found = world.find("Does Ruth drink tea with milk?", min_confidence=0)
        assert found[0] == "Ruth drinks tea without milk."  # though the older one has more of the question


# -- the same answer -----------------------------------------------------------------------------


def test_the_same_question_gets_the_same_answer(filled: World) -> None:
    asked = {"query": "staging cluster", "explain": True, "record": False, "all": True}
    first = filled.call("search", **asked)
    assert first["total"] > 1
    assert filled.call("search", **asked) == first


def test_the_answer_is_the_same_after_a_restart(tmp_path: Path) -> None:
    asked = {"query": "staging cluster", "explain": True, "record": False, "min_confidence": 0}
    with open_world(tmp_path) as world:
        for text in FACTS:
            world.remember(text)
        first = world.call("search", **asked)
        clock = world.clock
    with open_world(tmp_path, clock=clock) as world:
        assert world.call("search", **asked) == first


def test_while_another_process_writes_elsewhere_the_answer_stays_the_same(tmp_path: Path) -> None:
    asked = {"query": "staging cluster Frankfurt", "scope": "/a", "record": False, "min_confidence": 0}
    with open_world(tmp_path) as here, open_world(tmp_path, clock=here.clock) as there:
        for text in FACTS:
            here.remember(text, scope="/a")
        before = here.call("search", **asked)
        for n in range(10):
            there.remember(f"A cluster of {n} grapes in Frankfurt", scope="/b", thread="t", force_create=True)
            now = here.call("search", **asked)
            assert [hit["id"] for hit in now["results"]] == [hit["id"] for hit in before["results"]]
            assert [hit["content"] for hit in now["results"]] == [hit["content"] for hit in before["results"]]


def test_each_process_sees_what_the_other_wrote(tmp_path: Path) -> None:
    with open_world(tmp_path) as here, open_world(tmp_path, clock=here.clock) as there:
        here.remember("The staging cluster lives in Frankfurt.")
        assert there.find("staging cluster") == ["The staging cluster lives in Frankfurt."]
        memory_id = there.remember("Grapes grow in clusters.")
        assert "Grapes grow in clusters." in here.find("grapes", min_confidence=0)
        here.call("memory", action="delete", id=memory_id)
        assert "Grapes grow in clusters." not in there.find("grapes", min_confidence=0)


def test_a_hit_says_which_arms_found_it(filled: World) -> None:
    """Every candidate has a cosine; only what the dense arm found is a match by meaning."""
    both = filled.call("search", query="staging cluster", min_confidence=0)["results"][0]
    meant = filled.call("search", query="Frankfurtian", min_confidence=0)["results"][0]
    literal = filled.call("search", query='"staging cluster"', min_confidence=0)["results"][0]

    assert (both["matchType"], meant["matchType"], literal["matchType"]) == ("Both", "Semantic", "Literal")

"""How much a text matters: `importance_score`, and what `smart_ingest` makes of it."""

from pathlib import Path

import pytest

from testbed.world import World, open_world
from vestige.cognition.prediction.importance import WEIGHTS
from vestige.core.events import ImportanceScored
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.engine.ingest.importance import encodings
from vestige.operations.registry.groups import registry

PLAIN = "The ferry leaves at noon."
ROUSING = "The harbour burned down and we are devastated: what a horrible disaster!"


def scored(world: World) -> list[ImportanceScored]:
    return [one for one in world.heard if isinstance(one, ImportanceScored)]


def test_every_field_of_the_judgement_follows_from_the_four_signals(world: World) -> None:
    world.remember(PLAIN)
    answer = world.call("importance_score", content=ROUSING)
    composite = sum(WEIGHTS[name] * value for name, value in answer["channels"].items())
    assert answer["composite"] == pytest.approx(composite, abs=1e-3)
    assert answer["encodingBoost"] == pytest.approx(1 + (composite - 0.5) * 0.6, abs=1e-3)
    assert answer["consolidationPriority"] == "High"
    assert answer["weightsUsed"] == WEIGHTS
    assert answer["dominantSignal"] == "arousal"
    assert answer["emotion"] == {
        "valence": pytest.approx(-0.84, abs=0.1),
        "arousal": 1.0,
        "category": "frustration",
        "flashbulb": True,
    }
    assert "disaster" in answer["explanations"]["arousal"]
    assert "worth remembering" in answer["summary"]


def test_a_plain_text_is_nothing_out_of_the_ordinary(world: World) -> None:
    answer = world.call("importance_score", content=PLAIN)
    assert answer["composite"] < 0.5
    assert answer["consolidationPriority"] == "Normal"
    assert answer["explanations"] == {
        "novelty": "No similar memory is known here.",
        "arousal": "No emotional word or sign.",
        "reward": "No ratings of similar memories are known.",
        "attention": "No recent searches.",
    }


def test_judging_stores_nothing_and_tells_the_bus(world: World) -> None:
    world.call("importance_score", content=ROUSING)
    assert world.call("memory", action="list")["total"] == 0
    assert world.app.engine.store.log(access=Access()) == []
    [told] = scored(world)
    assert told.memory_id is None
    assert told.composite_score > 0.6


def test_the_reward_names_the_memories_it_was_read_from(world: World) -> None:
    known = world.remember("The ferry to the harbour leaves at noon.")
    world.call("memory", action="promote", id=known)
    told = world.call("importance_score", content="The ferry to the harbour leaves at nine.")
    assert known in told["explanations"]["reward"]
    assert told["channels"]["reward"] > 0.5


def test_topics_count_as_if_they_had_just_been_asked_for(world: World) -> None:
    without = world.call("importance_score", content=PLAIN)["channels"]["attention"]
    on_topic, off_topic = (
        world.call("importance_score", content=PLAIN, context_topics=[topic])["channels"]["attention"]
        for topic in ("ferries", "payroll")
    )
    assert off_topic < without < on_topic


def test_what_is_known_elsewhere_is_new_here(world: World) -> None:
    world.remember(PLAIN, scope="/project/harbour")
    here, there = (
        world.call("importance_score", content=PLAIN, project=name) for name in ("town", "harbour")
    )
    assert here["channels"]["novelty"] == 1.0
    assert there["channels"]["novelty"] < 0.1
    assert there["scope"] == "/project/harbour"


def test_a_caller_learns_nothing_of_scopes_out_of_reach(world: World) -> None:
    world.remember(PLAIN, scope="/secret")
    operation = registry.operations["importance_score"]
    limited = Call(engine=world.app.engine, access=Access(scopes=("/open",)), scope="/open")
    answer = operation.call(limited, {"content": PLAIN, "scope": "/"})
    assert answer["channels"]["novelty"] == 1.0


def test_a_suppressed_memory_does_not_show_itself_by_making_a_text_less_new(world: World) -> None:
    memory_id = world.remember(PLAIN)
    assert world.call("importance_score", content=PLAIN)["channels"]["novelty"] < 0.1
    world.call("suppress", id=memory_id)
    assert world.call("importance_score", content=PLAIN)["channels"]["novelty"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"content": " "}, "empty"),
        ({"content": "x\0y"}, "NUL"),
        ({"content": PLAIN, "project": "a", "scope": "/b"}, "both"),
        ({"content": PLAIN, "project": "../up"}, "plain name"),
        ({"content": PLAIN, "context_topics": ["x"] * 2 + [f"t{n}" for n in range(60)]}, "context"),
    ],
)
def test_bad_arguments_are_refused_with_a_reason(
    world: World, arguments: dict[str, object], said: str
) -> None:
    error = world.refused("importance_score", **arguments)
    assert said in str(error)
    assert scored(world) == []


# -- at ingest -----------------------------------------------------------------------------------


def test_the_answer_to_every_text_says_how_much_it_matters(world: World) -> None:
    one = world.call("smart_ingest", content=PLAIN)
    many = world.call("smart_ingest", items=[{"content": ROUSING}, {"content": PLAIN}])["results"]
    assert many[0]["importanceScore"] > 0.6 > one["importanceScore"]
    assert many[1]["decision"] == "reinforce"
    assert many[1]["importanceScore"] < one["importanceScore"]


def test_what_matters_is_marked_and_told_once_it_is_written(world: World) -> None:
    plain, rousing = world.remember(PLAIN), world.remember(ROUSING)
    call = Call(engine=world.app.engine)
    kept = encodings(call, [plain, rousing])
    assert list(kept) == [rousing]
    [told] = scored(world)
    assert told.memory_id == rousing
    assert told.composite_score == kept[rousing].composite
    assert world.get(rousing)["stability"] == pytest.approx(
        world.get(plain)["stability"] * kept[rousing].boost, rel=1e-3
    )


def test_telling_the_same_again_marks_it_no_further(world: World) -> None:
    memory_id = world.remember(ROUSING)
    world.remember(ROUSING)
    assert len(scored(world)) == 1
    log = world.app.engine.store.log(access=Access(), memory_id=memory_id)
    assert [event.payload.get("evidence") for event in log].count("important") == 1


def test_a_turn_of_a_thread_is_never_a_flashbulb(world: World) -> None:
    memory_id = world.remember(ROUSING, thread="talk", position=1)
    kept = encodings(Call(engine=world.app.engine), [memory_id])[memory_id]
    assert kept.novelty == 0.5
    assert not kept.flashbulb


@pytest.mark.parametrize("how", [{"force_create": True}, {"content": f"Wow! {ROUSING}"}])
def test_what_the_gate_does_not_compare_is_compared_when_it_rouses(
    world: World, how: dict[str, object]
) -> None:
    world.remember(ROUSING)
    told = {"content": ROUSING, **how}
    memory_id = str(world.call("smart_ingest", **told)["nodeId"])
    kept = encodings(Call(engine=world.app.engine), [memory_id])[memory_id]
    assert kept.novelty < 0.5


def test_without_a_model_texts_are_compared_by_their_words(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off") as world:
        first = world.remember(ROUSING)
        second = world.remember(ROUSING.replace("harbour", "shipyard"))
        kept = encodings(Call(engine=world.app.engine), [first, second])
        assert kept[first].flashbulb
        assert kept[second].novelty < 0.3
        assert world.call("importance_score", content=PLAIN)["channels"]["novelty"] == 1.0


def test_the_judgement_is_told_only_where_the_memory_is_in_reach(world: World) -> None:
    memory_id = world.remember(ROUSING, scope="/secret")
    limited = Call(engine=world.app.engine, access=Access(scopes=("/open",)), scope="/open")
    assert encodings(limited, [memory_id]) == {}

"""The benchmarks of a simulated year and of each mechanism run, tiny. Their numbers are not judged here."""

import json
from pathlib import Path

import pytest

from benchmarks import mechanisms
from benchmarks.simulate import run as simulating
from benchmarks.simulate.embedding import local_model
from benchmarks.simulate.run import compared, interval
from benchmarks.simulate.story import Ask, Tell, Truth, tell_story


def test_a_story_is_made_from_its_seed_alone() -> None:
    assert tell_story(3, 20).days == tell_story(3, 20).days
    assert tell_story(3, 20).days != tell_story(4, 20).days


def test_a_new_value_makes_everything_said_of_the_old_one_stale() -> None:
    truth, slot = Truth(), ("Falcon", "port")
    for key, value in (("a", "1"), ("b", "1"), ("c", "2")):
        truth.learn(0, Tell(key=key, text=key, service="Falcon", slot=slot), value)
    assert truth.stale == {"a", "b"}
    assert truth.holding("Falcon", 0) == {"c"}


def test_a_remark_is_news_for_a_month() -> None:
    truth = Truth()
    truth.learn(0, Tell(key="a", text="a", service="Falcon", slot=None), None)
    assert truth.holding("Falcon", 30) == {"a"}
    assert truth.holding("Falcon", 31) == set()


def test_every_fact_of_a_story_can_be_asked_for() -> None:
    story = tell_story(1, 70)
    told = {step.slot for day in story.days for step in day if isinstance(step, Tell) and step.slot}
    asked = {
        (step.service, step.attribute)
        for day in story.days
        for step in day
        if isinstance(step, Ask) and step.attribute
    }
    assert asked <= told


def test_an_interval_holds_the_mean_and_narrows_with_more_questions() -> None:
    few, many = interval([0.0, 1.0] * 5), interval([0.0, 1.0] * 500)
    assert few[0] <= 0.5 <= few[1]
    assert many[1] - many[0] < few[1] - few[0]
    assert compared({"m": {(1, "q"): 1.0}}, {"m": {(1, "q"): 0.25}}, "m") == [0.75]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_short_life_is_lived_in_every_arm_and_examined(
    real_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_CACHE_DIR", str(real_model_dir.parent))
    arms = (simulating.WHOLE, simulating.NO_DECAY, simulating.ABLATIONS[0])
    model = local_model()
    outcomes = [simulating.live(1, arm, 8, model) for arm in arms]

    assert [one.arm for one in outcomes] == ["ours", "without decay", "without spreading"]
    last = outcomes[0].examinations[-1]
    assert last.day == 8
    assert sum(last.states.values()) > 20
    assert {"precision@5", "old recall@10"} <= {name for one in last.answers for name in one.scores}
    assert set(outcomes[0].baselines) == {"no memory", "random", "BM25"}


@pytest.mark.slow
@pytest.mark.nightly
def test_a_conversation_is_asked_with_each_mechanism_off_and_after_dreams(
    tmp_path: Path, real_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_CACHE_DIR", str(real_model_dir.parent))
    said = [
        ("Ada", f"I bought {thing} for the {room}.")
        for thing in ("a lamp", "a rug", "a chair")
        for room in ("hall", "attic")
    ]
    talk = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bob",
            "session_1": [
                {"dia_id": f"D1:{n}", "speaker": who, "text": text} for n, (who, text) in enumerate(said, 1)
            ],
        },
        "qa": [{"question": "What did Ada buy for the attic?", "evidence": ["D1:2"], "category": 1}],
    }
    (tmp_path / "locomo.json").write_text(json.dumps([talk]), encoding="utf-8")

    report = mechanisms.run(data=tmp_path, most=0)

    arms = [row["arm"] for row in report.tables["Recall@10"]]
    assert arms[0] == "ours"
    assert len(arms) == len(mechanisms.SWITCHES) + 3
    assert all(row["all"] == 1.0 for row in report.tables["Recall@10"])

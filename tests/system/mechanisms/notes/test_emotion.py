"""What is both new and rousing is kept like a photograph."""

from typing import Any

from tests.system.mechanisms.conftest import Living

KNOWN = ("The staging cluster has four nodes.", "Ada plays the flute on Fridays.")
FLASH = "The harbour burned down and we are devastated: what a horrible disaster!"


def encoded(living: Living, text: str, scope: str = "/", **settings: bool) -> dict[str, Any]:
    """What `memory get` says of a text told where other things are known, after a restart."""
    world = living.restart(**settings)
    for known in KNOWN:
        world.remember(known, scope=scope)
    memory_id = world.remember(text, scope=scope)
    return living.restart(**settings).call("memory", action="get", id=memory_id)


def test_a_flashbulb_is_encoded_more_strongly_than_importance_alone_would_after_a_restart(
    living: Living,
) -> None:
    kept = encoded(living, FLASH)
    judged = kept["importance"]
    assert judged["flashbulb"]
    assert judged["category"] == "frustration"
    assert judged["valence"] < -0.5
    plain = living.world.get(living.world.remember("The ferry leaves at noon."))
    by_importance = 1 + (judged["composite"] - 0.5) * 0.6
    assert kept["node"]["stability"] > plain["stability"] * by_importance * 1.15


def test_without_the_mechanism_there_is_no_flashbulb(living: Living) -> None:
    kept = encoded(living, FLASH, "/off", mechanisms__emotion=False)
    assert not kept["importance"]["flashbulb"]
    assert kept["importance"].get("category") is None
    felt = encoded(living, FLASH, "/on")
    assert felt["node"]["stability"] > kept["node"]["stability"] * 1.15


def test_what_rouses_but_is_known_is_no_flashbulb(living: Living) -> None:
    encoded(living, "The harbour burned down and it was a horrible disaster.")
    assert not living.world.call("importance_score", content=FLASH)["emotion"]["flashbulb"]


def test_a_flashbulb_is_kept_after_the_memory_fades_and_goes_with_it(living: Living) -> None:
    memory_id = encoded(living, FLASH)["node"]["id"]
    living.clock.advance(days=400)
    world = living.restart()
    assert world.call("memory", action="get", id=memory_id)["importance"]["flashbulb"]
    world.call("memory", action="delete", id=memory_id)
    assert living.restart().refused("memory", action="get", id=memory_id)["code"] == "not_found"

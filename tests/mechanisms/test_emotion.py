"""What is both new and rousing is kept like a photograph."""

from tests.mechanisms.conftest import Living
from vestige.engine.context import Call
from vestige.engine.importance import encodings

KNOWN = ("The staging cluster has four nodes.", "Ada plays the flute on Fridays.")
FLASH = "The harbour burned down and we are devastated: what a horrible disaster!"


def encoded(living: Living, text: str, scope: str = "/", **settings: bool) -> tuple[str, float]:
    """The id and the stability of a text told where other things are known, after a restart."""
    world = living.restart(**settings)
    for known in KNOWN:
        world.remember(known, scope=scope)
    memory_id = world.remember(text, scope=scope)
    return memory_id, float(living.restart(**settings).get(memory_id)["stability"])


def test_a_flashbulb_is_encoded_more_strongly_than_importance_alone_would_after_a_restart(
    living: Living,
) -> None:
    memory_id, stability = encoded(living, FLASH)
    kept = encodings(Call(engine=living.world.app.engine), [memory_id])[memory_id]
    assert kept.flashbulb
    assert kept.category == "frustration"
    assert kept.valence is not None
    assert kept.valence < -0.5
    plain = float(living.world.get(living.world.remember("The ferry leaves at noon."))["stability"])
    by_importance = 1 + (kept.composite - 0.5) * 0.6
    assert stability > plain * by_importance * 1.15


def test_without_the_mechanism_there_is_no_flashbulb(living: Living) -> None:
    memory_id, stability = encoded(living, FLASH, "/off", mechanisms__emotion=False)
    kept = encodings(Call(engine=living.world.app.engine), [memory_id])[memory_id]
    assert not kept.flashbulb
    assert kept.category is None
    assert encoded(living, FLASH, "/on")[1] > stability * 1.15


def test_what_rouses_but_is_known_is_no_flashbulb(living: Living) -> None:
    encoded(living, "The harbour burned down and it was a horrible disaster.")
    assert not living.world.call("importance_score", content=FLASH)["emotion"]["flashbulb"]


def test_a_flashbulb_is_kept_after_the_memory_fades_and_goes_with_it(living: Living) -> None:
    memory_id, _ = encoded(living, FLASH)
    living.clock.advance(days=400)
    world = living.restart()
    assert memory_id in encodings(Call(engine=world.app.engine), [memory_id])
    world.call("memory", action="delete", id=memory_id)
    assert encodings(Call(engine=living.restart().app.engine), [memory_id]) == {}

"""What matters when it is written is forgotten more slowly."""

from testbed.world import World
from tests.system.mechanisms.conftest import Living
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

PLAIN = "The staging cluster has four nodes in the northern region."
IMPORTANT = "Never delete the staging volume: that mistake was a disaster for everybody."
YEAR = 365


def retentions_after_a_year(living: Living, **settings: bool) -> tuple[float, float]:
    """The retention of the important and of the plain note a year and a restart later."""
    world = living.restart(**settings)
    ids = [world.remember(text) for text in (IMPORTANT, PLAIN)]
    living.clock.advance(days=YEAR)
    later = living.restart(**settings)
    important, plain = (float(later.get(memory_id)["retentionStrength"]) for memory_id in ids)
    return important, plain


def test_an_important_note_fades_more_slowly_than_a_plain_one_after_a_restart(living: Living) -> None:
    important, plain = retentions_after_a_year(living)
    assert important > plain + 0.005


def test_the_log_alone_gives_an_important_note_its_strength_again(living: Living) -> None:
    memory_id = living.world.remember(IMPORTANT)
    before = living.world.get(memory_id)
    world = living.restart()
    registry.operations["rebuild"].call(Call(engine=world.app.engine), {})
    assert world.get(memory_id) == before


def test_without_the_mechanisms_both_fade_alike(living: Living) -> None:
    important, plain = retentions_after_a_year(
        living, mechanisms__importance=False, mechanisms__emotion=False
    )
    assert important == plain


def test_the_switch_of_importance_alone_decides_where_nothing_is_a_flashbulb(living: Living) -> None:
    text = "The auditors have an important deadline."
    off = living.restart(mechanisms__importance=False)
    without = off.get(off.remember(text, scope="/off"))["stability"]
    assert without == off.get(off.remember(PLAIN))["stability"]
    on = living.restart(mechanisms__emotion=False)
    assert on.get(on.remember(text, scope="/on"))["stability"] > without


def test_what_was_asked_for_lately_matters_more(living: Living) -> None:
    text = "The archive of the ledger moved to Lisbon."
    world = living.world
    for unrelated in (PLAIN, "Ada plays the flute on Fridays."):
        world.remember(unrelated)
    before = channels(world, text)["attention"]
    world.find("where is the archive of the ledger?")
    world.app.settle()
    assert channels(living.restart(), text)["attention"] > before


def test_what_is_like_a_memory_that_helped_matters_more(living: Living) -> None:
    text = "The ledger archive is closed on public holidays."
    world = living.world
    known = world.remember("The ledger archive is closed on Sundays.")
    before = channels(world, text)["reward"]
    world.call("memory", action="promote", id=known)
    liked = channels(living.restart(), text)["reward"]
    for _ in range(3):
        living.world.call("memory", action="demote", id=known)
    assert channels(living.restart(), text)["reward"] < before < liked


def test_what_is_known_is_less_new(living: Living) -> None:
    text = "The ledger archive is closed on public holidays."
    world = living.world
    world.remember(PLAIN)
    before = channels(world, text)["novelty"]
    world.remember("The ledger archive is closed on Sundays.")
    assert channels(living.restart(), text)["novelty"] < before


def channels(world: World, text: str) -> dict[str, float]:
    """The four signals for a text."""
    found: dict[str, float] = world.call("importance_score", content=text)["channels"]
    return found

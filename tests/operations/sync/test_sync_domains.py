"""Domains that were found stay with the installation that found them; those made by hand are synchronised."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from tests.conftest import BACKENDS, POSTGRES, store_of
from tests.engine.domains.corpus import LIMITS, TOPICS, membership, notes, store_all
from tests.operations.sync.test_sync import Machine, sync, whole
from vestige.store.contract.memberships import is_found
from vestige.store.merge.portable_part import portable_parts

Pair = tuple[World, World]


@pytest.fixture(params=[*BACKENDS, POSTGRES])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as running:
        laptop, desktop = (
            running.enter_context(
                open_world(
                    tmp_path / name,
                    clock=Machine(number),
                    **running.enter_context(store_of(request)),
                    **LIMITS,
                )
            )
            for number, name in enumerate(("laptop", "desktop"), 1)
        )
        yield laptop, desktop


def domains(world: World) -> dict[str, str]:
    """The labels of the domains by id."""
    listed: list[dict[str, Any]] = world.call("domains", action="list")["domains"]
    return {one["id"]: one["label"] for one in listed}


def found_part(world: World) -> dict[str, tuple[str, ...]]:
    return {name: tuple(filter(is_found, several)) for name, several in membership(world).items()}


def hand_part(world: World) -> dict[str, tuple[str, ...]]:
    several = {
        name: tuple(one for one in held if not is_found(one)) for name, held in membership(world).items()
    }
    return {name: held for name, held in several.items() if held}


def meet(pair: Pair, folder: Path) -> None:
    for world in (*pair, *pair):
        sync(world, folder)


def both_discovered(pair: Pair, folder: Path) -> list[str]:
    """Two installations with the same memories that have each found domains of their own; the shared ids."""
    laptop, desktop = pair
    shared = [name for topic in TOPICS for name in store_all(laptop, notes(topic))]
    meet(pair, folder)
    for topic in TOPICS:  # so that the domains of the two have other members, and so other ids
        store_all(desktop, notes(topic, 3, seed=5))
    for world in pair:
        assert world.call("domains", action="discover")["applied"] is True
    assert domains(laptop).keys().isdisjoint(one for one in domains(desktop) if is_found(one))
    return shared


def test_each_installation_keeps_what_it_found_and_both_have_what_was_made_by_hand(
    pair: Pair, tmp_path: Path
) -> None:
    laptop, desktop = pair
    first, *others, last = both_discovered(pair, tmp_path / "shared")
    for world, label, member in ((laptop, "House", first), (desktop, "Work", last)):
        world.clock.advance(hours=1)
        world.call("domains", action="create", label=label)
        world.call("domains", action="assign", domain=label, ids=[member])
    labels, before = [domains(world) for world in pair], [found_part(world) for world in pair]

    meet(pair, tmp_path / "shared")

    for world, had, member_of in zip(pair, labels, before, strict=True):
        assert domains(world) == had | {"house": "House", "work": "Work"}
        assert found_part(world).items() >= member_of.items()
        assert hand_part(world) == {first: ("house",), last: ("work",)}
        assert {name for one in found_part(world).values() for name in one} <= had.keys()
        assert all(found_part(world)[name] for name in others)
    assert membership(laptop).keys() == membership(desktop).keys()

    settled = [whole(world) for world in pair]
    assert list(portable_parts(settled[0])) == list(portable_parts(settled[1]))
    files = {path.name: path.read_bytes() for path in (tmp_path / "shared").iterdir()}
    meet(pair, tmp_path / "shared")
    assert [whole(world) for world in pair] == settled
    assert {path.name: path.read_bytes() for path in (tmp_path / "shared").iterdir()} == files


def test_a_discovery_undoes_no_assignment_by_hand_that_it_does_not_know(pair: Pair, tmp_path: Path) -> None:
    laptop, desktop = pair
    shared = [name for topic in TOPICS for name in store_all(laptop, notes(topic))]
    meet(pair, tmp_path / "shared")
    laptop.call("domains", action="create", label="House")
    laptop.call("domains", action="assign", domain="House", ids=shared[:1])
    desktop.clock.advance(hours=9)
    desktop.call("domains", action="discover")
    found = found_part(desktop)
    desktop.call("memory", action="tag", id=shared[1], add=["late"])

    meet(pair, tmp_path / "shared")

    assert hand_part(laptop) == hand_part(desktop) == {shared[0]: ("house",)}
    assert found_part(desktop) == found
    assert found[shared[0]]
    assert laptop.get(shared[1])["tags"] == ["late"]


def test_taking_a_memory_out_of_a_domain_made_by_hand_travels_too(pair: Pair, tmp_path: Path) -> None:
    laptop, desktop = pair
    first, *_ = both_discovered(pair, tmp_path / "shared")
    laptop.call("domains", action="create", label="House")
    laptop.call("domains", action="assign", domain="House", ids=[first])
    meet(pair, tmp_path / "shared")
    before = found_part(laptop)
    desktop.call("domains", action="unassign", domain="House", ids=[first])
    meet(pair, tmp_path / "shared")
    assert hand_part(laptop) == hand_part(desktop) == {}
    assert found_part(laptop) == before


def test_a_memory_put_by_hand_into_a_found_domain_stays_free_elsewhere(pair: Pair, tmp_path: Path) -> None:
    laptop, desktop = pair
    first, *_, last = both_discovered(pair, tmp_path / "shared")
    (other,) = found_part(laptop)[last]
    laptop.call("domains", action="assign", domain=other, ids=[first])
    before = membership(desktop)
    meet(pair, tmp_path / "shared")
    assert other in membership(laptop)[first]
    assert membership(desktop).items() >= before.items()
    assert desktop.call("domains", action="discover")["memories"] == len(before)

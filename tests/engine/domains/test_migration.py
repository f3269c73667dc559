"""Domains after a migration to a server: the same ids, labels and members, and new memories find them."""

from pathlib import Path

import pytest

from testbed.postgres_server import Server
from testbed.world import World, on_postgres, open_world
from tests.engine.domains.corpus import LIMITS, discovered, domain_of, membership, notes, store_all
from tests.store.support.transfer_ends import in_file, on_server, quietly
from vestige.store.transfer.move import move


def proposed(world: World) -> list[str]:
    return [one["id"] for one in world.call("domains", action="proposals")["proposals"]]


@pytest.mark.slow
def test_domains_are_the_same_after_a_migration_to_a_server(tmp_path: Path, postgres_server: Server) -> None:
    with open_world(tmp_path / "data", **{"storage.backend": "sqlite", **LIMITS}) as world:
        dev, infra, _ = discovered(world)
        world.call("domains", action="rename", domain=dev, label="Programs")
        world.call("domains", action="create", label="Garden")
        world.call("domains", action="merge", domain=infra, other="garden")
        store_all(world, [f"violin cello sonata quartet opera concerto note{at}" for at in range(15)])
        for _ in range(2):
            world.call("domains", action="discover")
        before, waiting = membership(world), proposed(world)
        assert waiting
        listed, clock = world.call("domains", action="list"), world.clock
    url = postgres_server.new_database()
    assert move(in_file(tmp_path / "data" / "vestige.db"), on_server(url), quietly).is_whole
    place = on_postgres(url) | {"storage.postgres.schema": on_server(url).place.schema}
    with open_world(tmp_path / "moved", clock=clock, **place, **LIMITS) as world:
        assert membership(world) == before
        assert world.call("domains", action="list") == listed
        assert proposed(world) == waiting
        assert domain_of(world, world.remember(notes("dev", 1, seed=4)[0])) == [dev]
        assert world.call("domains", action="accept", proposal=waiting[0])["moved"] == 15
    postgres_server.drop(url)

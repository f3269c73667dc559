"""Many who delete at the same moment take turns: nobody is refused because others were before him."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World

CLIENTS = 16


def test_clients_that_delete_different_memories_at_once_all_succeed(world: World) -> None:
    ids = [world.remember(f"Drawer {n} holds {n} spoons.", force_create=True) for n in range(CLIENTS)]
    together = Barrier(CLIENTS)

    def delete(memory_id: str) -> bool:
        together.wait(PATIENCE_SECONDS)
        return bool(world.call("memory", action="delete", id=memory_id)["success"])

    with ThreadPoolExecutor(CLIENTS) as clients:
        assert all(clients.map(delete, ids))
    assert world.call("system_status")["totalMemories"] == 0

"""A purge that arrives through a folder takes the words of what is gone out of what was learned, as a purge
that is made here does."""

import gzip
from pathlib import Path

from testbed.world import World
from tests.operations.sync import test_sync
from tests.operations.sync.test_sync import round_of, sync, whole
from vestige.core.models import EVERYTHING
from vestige.engine.exchange.sync import SUFFIX

machines = test_sync.machines
folder = test_sync.folder

WORD = "xylophon"
"""As it is kept in what is learned, and in the text."""
QUERY = "xylophone diagnosis patient private"


def learn(world: World, times: int = 3) -> None:
    """Search for it, so that what is learned from searches holds the word."""
    for _ in range(times):
        world.clock.advance(hours=1)
        world.call("search", query=QUERY)
        world.app.settle()


def a_private_memory(world: World) -> str:
    for room in range(3):
        world.remember(f"The patient in room {room} has a private doctor and a diagnosis")
    return world.remember("The patient xylophone diagnosis is private")


def purge(world: World, memory_id: str) -> None:
    world.clock.advance(hours=1)
    world.call("memory", action="delete", id=memory_id)
    world.app.settle()


def holding(*folders: Path) -> list[str]:
    """The files that hold the word."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if WORD.encode() in _bytes(path).lower()]


def _bytes(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def test_the_words_of_what_another_machine_purged_are_in_no_file(
    machines: tuple[World, World], folder: Path, tmp_path: Path
) -> None:
    laptop, desktop = machines
    memory_id = a_private_memory(laptop)
    learn(laptop)
    round_of(machines, folder)
    desktop.clock.advance(days=1)
    learn(desktop)  # after the laptop's last word on it: what the desktop learned is what holds
    assert holding(tmp_path / "desktop")

    purge(laptop, memory_id)
    round_of(machines, folder)
    assert holding(tmp_path) == []


def test_a_machine_that_has_not_heard_of_the_purge_does_not_bring_the_words_back(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    memory_id = a_private_memory(laptop)
    round_of(machines, folder)
    desktop.clock.advance(days=30)
    learn(desktop)
    sync(desktop, folder)

    purge(laptop, memory_id)
    own = folder / sync(laptop, folder)["file"]
    assert holding(folder) == [f"{desktop.app.engine.store.node}{SUFFIX}"]
    assert WORD.encode() not in _bytes(own)
    assert WORD not in repr(whole(laptop))


def test_a_word_that_another_memory_has_stays_learned(machines: tuple[World, World], folder: Path) -> None:
    laptop, desktop = machines
    memory_id = a_private_memory(laptop)
    round_of(machines, folder)
    learn(desktop)
    purge(laptop, memory_id)
    round_of(machines, folder)
    learned = desktop.app.engine.store.documents("pattern", access=EVERYTHING, limit=99)
    terms = {term for document in learned for term in document.body["terms"]}
    assert "patient" in terms
    assert WORD not in terms

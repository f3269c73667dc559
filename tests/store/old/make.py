"""Makes a small database with the Vestige of another checkout, for keeping here when a schema is released.

    git archive TAG | tar -x -C CHECKOUT
    PYTHONPATH=CHECKOUT/src:CHECKOUT python tests/store/old/make.py schemaN.db.gz

What that version cannot do yet is left out.
"""

import gzip
import sys
import tempfile
from pathlib import Path
from typing import Any

from testbed.world import HandClock, World, open_world
from vestige.operations.registry.groups import registry


class Story:
    """A few days in the life of a store."""

    def __init__(self, world: World) -> None:
        self.world = world

    def do(self, operation: str, **arguments: Any) -> None:
        """Run an operation if this version has it; an hour passes."""
        self.world.clock.advance(hours=1)
        if operation in registry.operations:
            self.world.app.run(registry.operations[operation], arguments, lambda *_: None)

    def tell(self, content: str, **arguments: Any) -> str:
        """Remember a text; an hour passes."""
        self.world.clock.advance(hours=1)
        return self.world.remember(content, **arguments)


def live(story: Story) -> None:
    """Everything that leaves something in a table."""
    story.tell("The old kiln was sold to a school.", scope="/attic")
    story.world.clock.advance(days=400)
    story.do("gc", scope="/attic", min_retention=0.5, dry_run=False, even_most=True)
    talk = {"thread": "standup", "source": "chat", "tags": ["talk"]}
    for position, said in enumerate(
        ("Ada: Where does the granite come from?", "Ben: From the quarry in Aswan.", "Ada: Thank you, Ben.")
    ):
        story.tell(said, position=position, **talk)
    door = story.tell("The door of the workshop opens inwards.", tags=["house"])
    database = story.tell("Harbour runs on PostgreSQL 14.", idempotency_key="harbour")
    story.tell("Correction: Harbour now runs on PostgreSQL 16.")
    paint = story.tell(
        "The cobalt paint is on the upper shelf.", tags=["paint", "store"], scope="/project/art"
    )
    rumour = story.tell("A rumour about the basalt that nobody should hear.")
    tea = story.tell("Tea is in the kitchen cupboard.")
    secret = story.tell("The xylophone belongs to somebody who asked us to forget it.")
    story.do("memory.edit", id=door, content="The door of the workshop opens outwards.")
    story.do("memory.edit", id=paint, content="The cobalt paint is on the lower shelf.")
    story.do("memory.tag", id=tea, add=["kitchen"], remove=[])
    story.do("memory.pin", id=door)
    story.do("memory.promote", id=database)
    story.do("memory.demote", id=rumour)
    story.do("mark_reviewed", id=tea, rating=3)
    story.do("search", query="where is the paint", limit=3)
    story.do("memory.link", id=paint, target=tea, type="part_of")
    story.do("memory.unlink", id=paint, target=tea)
    story.do("memory.link", id=tea, target=door, type="part_of")
    story.do("suppress", id=rumour, reason="hearsay")
    story.do("intention.set", description="Order more cobalt paint on Monday.")
    story.do("predict", limit=3)
    story.do("memory.delete", id=secret)
    story.do("consolidate")
    story.do("dream", memory_count=5)


def main(target: Path) -> None:
    """Live the story and keep the file."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with open_world(data, clock=HandClock()) as world:
            live(Story(world))
        kept = gzip.compress((data / "vestige.db").read_bytes(), mtime=0)
    target.write_bytes(kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

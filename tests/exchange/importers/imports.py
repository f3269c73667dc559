"""Helpers of the tests that import files of other programs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.world import World
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

DATA = Path(__file__).parent / "data"
"""Files that the other programs made; its README.md says how."""
LATER = datetime(2027, 1, 1, tzinfo=UTC)
"""A time after all of these files were made."""
IN_MEMORY: dict[str, Any] = {"storage.backend": "memory"}


def imported(world: World, path: Path, **arguments: Any) -> dict[str, Any]:
    """Import as the user at the command line does."""
    operation = registry.operations["import"]
    return operation.call(Call(engine=world.app.engine, local=True), {"path": str(path), **arguments})


def nodes(world: World) -> dict[str, dict[str, Any]]:
    """Every memory in full, by its text."""
    listed = world.call("memory", action="list", limit=100)["results"]
    return {node["content"]: world.get(node["id"]) for node in listed}


def reasons(done: dict[str, Any]) -> dict[tuple[str, str], int]:
    """The number of records that were left, by their kind and the reason."""
    return {(one["kind"], one["what"]): one["count"] for one in done["reasons"]}

"""The project that the examples of `project` are about."""

from pathlib import Path

from testbed.world import World
from vestige.engine.context import Call
from vestige.engine.exchange.export import export_portable
from vestige.engine.project.memory.portable_copy import memories_of
from vestige.engine.project.place import new_project
from vestige.engine.project.refresh import refresh

SOURCE = '''"""Greetings in several languages."""


def greeting(name: str) -> str:
    """A greeting for one person."""
    return f"Hello, {name}!"
'''


def project_example(world: World, folder: Path) -> None:
    """A small project with an index, and a snapshot of its memory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "greetings.py").write_text(SOURCE, encoding="utf-8")
    call = Call(engine=world.app.engine, local=True)
    project = new_project(call, str(folder))
    refresh(call, project)
    exports = folder.parent / "exports"
    exports.mkdir(exist_ok=True)
    file = str(exports / "project.vestige.jsonl")
    export_portable(call, memories_of(project.scope), name=file, vectors=False)

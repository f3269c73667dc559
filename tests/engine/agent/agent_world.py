"""A world with an agent's files in it."""

from datetime import timedelta
from pathlib import Path

from testbed.world import World
from vestige.core.models import EVERYTHING, Memory
from vestige.engine.agent.files import AgentFiles, agent_files
from vestige.engine.context import Call
from vestige.store.contract.changes import Add


def files_of(world: World) -> AgentFiles:
    """The files of the agent, all of which are in the folder of the test."""
    found = agent_files(world.app.engine.settings)
    assert Path(world.app.engine.settings.data_dir) in found.folder.parents
    return found


def call_of(world: World) -> Call:
    return Call(engine=world.app.engine)


def planted(world: World, text: str) -> str:
    """A memory as an earlier version stored it: past every check of new texts, and long ago."""
    at = world.clock.now - timedelta(days=2)
    memory = Memory(id=world.clock.new_id(), content=text, created_at=at, updated_at=at)
    world.app.engine.store.commit([Add(memory=memory)], access=EVERYTHING)
    return memory.id


def new_agent(world: World) -> AgentFiles:
    world.call("agent", action="init")
    return files_of(world)

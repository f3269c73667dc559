"""A store that has everything the examples of operations are about. Tests plant it once, then copy it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.world import HandClock, World, open_world
from tests.transports.parity.domain_examples import domain_examples
from tests.transports.parity.intention_examples import intention_example
from tests.transports.parity.key_examples import key_example
from tests.transports.parity.merge_examples import merge_examples
from tests.transports.parity.project_examples import project_example
from tests.transports.parity.review_examples import review_examples
from vestige.core.models import EVERYTHING, Memory
from vestige.core.transcripts import Entry, SessionFacts
from vestige.engine.context import Call
from vestige.engine.embedding import embed_memories
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.registry import Operation
from vestige.operations.sessions.sessions import EXAMPLE_SESSION
from vestige.store.contract.changes import Add
from vestige.store.contract.sessions import StepsOfFile

Answer = dict[str, Any]


@contextmanager
def planted(
    folder: Path, settings: Answer | None = None, *, clock: HandClock | None = None
) -> Iterator[World]:
    """A store that has the memories the examples are about, and two more."""
    clock = clock or HandClock()
    with open_world(folder, clock=clock, **(settings or {})) as world:
        embedder = world.app.engine.embedders.get(10)
        assert embedder is not None
        memory = Memory(
            id=EXAMPLE_ID,
            content="Ada prefers TypeScript over JavaScript for the web.",
            created_at=clock.now,
            updated_at=clock.now,
            tags=("preference", "draft"),
        )
        made = embed_memories(Call(engine=world.app.engine), embedder, [memory])[0]
        world.app.engine.store.commit([Add(memory=memory, embedded=made)], access=EVERYTHING)
        examples = [*merge_examples(clock.now), intention_example(clock.now), *domain_examples(clock.now)]
        examples += review_examples(clock.now)
        world.app.engine.store.commit(examples, access=EVERYTHING)
        world.app.engine.store.put_key(key_example(clock.now))
        world.app.engine.sessions().store(session_example())
        clock.advance(days=2)
        world.remember("Grace maintains the parser.", tags=["people"])
        world.remember("The parser is written in Rust.")
        clock.advance(days=1)
        (folder / "exports").mkdir(parents=True, exist_ok=True)
        (folder / "exports" / "memories.jsonl").write_text(
            '{"content": "Ada drinks tea."}\n', encoding="utf-8"
        )
        project_example(world, folder / "code")
        yield world


def session_example() -> StepsOfFile:
    """A session of a client, as a reader gives it."""
    steps = (
        SessionFacts(id=EXAMPLE_SESSION, cwd="/w/shop", started=1.7e9, ended=1.7e9),
        Entry(session=EXAMPLE_SESSION, uid="1", role="user", at=1.7e9, text="Why is the login test flaky?"),
        Entry(session=EXAMPLE_SESSION, uid="2", role="assistant", at=1.7e9, text="Its token expires early."),
    )
    return StepsOfFile(client="claude", path="/gone/example.jsonl", before=None, after={}, steps=steps)


def without_folder(answer: Answer, folder: Path) -> Answer:
    """An answer without the name of the folder, and without what this process has done so far."""
    plain: Answer = json.loads(json.dumps(answer).replace(str(folder), "FOLDER"))
    plain.pop("autopilot", None)
    return plain


def example_of(operation: Operation) -> Answer:
    """The example, with a folder here in place of one in the user's home."""
    return {
        name: value.removeprefix("~/") if isinstance(value, str) else value
        for name, value in operation.example.items()
    }

"""Every operation's example gives the same answer, and every error the same value, on every transport.

Each run starts from the same planted store with the same clock and ids, so answers are compared
whole; only the folder's own name is blanked out, and what a kind of store has of its own.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest

from testbed.fresh_databases import FreshDatabases
from testbed.world import HandClock, World, on_postgres, open_world
from tests.transports.cli.harness import invoke
from tests.transports.http.support.inside import URL, inside
from tests.transports.mcp.harness import MODES, sdk_client
from tests.transports.parity.intention_examples import intention_example
from tests.transports.parity.key_examples import key_example
from tests.transports.parity.merge_examples import merge_examples
from vestige.app.app import App
from vestige.client import Client
from vestige.core.errors import VestigeError
from vestige.core.models import EVERYTHING, Memory
from vestige.engine.context import Call
from vestige.engine.embedding import embed_memories
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.store.contract.changes import Add
from vestige.transports.mcp import describe
from vestige.transports.mcp.catalog import Catalog

Answer = dict[str, Any]
Transport = Callable[[World, Operation, Answer], Answer]
"""Runs an operation; an error comes back as {"error": value}."""


@contextmanager
def planted(folder: Path, settings: Answer | None = None) -> Iterator[World]:
    """A store that has the memories the examples are about, and two more."""
    clock = HandClock()
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
        examples = [*merge_examples(clock.now), intention_example(clock.now)]
        world.app.engine.store.commit(examples, access=EVERYTHING)
        world.app.engine.store.put_key(key_example(clock.now))
        clock.advance(days=2)
        world.remember("Grace maintains the parser.", tags=["people"])
        world.remember("The parser is written in Rust.")
        clock.advance(days=1)
        (folder / "exports").mkdir(parents=True, exist_ok=True)
        (folder / "exports" / "memories.jsonl").write_text(
            '{"content": "Ada drinks tea."}\n', encoding="utf-8"
        )
        yield world


class Lent(App):
    """An app on the test's engine, which belongs to the test: closing it closes nothing."""

    def close(self) -> None:
        """Leave it open."""


def direct(world: World, operation: Operation, arguments: Answer) -> Answer:
    """The operation itself."""
    try:
        return operation.call(Call(engine=world.app.engine), arguments)
    except VestigeError as error:
        return {"error": error.value()}


def over_mcp(mode: str) -> Transport:
    """The official client against our server."""

    def run(world: World, operation: Operation, arguments: Answer) -> Answer:
        tool, fixed = tool_of(operation)
        with sdk_client(world.app, mode=mode) as client:
            return structured(client.tool(tool, {**fixed, **arguments}))

    return run


def structured(result: types.CallToolResult) -> Answer:
    """The answer, which is the same as text and as structure."""
    answer = result.structured_content
    assert isinstance(answer, dict)
    text = result.content[0]
    assert text.type == "text"
    assert json.loads(text.text) == answer
    assert bool(result.is_error) == ("error" in answer)
    return answer


def over_core_tools(world: World, operation: Operation, arguments: Answer) -> Answer:
    """An agent that knows only what the core profile lists: it looks a tool up, then has it run."""
    name, fixed = tool_of(operation)
    catalog = Catalog(describe.document(registry), "core")
    with sdk_client(world.app, mode="2026-07-28", catalog=catalog) as client:
        (way,) = (
            tool.name
            for tool in client.tools()
            if {"tool", "arguments"} == set(tool.input_schema["properties"])
        )
        if name == way:  # asked about itself, it answers as it does about the others
            return structured(client.tool(way, arguments))
        assert name in [tool["name"] for tool in structured(client.tool(way))["tools"]]
        schema = structured(client.tool(way, {"tool": name}))["inputSchema"]
        assert set(schema["properties"]) >= {*fixed, *operation.example}
        return structured(client.tool(way, {"tool": name, "arguments": {**fixed, **arguments}}))


def over_cli(world: World, operation: Operation, arguments: Answer) -> Answer:
    """The command line, with JSON output."""
    words = [*operation.command, *argv_of(operation, arguments)]
    code, stdout, stderr = invoke(words, open_app=lambda options: Lent(world.app.engine))
    if code == 0:
        answer: Answer = json.loads(stdout)
        return answer
    refused: Answer = json.loads(stderr)
    assert code == (2 if refused["error"]["code"] in ("invalid_input", "unknown_argument") else 1)
    return refused


def over_rest(world: World, operation: Operation, arguments: Answer) -> Answer:
    """Any client of HTTP that has read the OpenAPI document."""
    (route,) = (one for one in registry.routes() if one.operation == operation.name)
    rest = {name: value for name, value in arguments.items() if name not in route.places}
    path = "/api/v1" + route.path.format_map(arguments)
    with inside(world.app) as transport, httpx.Client(transport=transport, base_url=URL) as http:
        sent: Answer = {"json": rest} if route.has_body else {"params": rest}
        response = http.request(route.method, path, **sent)
    answer: Answer = response.json()
    if response.is_success:
        return answer
    assert response.headers["content-type"] == "application/problem+json"
    assert answer["status"] == response.status_code
    named = {"code": "code", "message": "detail", "hint": "hint", "details": "details"}
    return {"error": {name: answer[told] for name, told in named.items() if told in answer}}


def over_client(world: World, operation: Operation, arguments: Answer) -> Answer:
    """The Python client."""
    group, _, name = operation.name.rpartition(".")
    given = {"from_" if name == "from" else name: value for name, value in arguments.items()}
    with inside(world.app) as transport, Client(URL, transport=transport) as client:
        method = getattr(getattr(client, group) if group else client, "import_" if name == "import" else name)
        try:
            answer: Answer = method(**given)
        except VestigeError as error:
            return {"error": error.value()}
        except TypeError as error:  # a name that Python itself refuses
            return {"error": {"code": "unknown_argument", "message": str(error)}}
    return answer


def tool_of(operation: Operation) -> tuple[str, Answer]:
    """The tool, and its action, that run an operation over MCP."""
    for tool in registry.tools.values():
        for action, name in tool.actions.items():
            if name == operation.name:
                return tool.name, {"action": action} if action else {}
    raise AssertionError(f"{operation.name} is on no tool")


def argv_of(operation: Operation, arguments: Answer) -> list[str]:
    """The arguments as a person would type them."""
    typed = ["--json"]
    if operation.effect == "delete":
        typed.append("--yes")
    for name, value in arguments.items():
        if name in operation.positional:
            continue
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            typed.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            for one in value if isinstance(value, list) else [value]:
                typed.extend((flag, str(one)))
    for name in operation.positional:
        value = arguments.get(name)
        if value is not None:
            typed.extend(str(one) for one in (value if isinstance(value, list) else [value]))
    return typed


TRANSPORTS: dict[str, Transport] = {
    **{f"mcp {mode}": over_mcp(mode) for mode in MODES},
    "mcp core tools": over_core_tools,
    "command line": over_cli,
    "rest": over_rest,
    "client": over_client,
}


# One of each in every run, the others when there is time.
EVERYWHERE = [
    name if name in ("mcp 2026-07-28", "command line", "rest") else pytest.param(name, marks=pytest.mark.slow)
    for name in TRANSPORTS
]


OWN = ("store", "path", "sizeBytes", "segments", "indexed", "dead", "problems", "versions", "processes")
"""What an answer tells of the place it comes from, and every kind of store has in its own way."""


def asked(
    folder: Path,
    transport: Transport,
    operation: Operation,
    arguments: Answer,
    settings: Answer | None = None,
) -> Answer:
    """The answer of one transport on a store of its own, without the folder's name and process."""
    with planted(folder, settings) as world, chdir(folder):  # some examples name a folder of the user's
        answer = transport(world, operation, arguments)
    plain: Answer = json.loads(json.dumps(answer).replace(str(folder), "FOLDER"))
    plain.pop("autopilot", None)  # what this process has done so far
    return plain


def offered(operation: Operation, transport: str) -> bool:
    return not operation.command_only or transport in ("direct", "command line")


@pytest.mark.parametrize("name", list(registry.operations))
@pytest.mark.parametrize("transport", EVERYWHERE)
def test_the_example_gives_the_same_answer_everywhere(tmp_path: Path, transport: str, name: str) -> None:
    operation = registry.operations[name]
    if not offered(operation, transport):
        assert name not in [op for tool in registry.tools.values() for op in tool.actions.values()]
        return
    example = dict(operation.example)

    expected = asked(tmp_path / "direct", direct, operation, example)
    answer = asked(tmp_path / "other", TRANSPORTS[transport], operation, example)

    assert "error" not in expected
    assert answer == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", list(registry.operations))
def test_the_example_gives_the_same_answer_on_a_server_on_every_transport(
    tmp_path: Path, postgres_databases: FreshDatabases, name: str
) -> None:
    operation = registry.operations[name]
    example = dict(operation.example)
    expected = without_own(asked(tmp_path / "file", direct, operation, example))

    for number, (transport, run) in enumerate({"direct": direct, **TRANSPORTS}.items()):
        if offered(operation, transport):
            url = postgres_databases.take()
            answer = asked(tmp_path / str(number), run, operation, example, on_postgres(url))
            postgres_databases.give_back(url)
            assert without_own(answer) == expected, transport


def without_own(answer: Answer) -> Answer:
    return {name: value for name, value in answer.items() if name not in OWN}


@pytest.mark.parametrize(
    "name", [n for n, op in registry.operations.items() if "id" in op.arguments.model_fields]
)
@pytest.mark.parametrize("transport", EVERYWHERE)
def test_an_unknown_id_is_the_same_error_everywhere(tmp_path: Path, transport: str, name: str) -> None:
    operation = registry.operations[name]
    arguments = {**operation.example, "id": "no-such-memory"}

    expected = asked(tmp_path / "direct", direct, operation, arguments)
    answer = asked(tmp_path / "other", TRANSPORTS[transport], operation, arguments)

    assert expected["error"]["code"] == "not_found"
    assert answer == expected


@pytest.mark.parametrize("name", list(registry.operations))
@pytest.mark.parametrize("transport", EVERYWHERE)
def test_an_unknown_argument_is_refused_everywhere(tmp_path: Path, transport: str, name: str) -> None:
    operation = registry.operations[name]
    if not offered(operation, transport):
        return
    arguments = {**operation.example, "zzzz": "1"}

    answer = asked(tmp_path / "other", TRANSPORTS[transport], operation, arguments)

    assert answer["error"]["code"] == "unknown_argument"
    assert "zzzz" in answer["error"]["message"]


def test_resources_answer_as_the_operations_behind_them(tmp_path: Path) -> None:
    with planted(tmp_path) as world, sdk_client(world.app, mode="2026-07-28") as client:
        listed = {str(resource.uri) for resource in client.resources()}
        assert listed == {uri for uri in registry.resources if "{" not in uri}
        for uri in [*sorted(listed), f"memory://memories/{EXAMPLE_ID}"]:
            content = client.resource(uri).contents[0]
            operation, arguments = registry.match_resource(uri)
            assert json.loads(getattr(content, "text", "null")) == direct(world, operation, arguments)

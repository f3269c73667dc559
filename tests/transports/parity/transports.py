"""Every transport, connected once to an application that can be exchanged behind it."""

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import httpx
import mcp_types as types

from testbed.world import World
from tests.transports.cli.harness import invoke
from tests.transports.http.support.inside import URL, inside
from tests.transports.mcp.harness import MODES, SdkClient, sdk_client
from vestige.app.app import App
from vestige.app.library import AsyncLocalChannel, LocalChannel, OpenedApp
from vestige.client import Client
from vestige.client.async_operations import AsyncOperations
from vestige.client.operations import Operations
from vestige.core.caller import LOCAL_USER
from vestige.core.errors import VestigeError
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation
from vestige.transports.mcp import describe
from vestige.transports.mcp.catalog import Catalog

Answer = dict[str, Any]
Transport = Callable[[Operation, Answer], Answer]
"""Runs an operation; an error comes back as {"error": value}."""


class SwitchedApp:
    """An application that is another one whenever `world` is set, under transports that stay connected."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __getattr__(self, name: str) -> Any:  # whatever a transport asks of an application
        return getattr(self.world.app, name)

    def close(self) -> None:
        """Leave it open: it belongs to the test."""


class Lent(App):
    """An app on the test's engine, which belongs to the test: closing it closes nothing."""

    def close(self) -> None:
        """Leave it open."""


@contextmanager
def connected(switch: SwitchedApp) -> Iterator[dict[str, Transport]]:
    """Each transport by its name, until the end of the block."""
    app = cast(App, switch)
    core = Catalog(describe.document(registry), "core")
    with ExitStack() as open_until_then:
        enter = open_until_then.enter_context
        http = httpx.Client(transport=enter(inside(app)), base_url=URL)
        client = Client(URL, transport=enter(inside(app)))
        memory = LocalChannel(OpenedApp(lambda: app), LOCAL_USER)
        threads = enter(ThreadPoolExecutor(1))
        yield {
            **{f"mcp {mode}": over_mcp(enter(sdk_client(app, mode=mode))) for mode in MODES},
            "mcp core tools": over_core_tools(enter(sdk_client(app, mode="2026-07-28", catalog=core))),
            "command line": over_cli(switch),
            "rest": over_rest(enter(http)),
            "client": over_client(enter(client)),
            "memory": over_client(Operations(memory)),
            "async memory": over_client(AsyncOperations(AsyncLocalChannel(memory, threads))),
        }


def direct(world: World, operation: Operation, arguments: Answer) -> Answer:
    """The operation itself."""
    try:
        return operation.call(Call(engine=world.app.engine), arguments)
    except VestigeError as error:
        return {"error": error.value()}


def over_mcp(client: SdkClient) -> Transport:
    """The official client against our server."""

    def run(operation: Operation, arguments: Answer) -> Answer:
        tool, fixed = tool_of(operation)
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


def over_core_tools(client: SdkClient) -> Transport:
    """An agent that knows only what the core profile lists: it looks a tool up, then has it run."""
    (way,) = (
        tool.name for tool in client.tools() if {"tool", "arguments"} == set(tool.input_schema["properties"])
    )

    def run(operation: Operation, arguments: Answer) -> Answer:
        name, fixed = tool_of(operation)
        if name == way:  # asked about itself, it answers as it does about the others
            return structured(client.tool(way, arguments))
        assert name in [tool["name"] for tool in structured(client.tool(way))["tools"]]
        schema = structured(client.tool(way, {"tool": name}))["inputSchema"]
        assert set(schema["properties"]) >= {*fixed, *operation.example}
        return structured(client.tool(way, {"tool": name, "arguments": {**fixed, **arguments}}))

    return run


def over_cli(switch: SwitchedApp) -> Transport:
    """The command line, with JSON output."""

    def run(operation: Operation, arguments: Answer) -> Answer:
        words = [*operation.command, *argv_of(operation, arguments)]
        code, stdout, stderr = invoke(words, open_app=lambda options: Lent(switch.world.app.engine))
        if code == 0:
            answer: Answer = json.loads(stdout)
            return answer
        refused: Answer = json.loads(stderr)
        assert code == (2 if refused["error"]["code"] in ("invalid_input", "unknown_argument") else 1)
        return refused

    return run


def over_rest(http: httpx.Client) -> Transport:
    """Any client of HTTP that has read the OpenAPI document."""

    def run(operation: Operation, arguments: Answer) -> Answer:
        (route,) = (one for one in registry.routes() if one.operation == operation.name)
        rest = {name: value for name, value in arguments.items() if name not in route.places}
        path = "/api/v1" + route.path.format_map(arguments)
        sent: Answer = {"json": rest} if route.has_body else {"params": rest}
        response = http.request(route.method, path, **sent)
        answer: Answer = response.json()
        if response.is_success:
            return answer
        assert response.headers["content-type"] == "application/problem+json"
        assert answer["status"] == response.status_code
        named = {"code": "code", "message": "detail", "hint": "hint", "details": "details"}
        return {"error": {name: answer[told] for name, told in named.items() if told in answer}}

    return run


def over_client(client: Operations | AsyncOperations) -> Transport:
    """The Python client, or a memory in the program itself."""

    def run(operation: Operation, arguments: Answer) -> Answer:
        group, _, name = operation.name.rpartition(".")
        given = {"from_" if name == "from" else name: value for name, value in arguments.items()}
        method = getattr(getattr(client, group) if group else client, "import_" if name == "import" else name)
        try:
            answered = method(**given)
            answer: Answer = asyncio.run(answered) if inspect.iscoroutine(answered) else answered
        except VestigeError as error:
            return {"error": error.value()}
        except TypeError as error:  # a name that Python itself refuses
            return {"error": {"code": "unknown_argument", "message": str(error)}}
        return answer

    return run


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
                typed.extend((flag, json.dumps(one) if isinstance(one, dict) else str(one)))
    for name in operation.positional:
        value = arguments.get(name)
        if value is not None:
            several = value if isinstance(value, list) else [value]
            # Objects are one word of JSON.
            typed.extend([json.dumps(value)] if isinstance(several[0], dict) else map(str, several))
    return typed

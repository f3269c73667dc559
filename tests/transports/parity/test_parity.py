"""Every operation's example gives the same answer, and every error the same value, on every transport.

Each run starts from a copy of the same planted store with the same clock and ids, so answers are compared
whole; only the folder's own name is blanked out, and what a kind of store has of its own. The transports
are connected once, and the application behind them is exchanged.
"""

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from testbed.failures import Failures
from testbed.fresh_databases import FreshDatabases, fresh_databases
from testbed.planting import Planting
from testbed.postgres_server import Server
from testbed.world import HandClock, World, on_postgres
from tests.transports.mcp.harness import sdk_client
from tests.transports.parity.example_store import example_of, planted, without_folder
from tests.transports.parity.transports import SwitchedApp, Transport, connected, direct
from vestige.operations.memory.read import EXAMPLE_ID
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Operation

pytestmark = pytest.mark.slow

Answer = dict[str, Any]

OWN = (
    "store", "path", "sizeBytes", "segments", "indexed", "dead", "problems", "versions", "processes",
    "settings",
)  # fmt: skip
"""What an answer tells of the place it comes from, and every kind of store has in its own way."""

ON_A_SERVER = ("command line", "rest", "mcp 2026-07-28")
"""One transport of each kind; the others are tried on a server by `make nightly`."""


@pytest.fixture(scope="module")
def planting(tmp_path_factory: pytest.TempPathFactory) -> Planting:
    """The store that every run has a copy of."""
    folder, clock = tmp_path_factory.mktemp("planted") / "data", HandClock()
    with planted(folder, clock=clock):
        pass
    return Planting(folder=folder, clock=clock)


@pytest.fixture(scope="module")
def unchanged(planting: Planting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world for what changes nothing: refusals."""
    with planting.copied(tmp_path_factory.mktemp("unchanged") / "data") as world:
        yield world


@pytest.fixture(scope="module")
def switch(unchanged: World) -> SwitchedApp:
    return SwitchedApp(unchanged)


@pytest.fixture(scope="module")
def transports(switch: SwitchedApp) -> Iterator[dict[str, Transport]]:
    with connected(switch) as made:
        yield made


@pytest.fixture(scope="module")
def planted_databases(
    postgres_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FreshDatabases]:
    """Databases with the planted store."""

    def prepare(url: str) -> None:
        with planted(tmp_path_factory.mktemp("server") / "data", on_postgres(url)):
            pass

    with fresh_databases(postgres_server, prepare) as databases:
        yield databases


def offered(operation: Operation, transport: str) -> bool:
    return not operation.command_only or transport in ("direct", "command line")


def of_the_file(planting: Planting, operation: Operation, folder: Path) -> Answer:
    """The answer of the operation itself to its example."""
    with planting.copied(folder) as world, chdir(folder):  # some examples name a folder of the user's
        answer = direct(world, operation, example_of(operation))
    assert "error" not in answer
    return without_folder(answer, folder)


@pytest.mark.parametrize("name", list(registry.operations))
def test_the_example_gives_the_same_answer_everywhere(
    tmp_path: Path, planting: Planting, switch: SwitchedApp, transports: dict[str, Transport], name: str
) -> None:
    operation, failures = registry.operations[name], Failures()
    expected = of_the_file(planting, operation, tmp_path / "direct")

    for number, (transport, run) in enumerate(transports.items()):
        if not offered(operation, transport):
            continue
        folder = tmp_path / str(number)
        with failures.case(transport), planting.copied(folder) as switch.world, chdir(folder):
            assert without_folder(run(operation, example_of(operation)), folder) == expected

    failures.check()


def test_what_only_a_command_does_is_on_no_tool() -> None:
    on_tools = {name for tool in registry.tools.values() for name in tool.actions.values()}
    assert not [one.name for one in registry.operations.values() if one.command_only and one.name in on_tools]


def compare_on_a_server(
    names: list[str],
    planting: Planting,
    switch: SwitchedApp,
    transports: dict[str, Transport],
    databases: FreshDatabases,
    folder: Path,
) -> None:
    """Each example through these transports on a server, compared with the answer of a file."""
    failures = Failures()
    for name in names:
        operation = registry.operations[name]
        expected = without_own(of_the_file(planting, operation, folder / name / "file"))
        for transport, run in transports.items():
            if not offered(operation, transport):
                continue
            url, at = databases.take(), folder / name / transport
            kept = failures.case(f"{name} {transport}")
            with kept, planting.copied(at, on_postgres(url)) as switch.world, chdir(at):
                answer = without_folder(run(operation, example_of(operation)), at)
                assert without_own(answer) == expected
            databases.give_back(url)
    failures.check()


@pytest.mark.parametrize("transport", ["direct", *ON_A_SERVER])
def test_the_example_gives_the_same_answer_on_a_server(
    tmp_path: Path,
    planting: Planting,
    switch: SwitchedApp,
    transports: dict[str, Transport],
    planted_databases: FreshDatabases,
    transport: str,
) -> None:
    itself = {"direct": lambda operation, arguments: direct(switch.world, operation, arguments)}
    chosen = {transport: {**transports, **itself}[transport]}
    compare_on_a_server(list(registry.operations), planting, switch, chosen, planted_databases, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(registry.operations))
def test_the_example_gives_the_same_answer_on_a_server_on_every_transport(
    tmp_path: Path,
    planting: Planting,
    switch: SwitchedApp,
    transports: dict[str, Transport],
    planted_databases: FreshDatabases,
    name: str,
) -> None:
    compare_on_a_server([name], planting, switch, transports, planted_databases, tmp_path)


def without_own(answer: Answer) -> Answer:
    return {name: value for name, value in answer.items() if name not in OWN}


def test_an_unknown_id_is_the_same_error_everywhere(
    unchanged: World, switch: SwitchedApp, transports: dict[str, Transport], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch.world, failures = unchanged, Failures()
    monkeypatch.chdir(unchanged.app.engine.settings.data_dir)  # an example names a folder there
    for name, operation in registry.operations.items():
        if "id" not in operation.arguments.model_fields:
            continue
        arguments = {**example_of(operation), "id": "no-such-memory"}
        expected = direct(unchanged, operation, arguments)
        for transport, run in transports.items():
            with failures.case(f"{name} {transport}"):
                assert expected["error"]["code"] == "not_found"
                answer = run(operation, arguments)
                if transport == "command line":  # the same hint in its own words
                    assert isinstance(answer["error"].pop("hint"), str)
                    expected_here = {"error": {**expected["error"]}}
                    del expected_here["error"]["hint"]
                    assert answer == expected_here
                else:
                    assert answer == expected
    failures.check()


def test_an_unknown_argument_is_refused_everywhere(
    unchanged: World, switch: SwitchedApp, transports: dict[str, Transport]
) -> None:
    switch.world, failures = unchanged, Failures()
    for name, operation in registry.operations.items():
        arguments = {**operation.example, "zzzz": "1"}
        for transport, run in transports.items():
            if offered(operation, transport):
                with failures.case(f"{name} {transport}"):
                    answer = run(operation, arguments)
                    assert answer["error"]["code"] == "unknown_argument"
                    assert "zzzz" in answer["error"]["message"]
    failures.check()


def test_resources_answer_as_the_operations_behind_them(unchanged: World) -> None:
    with sdk_client(unchanged.app, mode="2026-07-28") as client:
        listed = {str(resource.uri) for resource in client.resources()}
        assert listed == {uri for uri in registry.resources if "{" not in uri}
        for uri in [*sorted(listed), f"memory://memories/{EXAMPLE_ID}"]:
            content = client.resource(uri).contents[0]
            operation, arguments = registry.match_resource(uri)
            assert json.loads(getattr(content, "text", "null")) == direct(unchanged, operation, arguments)

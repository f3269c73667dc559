"""What clients of older versions send: tools by their old names, and arguments that are no more."""

import logging
from typing import Any

import pytest

from testbed.failures import each
from testbed.world import World
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import Registry
from vestige.transports.mcp import describe
from vestige.transports.mcp.catalog import Catalog

SENT_ALONG = {"agent_id": "a1", "mode": "semantic", "context": {"topic": "birds"}}


# -- arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [SENT_ALONG, {"agentId": "a1", "mode": None, "context": "birds"}])
def test_what_older_clients_send_along_changes_nothing(world: World, sent: dict[str, Any]) -> None:
    kept = world.remember("Ada keeps herons.", context="birds", agentId="a1")

    assert world.find("herons", **sent) == ["Ada keeps herons."]
    assert world.get(kept)["agentId"] == "a1"


@each("name", [one.name for one in registry.operations.values() if not one.command_only])
def test_every_operation_takes_what_older_clients_send_along(name: str) -> None:
    operation = registry.operations[name]
    fields = operation.arguments.model_fields
    sent = {argument: value for argument, value in SENT_ALONG.items() if argument not in fields}

    assert operation.parse({**operation.example, **sent}) == operation.parse(operation.example)


def test_an_argument_that_an_operation_has_is_not_dropped(world: World) -> None:
    refused = world.refused("session_context", context={"codebase": 3})

    assert (refused["code"], refused["details"]["argument"]) == ("invalid_input", "context.codebase")


def test_the_texts_of_a_batch_take_them_too(world: World) -> None:
    text = {"content": "Ada keeps herons.", "agent_id": "a1", "mode": "auto", "context": "birds"}

    (result,) = world.call("smart_ingest", items=[text])["results"]

    assert world.get(result["nodeId"])["agentId"] == "a1"


def test_what_nobody_ever_sent_is_still_refused(world: World) -> None:
    for tool, arguments in (
        ("search", {"query": "herons", "modes": "x"}),
        ("memory", {"action": "list", "contexts": "x"}),
        ("smart_ingest", {"items": [{"content": "x", "modes": "y"}]}),
    ):
        assert world.refused(tool, **arguments)["code"] == "unknown_argument"


# -- old names ----------------------------------------------------------------------------------------


def test_an_old_name_does_only_what_it_always_did(world: World) -> None:
    kept = world.remember("Ada keeps herons.")

    plain = world.call("get_knowledge", id=kept)
    assert plain["node"]["content"] == "Ada keeps herons."
    assert world.call("get_knowledge", id=kept, action="get") == plain
    assert world.call("get_knowledge", id=kept, action=None) == plain
    for action in ("history", "delete", "", 3, ["get"]):
        refused = world.refused("get_knowledge", id=kept, action=action)
        assert refused["code"] == "invalid_input"
        assert refused["message"].startswith("`get_knowledge` is an old name of `memory` with action `get`")
        assert refused["hint"] == "Call `memory`."
    assert world.get(kept)["content"] == "Ada keeps herons."


def test_an_old_name_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    fresh = Registry()

    @fresh.operation("look", permission="read", effect="none", example={}, render=str)
    def look(call: Call) -> Wire:
        """Look."""
        return Wire()

    fresh.alias("peek", "look")
    fresh.alias("glance", "look")
    with caplog.at_level(logging.WARNING):
        for name in ("peek", "look", "peek", "glance"):
            assert fresh.resolve(name, {})[0].name == "look"

    assert caplog.messages == ["`peek` is an old name of `look`.", "`glance` is an old name of `look`."]


def test_every_old_name_is_in_the_catalog_and_leads_to_an_operation() -> None:
    catalog = Catalog(describe.document(registry))
    for old, (tool, fixed) in registry.aliases.items():
        assert catalog.has_tool(old)
        assert old not in registry.tools
        assert registry.resolve(old, {})[0] == registry.resolve(tool, fixed)[0]

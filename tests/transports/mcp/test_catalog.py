"""Lists that show what their reader may use."""

from typing import Any

import pytest

from vestige.operations.registry.groups import registry
from vestige.transports.mcp import describe
from vestige.transports.mcp.catalog import WHOLE_STORE, Catalog

DOCUMENT = describe.document(registry)
READER, WRITER = frozenset({"read"}), frozenset({"read", "write"})
ADMIN = frozenset({"read", "write", "admin", WHOLE_STORE})


def described(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in entries}


def test_who_was_granted_everything_sees_the_same_as_who_is_not_asked() -> None:
    for profile in ("core", "full"):
        whole, granted = Catalog(DOCUMENT, profile), Catalog(DOCUMENT, profile, granted=ADMIN)

        assert granted.tools == whole.tools
        assert granted.resources == whole.resources
        assert granted.templates == whole.templates


def test_a_tool_shows_the_actions_that_may_be_used_and_keeps_everything_else() -> None:
    whole, reader = (described(Catalog(DOCUMENT, "full", granted=one).tools) for one in (ADMIN, READER))
    actions = reader["memory"]["inputSchema"]["properties"]["action"]

    assert "get" in actions["enum"]
    assert "delete" not in actions["enum"]
    assert actions["description"] == whole["memory"]["inputSchema"]["properties"]["action"]["description"]
    assert reader["memory"]["description"] == whole["memory"]["description"]
    assert reader["search"] == whole["search"]


def test_the_gateway_names_only_tools_that_may_be_called() -> None:
    told = {
        granted: described(Catalog(DOCUMENT, granted=granted).tools)["vestige"]["description"]
        for granted in (READER, WRITER, ADMIN)
    }

    assert "backup" in told[ADMIN]
    assert "backup" not in told[WRITER]
    assert "memory_timeline" in told[READER]


@pytest.mark.parametrize("granted", [READER, WRITER, ADMIN, frozenset({"write"}), frozenset[str]()])
def test_exactly_what_the_operations_allow_is_listed(granted: frozenset[str]) -> None:
    catalog = Catalog(DOCUMENT, "full", granted=granted)

    def may(operation: str) -> bool:
        one = registry.operations[operation]
        return one.permission in granted and (not one.whole or WHOLE_STORE in granted)

    assert [tool["name"] for tool in catalog.tools] == [
        tool.name
        for tool in registry.tools.values()
        if tool.name != registry.gateway and any(may(name) for name in tool.actions.values())
    ]
    uris = {entry["uri"] for entry in catalog.resources}
    assert uris == {uri for uri, one in registry.resources.items() if "{" not in uri and may(one.operation)}


def test_what_is_not_listed_can_be_asked_for_and_is_refused_where_permissions_are_checked() -> None:
    nobody = Catalog(DOCUMENT, granted=frozenset())

    assert nobody.resources == []
    assert nobody.has_tool("search")
    assert nobody.resource("memory://stats") is not None

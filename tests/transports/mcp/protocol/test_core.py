"""What the pure MCP core offers, in both eras: handshake, lists, tools, resources."""

import json
import math
from typing import Any

import pytest

from testbed.failures import each
from tests.transports.mcp.lines import (
    CATALOG,
    DATA,
    ENVELOPE,
    LEGACY_VERSIONS,
    META,
    MODERN_VERSION,
    STAMP,
    ask,
    ask_modern,
    connect,
    only_reply,
    start,
)
from vestige.transports.mcp.catalog import PROFILES, Catalog, packaged
from vestige.transports.mcp.protocol.core import HEAVY_BYTES
from vestige.transports.mcp.protocol.jsonrpc import encode
from vestige.transports.mcp.protocol.messages import Done, Failed, Send

# -- the handshake ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_handshake_settles_on_the_version_the_client_asks_for(version: str) -> None:
    reply = ask(connect(), "initialize", {"protocolVersion": version, "capabilities": {}})

    assert reply["result"] == {
        "protocolVersion": version,
        "capabilities": {
            "tools": {"listChanged": False},
            "prompts": {"listChanged": False},
            "resources": {"listChanged": False, "subscribe": False},
        },
        "instructions": "Remember.",
        "serverInfo": {"name": "vestige", "title": "Vestige", "version": "9.9"},
    }


@pytest.mark.parametrize("version", ["2023-01-01", "2026-07-28", "2099-01-01", ""])
def test_a_handshake_for_another_version_settles_on_our_newest_legacy_one(version: str) -> None:
    assert (
        ask(connect(), "initialize", {"protocolVersion": version})["result"]["protocolVersion"]
        == "2025-11-25"
    )


def test_a_handshake_inside_a_modern_envelope_is_still_a_handshake() -> None:
    reply = ask(connect(), "initialize", {"protocolVersion": "2025-06-18", "_meta": ENVELOPE})

    assert reply["result"]["protocolVersion"] == "2025-06-18"
    assert "resultType" not in reply["result"]


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 3}, {"protocolVersion": None}])
def test_a_handshake_without_a_version_is_refused(params: dict[str, Any] | None) -> None:
    connection = connect()

    assert ask(connection, "initialize", params)["error"]["code"] == -32602
    assert not connection.greeted


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "resources/read", "nonsense"])
def test_a_request_before_the_handshake_is_refused(method: str) -> None:
    error = ask(connect(), method, {"name": "search"})["error"]

    assert error["code"] == -32600
    assert "initialize" in error["message"]


def test_ping_is_answered_before_and_after_the_handshake() -> None:
    assert ask(connect(), "ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert ask(connect("2025-11-25"), "ping", {})["result"] == {}


# -- lists, in both eras ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_legacy_lists_are_plain(version: str) -> None:
    connection = connect(version)

    assert ask(connection, "tools/list")["result"] == {"tools": CATALOG.tools}
    assert ask(connection, "prompts/list")["result"] == {"prompts": CATALOG.prompts}
    assert ask(connection, "resources/list")["result"] == {"resources": CATALOG.resources}
    assert ask(connection, "resources/templates/list")["result"] == {"resourceTemplates": CATALOG.templates}


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("tools/list", {"tools": CATALOG.tools}),
        ("prompts/list", {"prompts": CATALOG.prompts}),
        ("resources/list", {"resources": CATALOG.resources}),
        ("resources/templates/list", {"resourceTemplates": CATALOG.templates}),
        (
            "server/discover",
            {
                "supportedVersions": [MODERN_VERSION],
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                "instructions": "Remember.",
            },
        ),
    ],
)
def test_modern_lists_are_complete_public_and_stamped(method: str, body: dict[str, Any]) -> None:
    assert ask_modern(connect(), method)["result"] == {
        "resultType": "complete",
        **body,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": STAMP,
    }


def test_aliases_and_the_text_of_prompts_are_not_listed() -> None:
    connection = connect("2025-11-25")

    tools = ask(connection, "tools/list")["result"]["tools"]
    (prompt,) = ask(connection, "prompts/list")["result"]["prompts"]

    assert [tool["name"] for tool in tools] == ["search", "dream", "tidy"]
    assert set(prompt) == {"name", "title", "description", "arguments"}


@each("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
@each("cursor", ["", "p2", 3])
def test_a_cursor_we_never_gave_is_refused_in_both_eras(method: str, cursor: object) -> None:
    assert ask(connect("2025-11-25"), method, {"cursor": cursor})["error"]["code"] == -32602
    assert ask_modern(connect(), method, {"cursor": cursor})["error"]["code"] == -32602


@pytest.mark.parametrize("profile", PROFILES)
def test_the_packaged_catalog_gives_every_tool_a_description_and_an_object_schema(profile: str) -> None:
    tools: list[Any] = packaged(profile).tools

    assert tools
    for tool in tools:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"


# -- the modern ladder ------------------------------------------------------------------------------


@each(
    ("meta", "code"),
    [
        ({META + "protocolVersion": MODERN_VERSION}, -32602),
        ({META + "clientCapabilities": {}}, -32602),
        ({META + "clientInfo": {"name": "x"}}, -32602),
        ({META + "protocolVersion": "2099-01-01"}, -32602),
        ({**ENVELOPE, META + "protocolVersion": 20260728}, -32602),
        ({**ENVELOPE, META + "clientCapabilities": []}, -32602),
        ({**ENVELOPE, META + "logLevel": "loud"}, -32602),
        ({**ENVELOPE, META + "logLevel": ["info"]}, -32602),
        ({**ENVELOPE, "progressToken": 1.5}, -32602),
        ({**ENVELOPE, META + "protocolVersion": "2099-01-01"}, -32022),
        ({**ENVELOPE, META + "protocolVersion": "2025-11-25"}, -32022),
    ],
)
@each("method", ["tools/list", "server/discover"])
def test_a_wrong_envelope_is_refused_step_by_step(method: str, meta: dict[str, Any], code: int) -> None:
    assert ask(connect(), method, {"_meta": meta})["error"]["code"] == code


def test_an_unsupported_version_is_answered_with_what_is_supported() -> None:
    error = ask_modern(connect(), "server/discover", meta={META + "protocolVersion": "2099-01-01"})["error"]

    assert error["data"] == {"supported": [MODERN_VERSION], "requested": "2099-01-01"}


def test_discover_without_an_envelope_is_told_what_is_missing() -> None:
    without: list[dict[str, Any]] = [{}, {"_meta": None}, {"_meta": {}}]
    for params in without:
        error = ask(connect(), "server/discover", params)["error"]
        assert error["code"] == -32602
        assert META + "protocolVersion" in error["message"]


@each(
    "method",
    [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "completion/complete",
        "tasks/list",
        "nonsense",
    ],
)
def test_a_modern_method_that_is_removed_or_not_offered_is_not_found(method: str) -> None:
    assert ask_modern(connect(), method)["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["logging/setLevel", "resources/subscribe", "nonsense"])
def test_a_legacy_method_that_is_not_offered_is_not_found(method: str) -> None:
    assert ask(connect("2025-11-25"), method)["error"]["code"] == -32601


def test_one_connection_serves_both_eras_message_by_message() -> None:
    connection = connect()

    assert "resultType" in ask_modern(connection, "tools/list")["result"]
    assert ask(connection, "tools/list")["error"]["code"] == -32600
    assert "serverInfo" in ask(connection, "initialize", {"protocolVersion": "2025-11-25"})["result"]
    assert "resultType" not in ask(connection, "tools/list")["result"]
    assert "resultType" in ask_modern(connection, "tools/list")["result"]


# -- tools ------------------------------------------------------------------------------------------


def test_a_tool_call_becomes_a_job_with_its_name_and_arguments() -> None:
    job = start(connect("2025-11-25"), request_id="r", meta={"progressToken": "p"})

    assert (job.id, job.kind, job.name, job.arguments) == ("r", "tool", "search", {"query": "tea"})
    assert (job.version, job.progress_token, job.long) == ("2025-11-25", "p", False)


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
def test_a_tool_may_be_called_without_arguments(arguments: dict[str, Any]) -> None:
    assert start(connect("2025-11-25"), params={"name": "search", **arguments}).arguments == {}


def test_a_call_that_brings_much_does_not_hold_up_the_others() -> None:
    connection = connect("2025-11-25")
    heavy = {"name": "search", "arguments": {"query": "x" * HEAVY_BYTES}}
    assert start(connection, params=heavy, request_id=1).long
    assert not start(connection, params={"name": "search", "arguments": {}}, request_id=2).long


def test_an_old_name_goes_on_as_it_was_called() -> None:
    assert start(connect("2025-11-25"), params={"name": "hybrid_search"}).name == "hybrid_search"


@each(
    ("name", "arguments", "long"),
    [
        ("search", {"action": "scan"}, False),
        ("dream", {}, True),
        ("tidy", {"action": "scan"}, True),
        ("tidy", {"action": "apply"}, False),
        ("tidy", {"action": ["scan"]}, False),
        ("tidy", {}, False),
        ("find_twins", {}, True),
        ("find_twins", {"action": "apply"}, True),
        ("anything", {"tool": "dream", "arguments": {}}, True),
        ("anything", {"tool": "find_twins", "arguments": {}}, True),
        ("anything", {"tool": "tidy", "arguments": {"action": "scan"}}, True),
        ("anything", {"tool": "tidy", "arguments": {"action": "apply"}}, False),
        ("anything", {"tool": "dream"}, False),
        ("anything", {"tool": ["dream"], "arguments": {}}, False),
        ("anything", {"tool": "dream", "arguments": "x"}, False),
        ("anything", {}, False),
        ("search", {"tool": "dream", "arguments": {}}, False),
    ],
)
def test_a_call_is_long_when_what_it_runs_is(name: str, arguments: dict[str, Any], long: bool) -> None:
    job = start(connect("2025-11-25"), params={"name": name, "arguments": arguments})

    assert (job.long, job.name, job.arguments) == (long, name, arguments)


@each("profile", PROFILES)
@each("name", ["search", "dream", "anything", "find_twins"])
def test_every_tool_can_be_called_whatever_the_profile_lists(profile: str, name: str) -> None:
    connection = connect("2025-11-25", catalog=Catalog(DATA, profile))

    assert start(connection, params={"name": name}).name == name


def test_the_profile_says_which_tools_are_listed_and_the_mode_what_is_told() -> None:
    connection = connect("2025-11-25", catalog=Catalog(DATA, "core", "full"))

    tools = ask(connection, "tools/list")["result"]["tools"]

    assert [tool["name"] for tool in tools] == ["search", "anything"]
    assert ask_modern(connection, "server/discover")["result"]["instructions"] == "Remember everything."


@pytest.mark.parametrize("modern", [False, True])
def test_a_finished_tool_answers_with_text_and_the_same_object(modern: bool) -> None:
    connection = connect(None if modern else "2025-11-25")
    job = start(connection, modern=modern)

    reply = only_reply(connection.finish(job, Done({"results": ["thé"]})))

    body = {
        "content": [{"type": "text", "text": '{"results":["thé"]}'}],
        "structuredContent": {"results": ["thé"]},
        "isError": False,
    }
    expected = {"resultType": "complete", **body, "_meta": STAMP} if modern else body
    assert reply == {"jsonrpc": "2.0", "id": 7, "result": expected}


@pytest.mark.parametrize("modern", [False, True])
def test_a_failed_tool_is_a_result_with_the_one_error_value(modern: bool) -> None:
    connection = connect(None if modern else "2025-11-25")
    error: dict[str, Any] = {
        "code": "invalid_input",
        "message": "No.",
        "hint": "Yes?",
        "details": {"limit": 3},
    }

    result = only_reply(connection.finish(start(connection, modern=modern), Failed(error)))["result"]

    assert result["isError"] is True
    assert result["structuredContent"] == {"error": error}
    assert json.loads(result["content"][0]["text"]) == {"error": error}


@pytest.mark.parametrize("modern", [False, True])
def test_an_unknown_tool_is_refused_with_the_nearest_name(modern: bool) -> None:
    connection = connect("2025-11-25")
    ask_any = ask_modern if modern else ask

    near = ask_any(connection, "tools/call", {"name": "searchh", "arguments": {}})["error"]
    far = ask_any(connection, "tools/call", {"name": "nope", "arguments": {}})["error"]

    assert (near["code"], near["message"]) == (-32602, "Unknown tool: searchh (did you mean search?)")
    assert (far["code"], far["message"]) == (-32602, "Unknown tool: nope")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 3},
        {"name": None},
        {"name": "search", "arguments": []},
        {"name": "search", "arguments": "query"},
        {"name": "search", "arguments": False},
    ],
)
def test_a_malformed_tool_call_is_refused_in_both_eras(params: dict[str, Any]) -> None:
    assert ask(connect("2025-11-25"), "tools/call", params)["error"]["code"] == -32602
    assert ask_modern(connect(), "tools/call", params)["error"]["code"] == -32602


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    return circle


@pytest.mark.parametrize("value", [{"x": math.nan}, {"x": math.inf}, {"x": object()}, _circle()])
def test_an_answer_json_cannot_hold_becomes_an_internal_error(value: dict[str, Any]) -> None:
    for outcome in (Done(value), Failed({"code": "x", "message": "y", "details": value})):
        connection = connect("2025-11-25")
        result = only_reply(connection.finish(start(connection), outcome))["result"]
        assert result["isError"] is True
        assert result["structuredContent"]["error"]["code"] == "internal"


def test_a_lone_surrogate_the_client_sent_comes_back_as_it_was() -> None:
    raw = b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"\\udfff"}}'

    (action,) = connect("2025-11-25").receive(raw)

    assert isinstance(action, Send)
    sent = encode(action.message)
    assert b'"\\ud800"' in sent
    assert sent.decode("ascii").count("\n") == 1


# -- resources --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "media_type"),
    [
        ("memory://stats", "application/json"),
        ("memory://item/42", "application/x-item"),
        ("vestige/memory://stats", "application/json"),
        ("memory://stats?n=3", "application/json"),
    ],
)
def test_a_resource_is_read_by_a_job_and_answered_as_json_text(uri: str, media_type: str) -> None:
    contents = {"contents": [{"uri": uri, "mimeType": media_type, "text": '{"count":3}'}]}
    old, new = connect("2025-11-25"), connect()

    plain = old.finish(start(old, "resources/read", {"uri": uri}), Done({"count": 3}))
    stamped = new.finish(start(new, "resources/read", {"uri": uri}, modern=True), Done({"count": 3}))

    assert only_reply(plain)["result"] == contents
    assert only_reply(stamped)["result"] == {
        "resultType": "complete",
        **contents,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": STAMP,
    }


@each(("modern", "code"), [(False, -32002), (True, -32602)])
@each("uri", ["memory://nope", "memory://statsx", "memory://item/", "memory://item/?n=1", "?n=1", ""])
def test_an_unknown_resource_has_the_code_of_its_era(modern: bool, code: int, uri: str) -> None:
    error = (ask_modern if modern else ask)(connect("2025-11-25"), "resources/read", {"uri": uri})["error"]

    assert (error["code"], error["data"]) == (code, {"uri": uri})


@pytest.mark.parametrize(
    ("code", "legacy", "modern"),
    [
        ("not_found", -32002, -32602),
        ("invalid_input", -32602, -32602),
        ("too_large", -32602, -32602),
        ("store_busy", -32603, -32603),
    ],
)
def test_a_resource_that_fails_carries_the_error_value_as_data(code: str, legacy: int, modern: int) -> None:
    value = {"code": code, "message": "Gone."}
    params = {"uri": "memory://item/42"}
    for is_modern, expected in ((False, legacy), (True, modern)):
        connection = connect("2025-11-25")
        job = start(connection, "resources/read", params, modern=is_modern)
        error = only_reply(connection.finish(job, Failed(dict(value))))["error"]
        assert error["code"] == expected
        assert error["data"] == {"uri": "memory://item/42", "error": value}


@pytest.mark.parametrize("params", [{}, {"uri": 3}, {"uri": None}])
def test_a_resource_without_a_uri_is_refused(params: dict[str, Any]) -> None:
    assert ask(connect("2025-11-25"), "resources/read", params)["error"]["code"] == -32602

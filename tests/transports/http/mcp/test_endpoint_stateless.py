"""MCP over HTTP in the stateless era: each request stands alone, and its headers say what it says."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Site, bearer, new_site
from tests.transports.http.support.mcp_requests import (
    ACCEPT,
    PATH,
    Body,
    Headers,
    ask,
    events,
    message,
    modern,
    post,
    sent,
    talking_to,
)
from tests.transports.mcp.apps import SmallApp
from tests.transports.mcp.lines import ENVELOPE, HAS_ROOTS, META, MODERN_VERSION, STAMP
from vestige.operations.registry.groups import registry

CALL: Body = {"name": "search", "arguments": {"query": "tea"}}


def refusal(response: httpx2.Response) -> tuple[int, int]:
    """The status and the code of what was refused."""
    return response.status_code, response.json()["error"]["code"]


# -- answers ----------------------------------------------------------------------------------------


def test_a_request_is_answered_with_one_json_object_and_no_session() -> None:
    with talking_to(SmallApp()) as http:
        found = ask(http, "tools/call", CALL, request_id="one")
        told = ask(http, "server/discover")

    assert found.status_code == told.status_code == 200
    assert found.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in found.headers
    assert found.json()["id"] == "one"
    assert found.json()["result"]["structuredContent"] == {"echo": {"query": "tea"}}
    assert told.json()["result"]["supportedVersions"] == [MODERN_VERSION]


def test_a_failed_tool_is_a_result_and_an_unknown_one_an_error() -> None:
    with talking_to(SmallApp()) as http:
        failed = ask(http, "tools/call", {"name": "search", "arguments": {"fail": True}})
        unknown = ask(http, "tools/call", {"name": "serach"})
        missing = ask(http, "resources/read", {"uri": "memory://nowhere"})

    assert failed.status_code == 200
    assert failed.json()["result"]["structuredContent"]["error"]["code"] == "too_large"
    assert refusal(unknown) == (400, -32602)
    assert refusal(missing) == (400, -32602)
    assert missing.json()["error"]["data"] == {"uri": "memory://nowhere"}


def test_progress_makes_the_answer_a_stream_that_ends_with_the_result() -> None:
    headers, body = modern(
        "tools/call", {"name": "search", "arguments": {"steps": 3}}, meta={"progressToken": "p"}
    )
    with talking_to(SmallApp()) as http:
        response = post(http, headers, body)

    assert response.headers["content-type"].startswith("text/event-stream")
    *steps, last = events(response.iter_lines())
    assert [step["params"]["progress"] for step in steps] == [1, 2, 3]
    assert last["result"]["structuredContent"] == {"echo": {"steps": 3}}


def test_a_client_that_closes_the_response_takes_its_request_back() -> None:
    app = SmallApp()
    with talking_to(app) as http:
        with sent(http, *modern("tools/call", {"name": "dream"})):
            assert app.running.wait(PATIENCE_SECONDS)

        assert app.cancelled.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("proxied", ["", "Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
def test_whoever_comes_through_a_proxy_is_not_asked_for_folders_of_this_machine(proxied: str) -> None:
    headers, body = modern("tools/call", CALL, meta={META + "clientCapabilities": HAS_ROOTS})
    with talking_to(SmallApp()) as http:
        response = post(http, {**headers, proxied: "203.0.113.9"} if proxied else headers, body)

    assert ("structuredContent" in response.json()["result"]) is bool(proxied)


# -- what is wrong ----------------------------------------------------------------------------------


WRONG_HEADERS: dict[str, dict[str, str | None]] = {
    "no version": {"MCP-Protocol-Version": None},
    "another version": {"MCP-Protocol-Version": "2025-11-25"},
    "no method": {"Mcp-Method": None},
    "another method": {"Mcp-Method": "tools/list"},
    "no name": {"Mcp-Name": None},
    "another name": {"Mcp-Name": "dream"},
    "a name in other letters": {"Mcp-Name": "Search"},
    "a name that is no base64": {"Mcp-Name": "=?base64?%%%?="},
}


@each("wrong", list(WRONG_HEADERS))
def test_headers_that_do_not_say_what_the_message_says_are_refused(wrong: str) -> None:
    headers, body = modern("tools/call", CALL, request_id="seven")
    for name, value in WRONG_HEADERS[wrong].items():
        del headers[name]
        if value is not None:
            headers[name] = value
    with talking_to(SmallApp()) as http:
        response = post(http, headers, body)

    assert refusal(response) == (400, -32020)
    assert response.json()["id"] == "seven"


def test_a_header_that_is_given_twice_is_refused() -> None:
    headers, body = modern("tools/call", CALL)
    with talking_to(SmallApp()) as http:
        response = http.post(PATH, json=body, headers=[*headers.items(), ("Mcp-Name", "search")])

    assert refusal(response) == (400, -32020)


def test_a_name_that_no_header_can_hold_travels_in_base64() -> None:
    encoded = f"=?base64?{base64.b64encode('memory://item/thé'.encode()).decode()}?="
    headers, body = modern("resources/read", {"uri": "memory://item/thé"})
    with talking_to(SmallApp()) as http:
        response = post(http, {**headers, "Mcp-Name": encoded}, body)

    assert response.status_code == 200
    (content,) = response.json()["result"]["contents"]
    assert json.loads(content["text"]) == {"uri": "memory://item/thé"}


def test_a_version_that_is_not_spoken_is_refused_with_those_that_are() -> None:
    headers, body = modern("tools/list", meta={META + "protocolVersion": "2099-01-01"})
    with talking_to(SmallApp()) as http:
        response = post(http, {**headers, "MCP-Protocol-Version": "2099-01-01"}, body)

    assert refusal(response) == (400, -32022)
    assert response.json()["error"]["data"] == {"supported": [MODERN_VERSION], "requested": "2099-01-01"}


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_an_envelope_that_is_not_whole_is_refused(missing: str) -> None:
    headers, body = modern("tools/list")
    body["params"]["_meta"] = {key: value for key, value in ENVELOPE.items() if key != META + missing}
    with talking_to(SmallApp()) as http:
        assert refusal(post(http, headers, body)) == (400, -32602)


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "tasks/get", "nope"])
def test_a_method_that_this_era_does_not_have_is_not_found(method: str) -> None:
    with talking_to(SmallApp()) as http:
        assert refusal(ask(http, method)) == (404, -32601)


@each(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (json.dumps([message("tools/list")]).encode(), -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "tools/list"}', -32600),
    ],
)
def test_what_is_not_one_request_is_refused_without_an_id(body: bytes, code: int) -> None:
    headers = {**ACCEPT, "MCP-Protocol-Version": MODERN_VERSION, "Content-Type": "application/json"}
    with talking_to(SmallApp()) as http:
        response = http.post(PATH, content=body, headers=headers)

    assert refusal(response) == (400, code)
    assert "id" not in response.json()


def test_a_notification_is_taken_without_an_answer() -> None:
    headers, body = modern("notifications/cancelled", {"requestId": 1}, request_id=None)
    with talking_to(SmallApp()) as http:
        response = post(http, headers, body)

    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_nothing_to_listen_to_and_nothing_to_end(method: str) -> None:
    with talking_to(SmallApp()) as http:
        response = http.request(method, PATH, headers={**ACCEPT, "MCP-Protocol-Version": MODERN_VERSION})

    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Accept": "application/json"}, 406),
        ({"Accept": "text/event-stream;q=0.5"}, 406),
        ({"Accept": "application/*, text/*"}, 200),
        ({"Accept": "*/*"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_a_client_sends_json_and_takes_both_shapes_of_an_answer(headers: Headers, status: int) -> None:
    given, body = modern("tools/list")
    with talking_to(SmallApp()) as http:
        response = http.post(PATH, json=body, headers={**given, **headers})

    assert response.status_code == status


# -- who asks ---------------------------------------------------------------------------------------


@pytest.fixture
def full_site(tmp_path: Path) -> Iterator[Site]:
    """A server that lists every tool."""
    with new_site(tmp_path / "data", {"mcp.profile": "full"}) as opened:
        yield opened


def listed(site: Site, key: str) -> dict[str, Any]:
    headers, body = modern("tools/list")
    response = site.http.post(PATH, json=body, headers={**headers, **bearer(key)})
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()["result"]
    return result


def tools(site: Site, key: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = listed(site, key)["tools"]
    return entries


def test_a_request_without_a_key_does_not_reach_the_protocol(site: Site) -> None:
    headers, body = modern("tools/list")
    response = site.http.post(PATH, json=body, headers=headers)

    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"


def test_everybody_is_shown_what_he_may_call(full_site: Site) -> None:
    shown = {
        permissions: {tool["name"]: tool for tool in tools(full_site, full_site.key(*permissions))}
        for permissions in (("read",), ("read", "write"), ("read", "write", "admin"))
    }
    reads, writes, all_of_them = shown.values()

    assert set(reads) < set(writes) < set(all_of_them)
    assert "backup" in all_of_them
    assert "backup" not in writes
    assert "smart_ingest" not in reads
    for permissions, entries in shown.items():
        for name, tool in entries.items():
            actions = registry.tools[name].actions
            enum = tool["inputSchema"]["properties"].get("action", {}).get("enum", [""])
            assert enum == [
                action
                for action, one in actions.items()
                if registry.operations[one].permission in permissions
            ]


def test_lists_that_depend_on_the_reader_are_not_shared_between_readers(site: Site) -> None:
    result = listed(site, site.key("read"))

    assert result["cacheScope"] == "private"
    assert result["_meta"].keys() == STAMP.keys()


def test_what_is_about_the_whole_store_is_not_shown_to_who_reaches_a_part_of_it(full_site: Site) -> None:
    key = full_site.key(scopes=["/project/x"])
    names = [tool["name"] for tool in tools(full_site, key)]

    assert "search" in names
    assert "backup" not in names
    assert "doctor" not in names


def test_a_tool_that_is_not_shown_is_refused_when_it_is_called(site: Site) -> None:
    headers, body = modern("tools/call", {"name": "backup", "arguments": {}})
    response = site.http.post(PATH, json=body, headers={**headers, **bearer(site.key("read"))})

    assert response.json()["result"]["structuredContent"]["error"]["code"] == "forbidden"

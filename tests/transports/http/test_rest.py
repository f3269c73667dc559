"""REST: how arguments are read, what answers look like, and what is refused before an operation runs."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from starlette.types import ASGIApp, Message

from testbed.patience import PATIENCE_SECONDS, until
from testbed.world import World, open_world
from tests.transports.http.support.harness import Site, bearer
from tests.transports.http.support.inside import URL, inside
from vestige.app.app import App
from vestige.core.caller import Invocation
from vestige.core.errors import Cancelled
from vestige.engine.ingest.batch import NewText
from vestige.operations.memory.ingest import IngestArguments

API = f"{URL}/api/v1"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings: dict[str, Any] = {"storage.backend": "memory"}
    with open_world(tmp_path, **settings) as opened:
        yield opened


@pytest.fixture
def http(world: World) -> Iterator[httpx.Client]:
    """A client of a server on the world that lets everybody in."""
    with inside(world.app) as transport, httpx.Client(transport=transport, base_url=API) as client:
        yield client


def told(response: httpx.Response) -> tuple[int, str, str]:
    """Status, code and message of a problem."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["requestId"] == response.headers["x-request-id"]
    return response.status_code, problem["code"], problem["detail"]


# -- arguments -----------------------------------------------------------------------------------------


def test_arguments_of_a_post_are_in_its_body(world: World, http: httpx.Client) -> None:
    world.remember("Ada drinks tea.")
    world.remember("Ada rides a bicycle.")
    answer = http.post("/search", json={"query": "What does Ada drink?", "limit": 1}).json()
    assert [hit["content"] for hit in answer["results"]] == ["Ada drinks tea."]


def test_arguments_of_a_get_are_in_its_query_and_a_list_repeats_its_name(
    world: World, http: httpx.Client
) -> None:
    world.remember("Ada drinks tea.", tags=["drink", "hot"])
    world.remember("Grace drinks water.", tags=["drink"])
    answer = http.get("/memories?tags_all=drink&tags_all=hot&limit=5").json()
    assert [one["content"] for one in answer["results"]] == ["Ada drinks tea."]


def test_switches_numbers_and_both_spellings_are_read_from_a_query(world: World, http: httpx.Client) -> None:
    world.remember("Ada drinks tea.", pinned=True)
    world.remember("Grace drinks water.")
    kept = http.get("/memories?pinned=true&minRetention=0.0&detailLevel=full").json()["results"]
    others = http.get("/memories?pinned=false&min_retention=0.5").json()["results"]
    assert [one["content"] for one in kept] == ["Ada drinks tea."]
    assert [one["content"] for one in others] == ["Grace drinks water."]


def test_a_switch_that_must_be_meant_is_taken_from_the_query_of_a_delete(
    world: World, http: httpx.Client
) -> None:
    pinned = world.remember("Ada drinks tea.", pinned=True)
    assert http.delete(f"/memories/{pinned}").status_code == 409
    assert told(http.delete(f"/memories/{pinned}?even_pinned=yes"))[:2] == (400, "invalid_input")
    assert http.delete(f"/memories/{pinned}?even_pinned=true").status_code == 200
    assert told(http.get(f"/memories/{pinned}"))[:2] == (404, "not_found")


def test_an_argument_in_the_path_may_be_repeated_but_not_contradicted(
    world: World, http: httpx.Client
) -> None:
    memory = world.remember("Ada drinks tea.")
    again = http.put(f"/memories/{memory}", json={"id": memory, "content": "Ada drinks green tea."})
    assert again.status_code == 200
    other = http.put(f"/memories/{memory}", json={"id": "another", "content": "Ada drinks coffee."})
    assert told(other) == (400, "invalid_input", "`id` is given twice: the path has another value.")
    assert world.get(memory)["content"] == "Ada drinks green tea."


def test_an_id_may_have_any_characters(http: httpx.Client) -> None:
    assert told(http.get("/memories/a%20b%3Fc%25"))[2] == "There is no memory a b?c%."


def test_a_fixed_path_wins_over_one_with_a_place(world: World, http: httpx.Client) -> None:
    memory = world.remember("Ada drinks tea.")
    answer = http.get("/memories/batch", params={"ids": [memory, "gone"]}).json()
    assert ([one["id"] for one in answer["results"]], answer["missing"]) == ([memory], ["gone"])


def test_an_unknown_argument_is_refused_with_the_nearest_name(http: httpx.Client) -> None:
    for response in (http.post("/search", json={"query": "x", "limt": 1}), http.get("/memories?limt=1")):
        assert told(response)[1] == "unknown_argument"
        assert response.json()["hint"] == "Did you mean `limit`?"


def test_a_large_body_of_countless_values_is_refused_before_they_are_looked_at(http: httpx.Client) -> None:
    body = b'{"query": "a", "tags": [' + b"{}," * 50_000 + b"{}]}"
    assert told(http.post("/search", content=body, headers=JSON))[:2] == (413, "too_large")
    text = {"content": "word, " * 15_000}
    assert http.post("/memories", json=text).status_code == 201


def test_an_argument_that_is_no_list_is_given_once(http: httpx.Client) -> None:
    assert told(http.get("/memories?limit=1&limit=2")) == (400, "invalid_input", "`limit` is given 2 times.")


def test_a_query_has_no_place_beside_a_body_and_a_body_none_beside_a_query(http: httpx.Client) -> None:
    assert (
        told(http.post("/search?limit=1", json={"query": "x"}))[2]
        == "This operation takes no query parameters."
    )
    response = http.request("GET", "/memories", json={"limit": 1})
    assert told(response)[2] == "This operation takes no request body."


# -- bodies --------------------------------------------------------------------------------------------


def test_a_body_is_json_and_says_so(http: httpx.Client) -> None:
    body = b'{"query": "tea"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = http.post("/search", content=body, headers={"Content-Type": kind})
        assert told(response)[:2] == (415, "unsupported_media_type")
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        assert http.post("/search", content=body, headers={"Content-Type": kind}).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"\xff", b"{'a': 1}", b'{"query": NaN}', b"[" * 2_000])
def test_what_is_not_json_is_refused(http: httpx.Client, body: bytes) -> None:
    status, code, message = told(http.post("/search", content=body, headers=JSON))
    assert (status, code) == (400, "invalid_input")
    assert message.startswith("The body is not valid JSON: ")


@pytest.mark.parametrize("body", [b"[]", b'"tea"', b"3", b"null"])
def test_a_body_is_an_object(http: httpx.Client, body: bytes) -> None:
    response = http.post("/search", content=body, headers=JSON)
    assert told(response) == (400, "invalid_input", "The body is not a JSON object.")


@pytest.mark.parametrize("size", [10, 100_000])
def test_bodies_large_and_small_are_read_alike(world: World, http: httpx.Client, size: int) -> None:
    text = "tea" * (size // 3)
    stored = http.post("/memories", json={"content": text})
    assert (stored.status_code, world.get(stored.json()["nodeId"])["content"]) == (201, text)
    assert told(http.post("/search", content=b"[" + b"1," * size, headers=JSON))[2].startswith(
        "The body is not"
    )


def test_what_needs_no_arguments_needs_no_body(world: World, http: httpx.Client) -> None:
    memory = world.remember("Ada drinks tea.")
    response = http.post(f"/memories/{memory}/promote")
    assert (response.status_code, response.json()["success"]) == (200, True)


# -- answers -------------------------------------------------------------------------------------------


def test_only_what_makes_something_answers_created(http: httpx.Client) -> None:
    told_first = http.post("/memories", json={"content": "Ada drinks tea."})
    told_again = http.post("/memories", json={"content": "Ada drinks tea."})
    assert (told_first.status_code, told_first.json()["decision"]) == (201, "create")
    assert (told_again.status_code, told_again.json()["decision"]) == (200, "reinforce")
    assert http.post("/intentions", json={"description": "Buy tea"}).status_code == 201
    assert http.post("/search", json={"query": "tea"}).status_code == 200


def test_the_header_idempotency_key_makes_a_retry_safe(http: httpx.Client) -> None:
    body, key = {"content": "Ada drinks tea."}, {"Idempotency-Key": "once"}
    first = http.post("/memories", json=body, headers=key)
    retry = http.post("/memories", json=body, headers=key)
    assert (retry.status_code, retry.json()["replayed"]) == (200, True)
    assert retry.json()["nodeId"] == first.json()["nodeId"]
    other = http.post("/memories", json={"content": "Ada rides."}, headers=key)
    assert told(other)[:2] == (409, "idempotency_conflict")
    both = http.post("/memories", json={**body, "idempotency_key": "twice"}, headers=key)
    assert told(both)[2] == "`idempotency_key` is given twice: the header Idempotency-Key has another value."


def test_an_operation_that_takes_no_idempotency_key_is_not_given_one(http: httpx.Client) -> None:
    response = http.post("/search", json={"query": "tea"}, headers={"Idempotency-Key": "once"})
    assert response.status_code == 200


def test_a_method_that_is_not_offered_is_refused_with_those_that_are(http: httpx.Client) -> None:
    response = http.patch("/memories/x", json={})
    assert told(response)[:2] == (405, "method_not_allowed")
    assert {one.strip() for one in response.headers["allow"].split(",")} == {"GET", "PUT", "DELETE"}


def test_an_address_that_is_not_there_is_a_problem_too(http: httpx.Client) -> None:
    assert told(http.get("/nothing"))[:2] == (404, "no_such_route")
    assert told(http.post("/rebuild"))[:2] == (404, "no_such_route")


def test_head_is_answered_like_get_without_the_body(http: httpx.Client) -> None:
    response = http.head("/stats")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")


# -- who may -------------------------------------------------------------------------------------------


def test_an_operation_needs_its_permission(site: Site) -> None:
    reader = bearer(site.key("read"))
    assert site.http.post("/api/v1/search", json={"query": "x"}, headers=reader).status_code == 200
    refused = site.http.post("/api/v1/memories", json={"content": "x"}, headers=reader)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert site.http.get("/api/v1/keys", headers=bearer(site.key("read", "write"))).status_code == 403
    assert site.http.get("/api/v1/keys", headers=bearer(site.key())).status_code == 200


def test_no_operation_answers_without_a_key_but_its_description_does(site: Site) -> None:
    for route in site.context.registry.routes():
        path = "/api/v1" + route.path.replace("{", "").replace("}", "")
        assert site.http.request(route.method, path).status_code == 401, path
    for path in ("openapi.json", "docs", "docs/api.js", "docs/api-form.js", "docs/api.css"):
        assert site.http.get(f"/api/v1/{path}").status_code == 200


def test_a_key_reaches_only_its_scopes(site: Site) -> None:
    site.world.remember("Ada drinks tea.", scope="/project/tea")
    hidden = site.world.remember("The launch code is walrus.", scope="/project/secret")
    key = bearer(site.key("read", scopes=["/project/tea"]))
    listed = site.http.get("/api/v1/memories?scope=/", headers=key).json()["results"]
    assert [one["content"] for one in listed] == ["Ada drinks tea."]
    assert site.http.get(f"/api/v1/memories/{hidden}", headers=key).status_code == 404


# -- clients that leave --------------------------------------------------------------------------------


class Patient(App):
    """An app whose operations go on until they are cancelled."""

    def call_operation(self, invocation: Invocation) -> dict[str, Any]:
        """Wait."""
        assert isinstance(invocation.cancelled, threading.Event)
        assert invocation.cancelled.wait(PATIENCE_SECONDS)
        raise Cancelled


def test_an_operation_is_told_that_its_client_left(world: World) -> None:
    with inside(Patient(world.app.engine)) as transport:
        assert _left_after_sending(transport.app) == 499


def _left_after_sending(app: ASGIApp) -> int:
    """The status of a request whose client goes away once it has sent everything."""
    messages: list[Message] = [{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/consolidate",
        "raw_path": b"/api/v1/consolidate",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:3927"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 3927),
        "scheme": "http",
        "root_path": "",
    }
    with start_blocking_portal() as portal:
        portal.call(app, scope, receive, send)
    return int(sent[0]["status"])


def test_a_request_that_fails_leaves_nothing_for_the_garbage_collection(http: httpx.Client) -> None:
    gc.collect()
    gc.disable()
    try:
        answer = http.post("/memories", json={"items": [{"content": "a"}, {"content": " "}]})
        # The thread that did the work lets go of it a moment after the answer.
        until(lambda: not any(isinstance(one, IngestArguments | NewText) for one in gc.get_objects()))
    finally:
        gc.enable()
    assert told(answer)[:2] == (400, "invalid_input")

"""The OpenAPI document is valid and true: every operation, every argument, every answer as it is given."""

import threading
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from testbed.failures import Failures, each
from testbed.patience import PATIENCE_SECONDS
from testbed.planting import Planting
from testbed.world import HandClock
from tests.transports.http.support.harness import URL, Site, bearer, new_site
from tests.transports.parity.example_store import example_of, planted
from tests.transports.parity.transports import direct
from vestige.core.errors import InvalidInput, VestigeError
from vestige.operations.registry.groups import registry
from vestige.operations.registry.registry import NAMING, Registry
from vestige.operations.registry.route import Route
from vestige.transports.http import problems, rest
from vestige.transports.http.auth import gate, hosts
from vestige.transports.http.auth.cookies import COOKIE, CSRF_HEADER
from vestige.transports.http.auth.gate import DOMAIN_HEADER, SAFE, SCOPE_HEADER, ZONE_HEADER
from vestige.transports.http.limits import bodies_and_rates
from vestige.transports.http.openapi.document import FAILURES, IDEMPOTENCY_HEADER, IDEMPOTENT, document
from vestige.transports.http.problems import Refusal

Json = dict[str, Any]

OFFERED = [route.operation for route in registry.routes()]
FURTHER: list[tuple[str, Json]] = [
    ("smart_ingest", {"items": [{"content": "One."}, {"content": "Two.", "metadata": {"a": [None, 1]}}]}),
    ("search", {"query": "parser", "explain": True, "detail_level": "full", "limit": 5}),
    ("search", {"query": "What was written in Rust last March?", "token_budget": 100}),
    ("search", {"query": "xyzzy quux"}),
    ("memory.list", {"detail_level": "full", "scope": "/"}),
    ("memory.list", {"detail_level": "brief"}),
    ("memory_graph", {"format": "svg"}),
    ("memory_graph", {"format": "mermaid"}),
    ("session_context", {"queries": ["parser"], "context": {"codebase": "vestige"}}),
    ("intention.set", {"description": "Water plants", "trigger": {"every": "week", "days": ["monday"]}}),
    ("memory_timeline", {"detail_level": "full"}),
    ("gc", {"dry_run": True, "min_retention": 0.5}),
    ("tools.describe", {"tool": "memory"}),
]
"""Answers of other forms than those of the examples."""


@cache
def described() -> Json:
    return document(registry)


def entry(route: Route) -> Json:
    """What the document says about an operation."""
    said: Json = described()["paths"][route.path][route.method.lower()]
    return said


def arguments_of(name: str) -> set[str]:
    """The arguments of an operation."""
    return set(registry.operations[name].arguments.model_fields)


def entry_of(name: str) -> Json:
    (route,) = (one for one in registry.routes() if one.operation == name)
    return entry(route)


def checker(schema: Json, *, closed: bool = False) -> Draft202012Validator:
    """Checks values against a schema of the document; `closed` allows no field that it does not name."""
    components = described()["components"]["schemas"]
    if closed:
        components = {name: closed_off(one) for name, one in components.items()}
    return Draft202012Validator(
        {**schema, "components": {"schemas": components}}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def closed_off(schema: Json) -> Json:
    return {**schema, "additionalProperties": False} if "properties" in schema else schema


def test_the_document_is_valid_openapi() -> None:
    assert list(OpenAPIV31SpecValidator(described()).iter_errors()) == []


def test_it_describes_every_operation_under_its_name_once() -> None:
    ids = [one["operationId"] for path in described()["paths"].values() for one in path.values()]
    assert sorted(ids) == sorted(OFFERED)


@each("route", registry.routes(), ids=lambda route: route.operation)
def test_it_says_what_an_operation_needs_and_does(route: Route) -> None:
    operation, said = registry.operations[route.operation], entry(route)
    assert (said["x-permission"], said["x-effect"]) == (operation.permission, operation.effect)
    assert (said["summary"], said["tags"]) == (operation.summary, [route.tag])
    assert {"name": route.tag} in described()["tags"]


@each("route", registry.routes(), ids=lambda route: route.operation)
def test_it_has_every_argument_in_its_place(route: Route) -> None:
    said, fields = entry(route), registry.operations[route.operation].arguments.model_fields
    placed: dict[str, set[str]] = {"path": set(), "query": set(), "header": set()}
    for one in said.get("parameters", []):
        placed[one["in"]].add(one["name"])
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    assert placed["path"] == set(route.places)
    assert placed["query"] | set(body.get("properties", {})) == set(fields) - placed["path"]
    assert not (route.has_body and placed["query"])
    needed = {name for name, field in fields.items() if field.is_required()}
    required = {one["name"] for one in said.get("parameters", []) if one.get("required")}
    assert required | set(body.get("required", [])) == needed


@each("route", registry.routes(), ids=lambda route: route.operation)
def test_the_example_is_a_request_that_it_allows(route: Route) -> None:
    said, left = entry(route), dict(registry.operations[route.operation].example)
    for one in said.get("parameters", []):
        if one["name"] in left:
            value = left.pop(one["name"])
            assert one["example"] == value
            checker(one["schema"]).validate(value)
    if "requestBody" in said:
        content = said["requestBody"]["content"]["application/json"]
        assert content.get("example", {}) == left
        checker(content["schema"], closed=True).validate(left)
    else:
        assert left == {}


def test_an_answer_is_as_it_is_described(tmp_path: Path) -> None:
    failures, clock = Failures(), HandClock()
    with planted(tmp_path / "planted", clock=clock):
        pass
    planting = Planting(folder=tmp_path / "planted", clock=clock)
    examples = [(name, example_of(registry.operations[name])) for name in OFFERED]
    for number, (name, arguments) in enumerate([*examples, *FURTHER]):
        folder = tmp_path / str(number)
        with failures.case(f"{name} {arguments}"), planting.copied(folder) as world, chdir(folder):
            answer = direct(world, registry.operations[name], arguments)
            assert "error" not in answer
            schema = entry_of(name)["responses"]["200"]["content"]["application/json"]["schema"]
            checker(schema, closed=True).validate(answer)
    failures.check()


def test_a_description_that_is_not_true_would_be_noticed(tmp_path: Path) -> None:
    schema = entry_of("search")["responses"]["200"]["content"]["application/json"]["schema"]
    with planted(tmp_path) as world:
        answer = world.call("search", query="parser")
    for broken in (
        {**answer, "total": "2"},
        {**answer, "surprise": 1},
        {**answer, "note": None},
        {name: value for name, value in answer.items() if name != "abstained"},
        {**answer, "results": [{**answer["results"][0], "provenance": {"at": "yesterday", "trust": 1}}]},
    ):
        assert not checker(schema, closed=True).is_valid(broken), broken


def test_what_may_be_made_new_says_so() -> None:
    failures = {str(status) for status in FAILURES}
    assert set(entry_of("smart_ingest")["responses"]) == {"200", "201", *failures}
    assert set(entry_of("search")["responses"]) == {"200", *failures}


def test_what_was_made_leads_to_what_can_be_done_with_it() -> None:
    links = {
        name: entry_of(name)["responses"]["201"].get("links", {})
        for name in ("smart_ingest", "intention.set", "keys.create", "dedup.apply")
    }
    there = [route.operation for route in registry.routes() if route.path.startswith("/memories/{id}")]
    assert sorted(links["smart_ingest"]) == sorted(there)
    assert sorted(links["intention.set"]) == ["intention.delete", "intention.update"]
    assert links["keys.create"]["keys.revoke"] == {
        "operationId": "keys.revoke",
        "parameters": {"id": "$response.body#/id"},
    }
    assert links["dedup.apply"] == {}


def test_every_way_to_fail_is_described() -> None:
    """But what nobody hears, because the client is gone, and what is no operation's."""
    kinds, known = [VestigeError], set()
    while kinds:
        kind = kinds.pop()
        known.add(kind.status)
        kinds += kind.__subclasses__()
    for module in (gate, bodies_and_rates, hosts, problems):
        known |= {one.status for one in vars(module).values() if isinstance(one, Refusal)}
    assert known - set(FAILURES) == {499, 405, 406}
    assert set(FAILURES) <= known


@each("route", registry.routes(), ids=lambda route: route.operation)
def test_it_names_the_headers_that_a_request_may_have(route: Route) -> None:
    named = {one["name"] for one in entry(route)["parameters"] if one["in"] == "header"}
    takes_key = IDEMPOTENT in registry.operations[route.operation].arguments.model_fields
    assert named == {
        SCOPE_HEADER,
        DOMAIN_HEADER,
        ZONE_HEADER,
        "X-Request-Id",
        *([CSRF_HEADER] if route.method not in SAFE else []),
        *([IDEMPOTENCY_HEADER] if takes_key else []),
    }


def test_credentials_are_described_as_they_are_read() -> None:
    schemes = described()["components"]["securitySchemes"]
    assert {(one.get("scheme"), one.get("in"), one.get("name")) for one in schemes.values()} == {
        ("bearer", None, None),
        (None, "header", "X-API-Key"),
        (None, "cookie", COOKIE),
    }
    assert described()["security"] == [{name: []} for name in schemes]  # any of them


@pytest.mark.parametrize("header", [SCOPE_HEADER, DOMAIN_HEADER])
@pytest.mark.parametrize("value", ["", " ", "x" * 1_001])
def test_a_header_that_narrows_is_taken_as_far_as_it_is_described(
    site: Site, header: str, value: str
) -> None:
    (said,) = (one for one in entry_of("memory.list")["parameters"] if one["name"] == header)
    assert not checker(said["schema"]).is_valid(value)
    response = site.http.get("/api/v1/memories", headers={**bearer(site.key()), header: value})
    assert response.status_code in (400, 413)
    assert header in response.json()["detail"] or "scope" in response.json()["detail"]


def test_an_answer_is_called_what_its_request_wanted_to_be_called_if_that_is_as_described(site: Site) -> None:
    (said,) = (one for one in entry_of("memory.list")["parameters"] if one["name"] == "X-Request-Id")
    for wanted in ("mine-1", "x" * 64, "x" * 65, "a b", "(none)"):
        headers = {**bearer(site.key()), "X-Request-Id": wanted}
        response = site.http.get("/api/v1/memories", headers=headers)
        assert (response.headers["X-Request-Id"] == wanted) is checker(said["schema"]).is_valid(wanted)


@each("value", ["", "  ", "x" * 1_001])
@each("name", [name for name in OFFERED if "scope" in arguments_of(name)])
def test_a_scope_that_is_refused_is_not_allowed_by_its_schema(name: str, value: str) -> None:
    said = entry_of(name)
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schemas = {one["name"]: one["schema"] for one in said["parameters"]} | body.get("properties", {})
    assert not checker(schemas["scope"]).is_valid(value)
    with pytest.raises(InvalidInput, match="scope"):
        registry.operations[name].parse({**registry.operations[name].example, "scope": value})


def test_an_error_is_as_it_is_described(site: Site) -> None:
    problem = described()["components"]["schemas"]["Problem"]
    for response in (
        site.http.get("/api/v1/stats"),
        site.http.get("/api/v1/nothing", headers={"Authorization": f"Bearer {site.key()}"}),
        site.http.get("/api/v1/memories/x", headers={"Authorization": f"Bearer {site.key()}"}),
    ):
        assert response.status_code in (401, 404)
        Draft202012Validator({**problem, "additionalProperties": False}).validate(response.json())


def test_the_server_shows_the_document(site: Site) -> None:
    response = site.http.get("/api/v1/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == described()


def test_whoever_asks_while_the_document_is_made_waits_without_a_thread_for_the_same(tmp_path: Path) -> None:
    made: list[Registry] = []
    go = threading.Event()

    def slowly(known: Registry) -> Json:
        made.append(known)
        assert go.wait(PATIENCE_SECONDS)
        return document(known)

    with new_site(tmp_path / "data", parts=(partial(rest.description_routes, describe=slowly),)) as site:
        answers: list[httpx.Response] = []

        async def ask() -> None:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(site.http.app), base_url=URL) as http:
                answers.append(await http.get(rest.DOCUMENT))

        async def crowd() -> float:
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                taken = site.context.limiter.borrowed_tokens
                go.set()
            return taken

        assert site.http.portal is not None
        assert site.http.portal.call(crowd) == 1
        assert made == [registry]
        assert [one.json() for one in answers] == [described()] * 20


def test_what_is_left_out_for_some_callers_is_not_promised_to_any() -> None:
    promised = [one.get("required", []) for one in described()["components"]["schemas"].values()]
    assert not NAMING & {name for names in promised for name in names}

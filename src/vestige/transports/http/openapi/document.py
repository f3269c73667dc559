"""The REST API as an OpenAPI 3.1 document, generated from the registry. It imports no web framework."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vestige import __version__
from vestige.core.models import MAX_LABEL_CHARS
from vestige.operations.registry.registry import Operation, Registry
from vestige.operations.registry.route import Route, never
from vestige.operations.registry.schemas import Schema, Shapes, shapes

PREFIX = "/api/v1"
IDEMPOTENT = "idempotency_key"
IDEMPOTENCY_HEADER = "Idempotency-Key"
"""The header for the argument `idempotency_key`."""

_SCHEMAS = "#/components/schemas/"
_NULL = {"type": "null"}
_NAMING = {"nodeId": "/memories/{id}", "intentionId": "/intentions/{id}"}
"""The address of the object that a field of a response names; `id` is what was made at the address itself."""
_PARTS = tomllib.loads(Path(__file__).with_name("parts.toml").read_text(encoding="utf-8"))
_PERMISSIONS: Schema = _PARTS["security"]
_SCOPE, _DOMAIN, _ZONE, _REQUEST_ID, _CSRF = _PARTS["parameters"].values()
_SCOPE["schema"]["maxLength"] = _DOMAIN["schema"]["maxLength"] = MAX_LABEL_CHARS
_ALWAYS = (_SCOPE, _DOMAIN, _ZONE, _REQUEST_ID)
"""Headers that every request may have."""
FAILURES = {int(status): meaning for status, meaning in _PARTS["failures"].items()}
"""The statuses of failed requests, with their meaning."""
_RESPONSE_HEADERS = {
    "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in _PARTS["headers"]}
}
"""Headers of every response."""


def document(registry: Registry) -> dict[str, Any]:
    shown = shapes(registry, _SCHEMAS)
    routes = registry.routes()
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operation = registry.operations[route.operation]
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(operation, route, shown, routes)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Vestige",
            "version": __version__,
            "description": _PARTS["about"],
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "security": [{name: []} for name in _PERMISSIONS],
        "paths": paths,
        "components": {
            "schemas": {**shown.named, "Problem": _PARTS["problem"]},
            "headers": _PARTS["headers"],
            "responses": {f"Problem{status}": _failure(status) for status in FAILURES},
            "securitySchemes": _PERMISSIONS,
        },
    }


def _operation(operation: Operation, route: Route, shown: Shapes, routes: Sequence[Route]) -> dict[str, Any]:
    arguments = shown.arguments[operation.name]
    parameters = [_parameter(operation, arguments, name, "path") for name in route.places]
    apart = [name for name in arguments.get("properties", {}) if name not in route.places]
    if not route.has_body:
        parameters += [_parameter(operation, arguments, name, "query") for name in apart]
    parameters += _headers(route, arguments)
    return {
        "operationId": operation.name,
        "tags": [route.tag],
        "summary": operation.summary,
        "description": operation.description,
        "x-permission": operation.permission,
        "x-effect": operation.effect,
        "parameters": parameters,
        **({"requestBody": _body(operation, arguments, apart)} if route.has_body and apart else {}),
        "responses": _responses(route, shown.answers[operation.name], _links(route, shown, routes)),
    }


def _headers(route: Route, arguments: Schema) -> list[dict[str, Any]]:
    given = list(_ALWAYS) if route.method == "GET" else [*_ALWAYS, _CSRF]
    schema = arguments.get("properties", {}).get(IDEMPOTENT)
    if schema is not None:
        value = {key: one for key, one in _value(schema).items() if key != "description"}
        said = f"The argument `{IDEMPOTENT}`. The body may say it too, but not another one."
        given.append({"name": IDEMPOTENCY_HEADER, "in": "header", "description": said, "schema": value})
    return given


def _parameter(operation: Operation, arguments: Schema, name: str, location: str) -> dict[str, Any]:
    schema = _value(arguments["properties"][name])
    description = schema.pop("description", "")
    parameter = {
        "name": name,
        "in": location,
        "required": name in arguments.get("required", []),
        "description": description,
        "schema": schema,
    }
    return {**parameter, **({"example": operation.example[name]} if name in operation.example else {})}


def _value(schema: Schema) -> Schema:
    """The schema of a value in a path or query, which cannot be null."""
    kept = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
    branches = [one for one in kept.pop("anyOf", []) if one != _NULL]
    if len(branches) == 1:
        return {**branches[0], **kept}
    return {**kept, **({"anyOf": branches} if branches else {})}


def _body(operation: Operation, arguments: Schema, names: list[str]) -> dict[str, Any]:
    needed = [name for name in arguments.get("required", []) if name in names]
    example = {name: value for name, value in operation.example.items() if name in names}
    schema: Schema = {
        "type": "object",
        "properties": {name: arguments["properties"][name] for name in names},
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }
    content = {"schema": schema, **({"example": example} if example else {})}
    return {"required": bool(needed), "content": {"application/json": content}}


def _links(route: Route, shown: Shapes, routes: Sequence[Route]) -> dict[str, Any]:
    """Links from the result of an operation to others that take it."""
    answer = shown.answers[route.operation]
    kinds = [shown.named[one["$ref"].removeprefix(_SCHEMAS)] for one in answer.get("anyOf", [answer])]
    return {
        one.operation: {"operationId": one.operation, "parameters": {"id": f"$response.body#/{field}"}}
        for field, path in {"id": route.path + "/{id}", **_NAMING}.items()
        if any(field in kind.get("properties", {}) for kind in kinds)
        for one in routes
        if (one.path + "/").startswith(path + "/")
    }


def _responses(route: Route, answer: Schema, links: Mapping[str, Any]) -> dict[str, Any]:
    success: Mapping[str, Any] = {**_RESPONSE_HEADERS, "content": {"application/json": {"schema": answer}}}
    new = {"description": "A new object was created.", **({"links": links} if links else {}), **success}
    made = {} if route.created is never else {"201": new}
    failed = {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in FAILURES}
    return {"200": {"description": "Done.", **success}, **made, **failed}


def _failure(status: int) -> dict[str, Any]:
    return {
        "description": FAILURES[status],
        "headers": {**_RESPONSE_HEADERS["headers"], **_PARTS["failure_headers"].get(str(status), {})},
        "content": {"application/problem+json": {"schema": {"$ref": f"{_SCHEMAS}Problem"}}},
    }

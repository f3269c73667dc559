"""The REST API as an OpenAPI 3.1 document, generated from the registry. It imports no web framework."""

from collections.abc import Mapping, Sequence
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
_ABOUT = (
    "Every operation of Vestige at an address of its own. Arguments are in the path and in "
    "the body, or in the query for GET and DELETE (a list by repeating its name). Responses"
    " leave out unknown fields. Send one credential: of `Authorization`, `X-API-Key` and "
    "the cookie of a login the first that is present decides. Errors are "
    "`application/problem+json` (RFC 9457) with a stable `code`, a `detail` for people and "
    "often a `hint`. Details of failures of the store, a model or a setting are shown only "
    "to keys with the permission `admin` and without filters."
)
_PERMISSIONS = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key: `vst_…`."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "A key: `vst_…`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "vestige_session",
        "description": ("Set by logging in. Requests that change something also need `X-CSRF-Token`."),
    },
}
_SCOPE = {
    "name": "X-Vestige-Scope",
    "in": "header",
    "description": (
        "Narrows the request to this scope, and is its default. 403 outside of the access of the key."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LABEL_CHARS, "pattern": r"\S"},
    "example": "/project/vestige",
}
_DOMAIN = {
    "name": "X-Vestige-Domain",
    "in": "header",
    "description": "Narrows the request to this domain. 403 outside of the access of the key.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_LABEL_CHARS, "pattern": r"\S"},
}
_REQUEST_ID = {
    "name": "X-Request-Id",
    "in": "header",
    "description": ("The id of the request in the response and in the log. An invalid one is replaced."),
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
}
_CSRF = {
    "name": "X-CSRF-Token",
    "in": "header",
    "description": ("The CSRF token of the session, from `GET /login/session`; needed only with its cookie."),
    "schema": {"type": "string"},
}
_ALWAYS = (_SCOPE, _DOMAIN, _REQUEST_ID)
"""Headers that every request may have."""
_PROBLEM: Schema = {
    "type": "object",
    "description": "Why a request failed.",
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string", "description": "The meaning of the status."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "The error, for people."},
        "code": {"type": "string", "description": "The error, for programs."},
        "hint": {"type": "string", "description": "What to do about it."},
        "details": {"type": "object", "description": "Details, such as the argument concerned."},
        "requestId": {"type": "string", "description": "Finds the request in the server's log."},
    },
    "required": ["type", "title", "status", "detail", "code", "requestId"],
}
FAILURES = {
    400: "The arguments are invalid.",
    401: "There is no valid key.",
    403: "The key does not allow this, or not in this scope.",
    404: "Not found, or not visible to the key.",
    408: "The body was too slow.",
    409: ("The object was changed in the meantime, or the idempotency key belongs to another request."),
    413: "A limit is exceeded.",
    415: "The body is not JSON.",
    421: "The request is for another host.",
    429: "Too many requests.",
    500: "The server failed.",
    501: "A part of Vestige that this operation needs is not installed.",
    503: "The server, its model or its database is busy or unavailable.",
    504: "The time limit was exceeded.",
    507: "The disk is full.",
}
"""The statuses of failed requests, with their meaning."""
_WAIT = {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
_NAMED = {
    "X-Request-Id": {
        "description": "The id of the request: the given one, or a new one.",
        "required": True,
        "schema": {"type": "string"},
    }
}
_RESPONSE_HEADERS = {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in _NAMED}}
"""Headers of every response."""
_HEADERS: Mapping[int, Mapping[str, Any]] = {
    401: {
        "WWW-Authenticate": {
            "description": "How to authenticate.",
            "required": True,
            "schema": {"type": "string"},
        }
    },
    429: {"Retry-After": {**_WAIT, "required": True}},
    503: {"Retry-After": _WAIT},
}


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
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "security": [{name: []} for name in _PERMISSIONS],
        "paths": paths,
        "components": {
            "schemas": {**shown.named, "Problem": _PROBLEM},
            "headers": _NAMED,
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
        "headers": {**_RESPONSE_HEADERS["headers"], **_HEADERS.get(status, {})},
        "content": {"application/problem+json": {"schema": {"$ref": f"{_SCHEMAS}Problem"}}},
    }

"""Errors about arguments, in the words of the tools; the command line puts them into its own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake
from pydantic_core import ErrorDetails

from vestige.core.errors import InvalidInput, TooLarge, UnknownArgument, VestigeError, nearest_name
from vestige.settings.schema_words import in_words

# -- Allowed values in words


def allowed(model: type[BaseModel], where: Sequence[int | str]) -> str | None:
    """The values allowed at a path of the arguments, such as ("items", 3, "tags"), or None."""
    names = [to_snake(part) if isinstance(part, str) else part for part in where]
    return in_words(model.model_json_schema(by_alias=False), names)


# -- Validation errors

_FIELDS = "An object with "
"""Begins the only description that the message does not repeat as a whole."""


def validation_error(
    operation: str,
    model: type[BaseModel],
    exc: ValidationError,
    example: Mapping[str, Any] = MappingProxyType({}),
) -> InvalidInput:
    """The error for the first invalid argument of an operation. For a missing one the hint is the example."""
    first = _most_useful(model, exc.errors())
    where = ".".join(str(part) for part in first["loc"])
    details = {"argument": where, "operation": operation}
    if first["type"] == "extra_forbidden":
        known = _fields_at(model, first["loc"][:-1])
        if to_snake(str(first["loc"][-1])) in known:
            return InvalidInput(
                f"`{where}` is given twice, in snake_case and in camelCase.",
                hint="Give it once.",
                details=details,
            )
        return unknown_argument(operation, where, known)
    hint = allowed(model, first["loc"])
    if first["type"] == "missing":
        shown = f"For example {json.dumps(dict(example), ensure_ascii=False)}." if where in example else hint
        return InvalidInput(f"`{operation}` needs the argument `{where}`.", hint=shown, details=details)
    kind = TooLarge if first["type"] in ("too_long", "string_too_long") else InvalidInput
    if first["type"] != "value_error":
        more = hint if hint and hint.startswith(_FIELDS) else None
        return kind(f"`{where}`: {_expected(hint) or first['msg']}.", hint=more, details=details)
    why = first["msg"].removeprefix("Value error, ").rstrip(".")
    more = _hint_of(first) or hint
    return kind(f"`{where}`: {why}.", hint=None if why == _expected(more) else more, details=details)


def _most_useful(model: type[BaseModel], errors: list[ErrorDetails]) -> ErrorDetails:
    """The first error; if an argument is missing, prefer the misspelt name that was meant for it."""
    first = errors[0]
    if first["type"] == "missing":
        for error in errors:
            if error["type"] == "extra_forbidden" and error["loc"][:-1] == first["loc"][:-1]:
                close = nearest_name(str(error["loc"][-1]), _fields_at(model, error["loc"][:-1]))
                if close == to_snake(str(first["loc"][-1])):
                    return error
    return first


def _expected(hint: str | None) -> str | None:
    if hint is None:
        return None
    return "expected an object" if hint.startswith("An object") else f"expected {hint[0].lower()}{hint[1:-1]}"


def _hint_of(error: ErrorDetails) -> str | None:
    """The hint of the `VestigeError` that caused a validation error."""
    cause = getattr(error.get("ctx", {}).get("error"), "__cause__", None)
    return cause.hint if isinstance(cause, VestigeError) else None


def unknown_argument(operation: str, where: str, known: Sequence[str]) -> UnknownArgument:
    """The error for an unknown argument, with the nearest known name."""
    takes = f"Its arguments are: {', '.join(known)}." if known else "It takes no arguments."
    return UnknownArgument(
        f"`{operation}` has no argument `{where}`.",
        hint=_nearest(where.rpartition(".")[2], known) or takes,
        details={"argument": where, "operation": operation},
    )


def no_action(tool: str, action: object, known: Sequence[str]) -> InvalidInput:
    """The error for a tool call with a missing or unknown `action`."""
    close = _nearest(action, known) if isinstance(action, str) else None
    return InvalidInput(
        f"`{tool}` has no action {action!r}." if action else f"`{tool}` needs an `action`.",
        hint=close or f"One of: {', '.join(known)}.",
        details={"argument": "action", "allowed": list(known)},
    )


def _nearest(wrong: str, known: Iterable[str]) -> str | None:
    close = nearest_name(wrong, known)
    return f"Did you mean `{close}`?" if close else None


def _fields_at(model: type[BaseModel], where: tuple[int | str, ...]) -> list[str]:
    """The field names of the model at a path inside the arguments, such as ("items", 3)."""
    for part in where:
        if isinstance(part, int):
            continue
        field = next((f for name, f in model.model_fields.items() if part in (name, f.alias)), None)
        inner = _model_in(field.annotation) if field is not None else None
        if inner is None:
            break
        model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        found = _model_in(inner)
        if found is not None:
            return found
    return None

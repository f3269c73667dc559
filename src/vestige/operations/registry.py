"""Operations, written once: signature, docstring and example give every transport its view.

An `Operation` is atomic (`memory.get`) and has one permission, one effect and one example. A
`Tool` is what an MCP client sees: one operation, or a grouping of several behind an `action`.
Aliases, camelCase spellings and groupings are data; no transport knows any operation by name.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.alias_generators import to_camel, to_snake

from vestige.engine.context import Call
from vestige.errors import InvalidInput, NotFound, TooLarge, UnknownArgument
from vestige.nearest import nearest_name

Permission = Literal["read", "write", "admin"]
Effect = Literal["none", "touch", "write", "delete"]
Lane = Literal["short", "long"]


class Wire(BaseModel):
    """A value as it travels: camelCase names, absent where nothing is known."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    def wire(self) -> dict[str, Any]:
        """This value as JSON-able data."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Arguments(Wire):
    """The arguments of an operation: unknown ones are refused, both spellings are taken."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False, strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing Vestige does, with everything a transport needs to offer it."""

    name: str
    title: str
    summary: str
    description: str
    permission: Permission
    effect: Effect
    lane: Lane
    example: Mapping[str, Any]
    arguments: type[Arguments]
    positional: tuple[str, ...]
    run: Callable[[Call, Arguments], Wire]
    render: Callable[[Any], str]
    command: tuple[str, ...]
    command_only: bool

    def call(self, call: Call, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check permission and arguments, run, and give the answer as JSON-able data."""
        return self.answer(call, arguments).wire()

    def answer(self, call: Call, arguments: Mapping[str, Any]) -> Wire:
        """The same, as the typed value (the command line renders it)."""
        call.require(self.permission)
        parsed = self.parse(arguments)
        call.check()
        return self.run(call, parsed)

    def parse(self, arguments: Mapping[str, Any]) -> Arguments:
        """The arguments, checked; InvalidInput says which one and why."""
        try:
            return self.arguments.model_validate(arguments)
        except ValidationError as exc:
            raise _refusal(self, exc) from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """An MCP tool: one operation, or several told apart by `action`."""

    name: str
    title: str
    description: str
    actions: Mapping[str, str]
    """Action name to operation name; for a plain tool the one entry has the key ''."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """An MCP resource: the answer of an operation under a URI. `{id}` in the URI is an argument."""

    uri: str
    name: str
    description: str
    operation: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Registry:
    """All operations, tools, resources and old names."""

    def __init__(self) -> None:
        self.operations: dict[str, Operation] = {}
        self.tools: dict[str, Tool] = {}
        self.aliases: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self.resources: dict[str, Resource] = {}

    def operation(
        self,
        name: str,
        *,
        permission: Permission,
        effect: Effect,
        example: Mapping[str, Any],
        render: Callable[[Any], str],
        title: str | None = None,
        positional: tuple[str, ...] = (),
        lane: Lane = "short",
        command: str | None = None,
        command_only: bool = False,
    ) -> Callable[[Callable[..., Wire]], Callable[..., Wire]]:
        """Register a function `(call, …) -> Wire` as the operation `name`.

        Its parameters after `call` are the arguments; one parameter whose type is an `Arguments`
        class brings all of them at once. `command` is its name on the command line when that
        differs; `command_only` keeps it off MCP.
        """

        def register(function: Callable[..., Wire]) -> Callable[..., Wire]:
            summary, description = _prose(function)
            arguments, run = _arguments_of(name, function)
            operation = Operation(
                name=name,
                title=title or summary.rstrip("."),
                summary=summary,
                description=description,
                permission=permission,
                effect=effect,
                lane=lane,
                example=example,
                arguments=arguments,
                positional=positional,
                run=run,
                render=render,
                command=tuple((command or name.replace(".", " ").replace("_", "-")).split()),
                command_only=command_only,
            )
            self._take(operation)
            return function

        return register

    def _take(self, operation: Operation) -> None:
        name = operation.name
        self.operations[name] = operation
        if not operation.command_only and "." not in name:
            self.tools[name] = Tool(
                name=name, title=operation.title, description=operation.description, actions={"": name}
            )

    def group(self, tool: str, *, title: str, description: str, actions: Mapping[str, str]) -> None:
        """Offer several operations as one tool with an `action` argument.

        A long operation needs a tool of its own: a tool has one lane, and short calls keep their order.
        """
        if any(self.operations[name].lane == "long" for name in actions.values()):
            raise TypeError(f"The tool {tool} groups a long operation.")
        self.tools[tool] = Tool(name=tool, title=title, description=description, actions=actions)

    def alias(self, old: str, tool: str, **arguments: Any) -> None:
        """Let an old tool name go on working: it becomes `tool` with these arguments filled in."""
        self.aliases[old] = (tool, arguments)

    def resource(self, uri: str, name: str, description: str, operation: str, **arguments: Any) -> None:
        """Offer an operation's answer under a URI."""
        self.resources[uri] = Resource(
            uri=uri, name=name, description=description, operation=operation, arguments=arguments
        )

    def resolve(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Operation, dict[str, Any]]:
        """The operation a tool call means, and the arguments left for it."""
        given = dict(arguments)
        if tool in self.aliases:
            tool, fixed = self.aliases[tool]
            given = {**fixed, **given}
        if tool not in self.tools:
            close = nearest_name(tool, self.tools)
            raise NotFound(f"There is no tool `{tool}`.", hint=f"Did you mean `{close}`?" if close else None)
        actions = self.tools[tool].actions
        if "" in actions:
            return self.operations[actions[""]], given
        action = given.pop("action", None)
        if not isinstance(action, str) or action not in actions:
            close = nearest_name(action, actions) if isinstance(action, str) else None
            raise InvalidInput(
                f"`{tool}` has no action {action!r}." if action else f"`{tool}` needs an `action`.",
                hint=f"Did you mean `{close}`?" if close else f"One of: {', '.join(actions)}.",
                details={"argument": "action", "allowed": list(actions)},
            )
        return self.operations[actions[action]], given

    def match_resource(self, uri: str) -> tuple[Operation, dict[str, Any]]:
        """The operation and arguments behind a resource URI, or NotFound."""
        # Some clients prefix the server's name.
        plain = uri.removeprefix("vestige/")
        for resource in self.resources.values():
            before, braces, _ = resource.uri.partition("{id}")
            if plain == resource.uri:
                return self.operations[resource.operation], dict(resource.arguments)
            if braces and plain.startswith(before) and len(plain) > len(before):
                given = {**resource.arguments, "id": plain[len(before) :]}
                return self.operations[resource.operation], given
        raise NotFound(f"There is no resource {uri}.", details={"uri": uri})


def _prose(function: Callable[..., Any]) -> tuple[str, str]:
    doc = inspect.cleandoc(function.__doc__ or "")
    if not doc:
        raise TypeError(f"The operation {function.__name__} has no docstring.")
    summary = doc.split("\n\n", 1)[0].replace("\n", " ")
    return summary, "\n\n".join(part.replace("\n", " ") for part in doc.split("\n\n"))


def _arguments_of(
    name: str, function: Callable[..., Wire]
) -> tuple[type[Arguments], Callable[[Call, Arguments], Wire]]:
    """The argument model of a function, and how to call the function with one."""
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if len(parameters) == 1:
        whole = hints[parameters[0].name]
        if isinstance(whole, type) and issubclass(whole, Arguments):
            return whole, function
    fields: dict[str, Any] = {}
    for parameter in parameters:
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    words = name.replace(".", "_").split("_")
    model: type[Arguments] = create_model(
        "".join(word.title() for word in words) + "Arguments", __base__=Arguments, **fields
    )

    def run(call: Call, arguments: Arguments) -> Wire:
        return function(call, **{field: getattr(arguments, field) for field in fields})

    return model, run


def _refusal(operation: Operation, exc: ValidationError) -> InvalidInput:
    first = exc.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    details = {"argument": where, "operation": operation.name}
    if first["type"] == "extra_forbidden":
        return _unknown(operation, first["loc"], where, details)
    if first["type"] == "missing":
        return InvalidInput(f"`{operation.name}` needs the argument `{where}`.", details=details)
    kind = TooLarge if first["type"] in ("too_long", "string_too_long") else InvalidInput
    why = first["msg"].removeprefix("Value error, ").rstrip(".")
    return kind(f"`{where}`: {why}.", details=details)


def _unknown(
    operation: Operation, loc: tuple[int | str, ...], where: str, details: dict[str, str]
) -> InvalidInput:
    known = _fields_at(operation.arguments, loc[:-1])
    if to_snake(str(loc[-1])) in known:
        return InvalidInput(f"`{where}` is given twice, in both spellings.", details=details)
    close = nearest_name(str(loc[-1]), known)
    return UnknownArgument(
        f"`{operation.name}` has no argument `{where}`.",
        hint=f"Did you mean `{close}`?" if close else f"It takes: {', '.join(known)}.",
        details=details,
    )


def _fields_at(model: type[BaseModel], where: tuple[int | str, ...]) -> list[str]:
    """The field names of the model at a place inside the arguments, such as ("items", 3)."""
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

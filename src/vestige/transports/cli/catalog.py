"""The catalog of commands: what help, completion and parsing need to know about every operation, read from
`commands.json`, which is generated from the registry. Because it is a file, they load no operation."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from vestige.core.lazy_dataclass import dataclass
from vestige.transports.arguments import Argument, Wording, arguments_of, example_of

if TYPE_CHECKING:
    from vestige.operations.registry.registry import Operation, Registry

FILE = "commands.json"
PAGES = ("operations", "tools", "settings", "events", "errors", "command-line")
"""The reference pages that `vestige docs` shows."""
_WHOLE_REGISTRY = "vestige.operations.registry"
"""Operations below it look at the others, so all of them are loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """An operation as the command line offers it. `module` defines it."""

    name: str
    module: str
    command: tuple[str, ...]
    title: str
    summary: str
    description: str
    example: str
    asks: bool
    """Whether it asks before it does anything."""
    positional: tuple[str, ...]
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, kw_only=True)
class CommandCatalog:
    """All commands that are operations, with their groups, short names and sections."""

    commands: tuple[CommandEntry, ...]
    groups: Mapping[str, str]
    """Help of the groups, by name."""
    tools: Mapping[str, str]
    """The commands by the name of their tool: hints name tools."""
    short_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    summaries: Mapping[str, str] = field(default_factory=dict)
    """The first lines of the help of commands that are no operations."""

    @cached_property
    def paths(self) -> dict[tuple[str, ...], CommandEntry]:
        return {one.command: one for one in self.commands}

    def names_of(self, command: tuple[str, ...]) -> list[str]:
        """The short names of a command."""
        return [name for name, path in self.short_names.items() if path == command]

    def wording(self, entry: CommandEntry, *, all_arguments: bool = False) -> Wording:
        """The words of a command. With `all_arguments`, texts may name those of other commands too."""
        others = [one for other in self.commands for one in other.arguments] if all_arguments else []
        return Wording(entry.arguments, self.tools, others)


def packaged() -> CommandCatalog:
    """The catalog in the package; made from the registry if the file is missing or damaged."""
    try:
        with open(  # noqa: PTH123  pathlib is not needed for this
            __file__.rpartition(os.sep)[0] + os.sep + FILE, "rb"
        ) as file:
            return read(orjson.loads(file.read()))
    except (OSError, ValueError, KeyError, TypeError):
        from vestige.operations.registry.groups import registry

        return of_registry(registry)


def read(document: Mapping[str, Any]) -> CommandCatalog:
    """The catalog in a JSON document."""
    return CommandCatalog(
        commands=tuple(_entry(one) for one in document["commands"]),
        groups=document["groups"],
        tools=document["tools"],
        short_names={name: tuple(path) for name, path in document["short_names"].items()},
        sections={title: tuple(names) for title, names in document["sections"].items()},
        summaries=document["summaries"],
    )


def _entry(said: Mapping[str, Any]) -> CommandEntry:
    return CommandEntry(
        **{
            **said,
            "command": tuple(said["command"]),
            "positional": tuple(said["positional"]),
            "arguments": tuple(
                Argument(**{**one, "choices": tuple(one["choices"])}) for one in said["arguments"]
            ),
        }
    )


def document(catalog: CommandCatalog) -> dict[str, Any]:
    """The catalog as JSON-able data."""
    return {
        "commands": [asdict(one) for one in catalog.commands],
        "groups": dict(catalog.groups),
        "tools": dict(catalog.tools),
        "short_names": dict(catalog.short_names),
        "sections": dict(catalog.sections),
        "summaries": dict(catalog.summaries),
    }


def of_registry(registry: "Registry", summaries: Mapping[str, str] | None = None) -> CommandCatalog:
    """The catalog of a registry."""
    from vestige.operations.registry.command_names import SECTIONS, SHORT_NAMES

    known = registry.operations
    return CommandCatalog(
        commands=tuple(_described(one) for one in known.values()),
        groups=_groups(registry),
        tools={
            tool.name: " ".join(known[tool.actions[""]].command)
            for tool in registry.tools.values()
            if "" in tool.actions
        },
        short_names={name: known[one].command for name, one in SHORT_NAMES.items() if one in known},
        sections=SECTIONS,
        summaries=summaries or {},
    )


def _described(operation: "Operation") -> CommandEntry:
    module = operation.module
    return CommandEntry(
        name=operation.name,
        module=f"{_WHOLE_REGISTRY}.groups" if module.startswith(_WHOLE_REGISTRY) else module,
        command=operation.command,
        title=operation.title,
        summary=operation.summary,
        description=operation.description,
        example=example_of(operation),
        asks=operation.effect == "delete",
        positional=operation.positional,
        arguments=tuple(arguments_of(operation)),
    )


def _groups(registry: "Registry") -> dict[str, str]:
    """The help of each group: the description of its tool up to the colon, else its commands."""
    groups: dict[str, str] = {}
    for tool in registry.tools.values():
        for name in tool.actions.values():
            path = registry.operations[name].command
            if len(tool.actions) > 1 and len(path) > 1:
                groups.setdefault(path[0], tool.description.partition(":")[0] + ".")
    members: dict[str, list[str]] = {}
    for operation in registry.operations.values():
        if len(operation.command) > 1:
            members.setdefault(operation.command[0], []).append(operation.command[1])
    for name, inner in members.items():
        groups.setdefault(name, f"The {name}: {_listed(inner)}.")
    return groups


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names))

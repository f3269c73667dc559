"""The gateway tool, which can run every other tool, and `tools.describe`."""

from typing import Annotated, Any

from pydantic import Field

from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Tool, registry
from vestige.operations.registry.schemas import tool_schema
from vestige.operations.shared.text import count, fields, styled, table


class ToolLine(Wire):
    name: str
    summary: str


class ToolsListed(Wire):
    """All tools."""

    tools: list[ToolLine]
    hint: str


class ToolDescribed(Wire):
    """One tool with its arguments, actions and examples."""

    name: str
    description: str
    input_schema: dict[str, Any]
    actions: dict[str, str] | None = None
    examples: list[dict[str, Any]]


def render_tools(view: ToolsListed | ToolDescribed) -> str:
    if isinstance(view, ToolsListed):
        rows = ((one.name, one.summary) for one in view.tools)
        return f"{table(('tool', 'what it does'), rows)}\n\n{count(len(view.tools), 'tool')}. {view.hint}"
    needed = view.input_schema.get("required", [])
    arguments = (
        (name, "required" if name in needed else "", schema.get("description", ""))
        for name, schema in view.input_schema["properties"].items()
    )
    parts = [
        f"{styled('strong', view.name)}\n\n{view.description}",
        table(("argument", "", "meaning"), arguments),
    ]
    if view.actions:
        parts.append(fields(view.actions.items()))
    return "\n\n".join(parts)


@registry.operation(
    "tools.describe",
    permission="read",
    example={"tool": "memory"},
    positional=("tool",),
    command="tools",
    title="The tools",
    render=render_tools,
)
def describe_tools(
    call: Call, tool: Annotated[str | None, Field(description="Tool name. Omit to list all tools.")] = None
) -> ToolsListed | ToolDescribed:
    """List every MCP tool, or show one in full: its arguments, actions and examples."""
    if tool is not None:
        return _described(registry.tool(registry.aliases.get(tool, (tool, {}))[0]))
    others = (one for one in registry.tools.values() if one.name != registry.gateway)
    return ToolsListed(
        tools=[ToolLine(name=one.name, summary=one.summary) for one in others],
        hint="Pass `tool` to see its arguments.",
    )


def _described(tool: Tool) -> ToolDescribed:
    operations = {action: registry.operations[name] for action, name in tool.actions.items()}
    return ToolDescribed(
        name=tool.name,
        description=tool.full,
        input_schema=tool_schema(registry, tool),
        actions={action: one.summary for action, one in operations.items()} if "" not in operations else None,
        examples=[
            {**({"action": action} if action else {}), **one.example} for action, one in operations.items()
        ],
    )


registry.open_gateway(
    "vestige",
    title="Every other tool",
    description=(
        "Run any tool of this memory. Without arguments: list the tools. With `tool`: describe it. With "
        "`tool` and `arguments`: run it."
    ),
    describe="tools.describe",
)

"""The same tool on the SDK's low-level server, over stdio."""

import asyncio

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

HELLO = types.Tool(
    name="hello",
    description="Greet somebody.",
    input_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)


async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[HELLO])


async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = f"Hello, {(params.arguments or {})['name']}!"
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    server = Server("hello", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())

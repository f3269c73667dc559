"""The SDK's usual hello world: one tool on its high-level server, over stdio."""

from mcp.server import MCPServer

server = MCPServer("hello")


@server.tool()
def hello(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    server.run()

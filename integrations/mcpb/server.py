"""Entry point of the bundle: the MCP server of Vestige on standard input and output."""

from vestige.transports.mcp.stdio import main

main()

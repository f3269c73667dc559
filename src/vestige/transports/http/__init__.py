"""The server: MCP, REST and live events over HTTP, views of one application."""

"""Commands for Claude Code, which rewrites its user settings file all the time. A running session can
overwrite an edit of the file, but not a change by its own command."""

from vestige.transports.connect.clients import CLIENTS
from vestige.transports.connect.servers import Server, Stdio

CLIENT = "claude-code"
PROGRAM = "claude"


def add(server: Server, name: str) -> list[str]:
    """The command that adds a server for all projects of the user."""
    words = [PROGRAM, "mcp", "add", "--scope", "user"]
    if isinstance(server, Stdio):
        return [*words, name, "--", server.command, *server.args]
    words += ["--transport", "http", name, server.url]
    headers = CLIENTS[CLIENT].entry(server).get("headers")
    if isinstance(headers, dict):
        # After the URL: the option takes every following word.
        words += ["--header", *(f"{key}: {value}" for key, value in headers.items())]
    return words


def remove(name: str) -> list[str]:
    """The command that removes the server."""
    return [PROGRAM, "mcp", "remove", "--scope", "user", name]

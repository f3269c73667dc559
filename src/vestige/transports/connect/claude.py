"""Claude Code keeps its user settings in a file that it rewrites all the time: it is asked to change it.

An edit from outside can be lost to a session that is running. Its own command cannot.
"""

from vestige.transports.connect.clients import CLIENTS
from vestige.transports.connect.servers import Server, Stdio

CLIENT = "claude-code"
PROGRAM = "claude"


def add(server: Server, name: str) -> list[str]:
    """The words of the command that adds a server for all projects of the user."""
    words = [PROGRAM, "mcp", "add", "--scope", "user"]
    if isinstance(server, Stdio):
        return [*words, name, "--", server.command, *server.args]
    words += ["--transport", "http", name, server.url]
    headers = CLIENTS[CLIENT].entry(server).get("headers")
    if isinstance(headers, dict):
        # Behind the address: the option takes every word that follows it.
        words += ["--header", *(f"{key}: {value}" for key, value in headers.items())]
    return words


def remove(name: str) -> list[str]:
    """The words of the command that takes it out again."""
    return [PROGRAM, "mcp", "remove", "--scope", "user", name]

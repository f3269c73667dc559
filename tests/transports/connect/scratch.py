"""A machine of its own in a temporary folder, and settings files as people have them."""

from datetime import UTC, datetime
from pathlib import Path

from vestige.transports.connect import plans
from vestige.transports.connect.clients import (
    CLIENTS,
    AgentClient,
    Http,
    InlineKey,
    Machine,
    Named,
    Scope,
    Server,
    Stdio,
)

NOW = datetime(2026, 11, 16, 16, 0, tzinfo=UTC)
SECRET = "vst_" + "s3cret" * 5
STDIO = Stdio(command="/opt/my venv/bin/vestige-mcp", args=("--data-dir", "/home/ada/memories"))
URL = "http://127.0.0.1:3927/mcp"

COMMENTED = {
    "json": """\
// The first line is a comment.
{
    "theme": "dark", // behind a value
    /* a block
       of two lines */
    "%(top)s": {
        // above a server
        "other": { "command": "npx", "args": ["-y", "other",], }, // "vestige": not this one
    },
    "last": [1, 2.5e3, null, true, "\\u00e9 // no comment"], // the end
}
""",
    "toml": """\
# The first line is a comment.
model = "o9"  # behind a value
prompt = \"\"\"
[mcp_servers.vestige]
command = "inside a text"
\"\"\"

[%(top)s.other] # above a server
command = "npx"
args = [
    "-y", # [not a table]
    'other',
]

# about the profile
[profiles."a.b"]
ratio = 0.5
""",
}
PLAIN = {
    "json": '{\n  "%(top)s": {\n    "other": {\n      "command": "npx"\n    }\n  },\n  "last": 1\n}\n',
    "toml": 'model = "o9"\n\n[%(top)s.other]\ncommand = "npx"\n',
}
BROKEN = {"json": '{"%(top)s": {"other": }', "toml": "[%(top)s.other\ncommand = 1"}


def machine(folder: Path, platform: str = "linux") -> Machine:
    """A machine with nothing on it."""
    home, project = folder / "home", folder / "project"
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    return Machine(home=home, platform=platform, project=project)


def http_of(client: AgentClient) -> Http:
    """A server with a key as the client can hold it best."""
    return Http(url=URL, key=Named(variable="VESTIGE_KEY") if client.reference else InlineKey(text=SECRET))


def cases() -> list[tuple[str, Server]]:
    """Every client with every sort of server that it takes."""
    found: list[tuple[str, Server]] = [(name, STDIO) for name in CLIENTS]
    return found + [(name, http_of(client)) for name, client in CLIENTS.items() if client.http]


def filled(client: AgentClient, text: str) -> str:
    """A specimen with the name that this client lists servers under."""
    return text % {"top": client.containers[-1][0]}


def connect(client: AgentClient, where: Machine, server: Server, scope: Scope = "user") -> plans.FileChange:
    """Connect a client."""
    change = plans.connect(client, where, server, name="vestige", scope=scope)
    change.apply(NOW)
    return change


def undo(client: AgentClient, where: Machine, scope: Scope = "user") -> plans.FileChange:
    """Take it out again."""
    change = plans.undo(client, where, name="vestige", scope=scope)
    change.apply(NOW)
    return change

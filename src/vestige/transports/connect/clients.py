"""The supported clients, as data: where each keeps its settings and the form of an entry.

`source` lists the pages and source files of these facts. Some could not be read first hand:
docs/howto/connect-clients.md lists those. Unconfirmed features are left out: `http` of a client that cannot
send a header, `reference` of one that reads no variables there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from vestige.core.errors import InvalidInput
from vestige.core.nearest import nearest_name
from vestige.transports.connect.machine import Machine
from vestige.transports.connect.servers import Entry, Http, InlineKey, Json, Keys, Named, Server, Stdio

FormatName = Literal["json", "toml"]
Scope = Literal["user", "project"]
Places = Mapping[str, tuple[str, ...]]
"""Files by platform (as in `sys.platform`; others are like Linux): the first that exists counts."""

VARIABLE = "NAME"
"""Placeholder for the name of a variable in a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClient:
    """A program that speaks MCP. `containers` are the keys under which servers are listed; the first that
    exists counts, else the last. `reference` is how a value refers to an environment variable. `signs` are
    files of an installed client."""

    name: str
    title: str
    user: Places
    project: tuple[str, ...] = ()
    format: FormatName = "json"
    containers: tuple[Keys, ...] = (("mcpServers",),)
    stdio: Callable[[Stdio], Entry]
    http: Callable[[Http, str], Entry] | None
    reference: str | None = None
    signs: tuple[str, ...]
    program: str | None = None
    advice: str = ""
    source: tuple[str, ...]

    def files(self, scope: Scope, platform: str) -> tuple[str, ...]:
        """Its settings files of a scope, as templates for `Machine.place`."""
        if scope == "project":
            return self.project
        return self.user.get(platform, self.user["linux"])

    def entry(self, server: Server) -> Entry:
        """The entry for a server, or InvalidInput if the client does not support it."""
        if isinstance(server, Stdio):
            return self.stdio(server)
        if self.http is None:
            raise InvalidInput(
                f"{self.title} does not support HTTP servers in its settings file.",
                hint="Omit --http: it then starts `vestige-mcp` itself.",
                details={"client": self.name},
            )
        return self.http(server, self._authorization(server))

    def installed(self, machine: Machine) -> bool:
        return machine.has(self.signs) or bool(self.program and machine.which(self.program))

    def _authorization(self, server: Http) -> str:
        match server.key:
            case None:
                return ""
            case InlineKey(text=text):
                return f"Bearer {text}"
            case Named(variable=variable):
                if self.reference is None:
                    raise InvalidInput(
                        f"{self.title} does not read environment variables in its settings file.",
                        hint="Pass the key itself with --key (it is then stored in your own file), or omit "
                        "--http.",
                        details={"client": self.name, "argument": "key_env"},
                    )
                return f"Bearer {self.reference.replace(VARIABLE, variable)}"


def find(name: str) -> AgentClient:
    """The client of a name, or InvalidInput with the nearest one."""
    if name in CLIENTS:
        return CLIENTS[name]
    close = nearest_name(name, CLIENTS)
    raise InvalidInput(
        f"There is no client `{name}`.",
        hint=f"Did you mean `{close}`?" if close else f"One of: {', '.join(CLIENTS)}.",
        details={"argument": "client", "allowed": list(CLIENTS)},
    )


# -- Forms of entries


def _started(kind: str | None = None) -> Callable[[Stdio], Entry]:
    """`command` and `args`, with the `type` that some clients need."""

    def entry(server: Stdio) -> Entry:
        shown: Entry = {"type": kind} if kind else {}
        shown["command"] = server.command
        if server.args:
            shown["args"] = list(server.args)
        return shown

    return entry


def _by_url(address: str, kind: str | None = None) -> Callable[[Http, str], Entry]:
    """The URL under this name, and the key in a header."""

    def entry(server: Http, authorization: str) -> Entry:
        shown: Entry = {"type": kind} if kind else {}
        shown[address] = server.url
        if authorization:
            shown["headers"] = {"Authorization": authorization}
        return shown

    return entry


def _codex_http(server: Http, authorization: str) -> Entry:
    shown: Entry = {"url": server.url}
    match server.key:
        case Named(variable=variable):
            shown["bearer_token_env_var"] = variable
        case InlineKey():
            shown["http_headers"] = {"Authorization": authorization}
        case None:
            pass
    return shown


def _opencode_stdio(server: Stdio) -> Entry:
    words: list[Json] = [server.command, *server.args]
    return {"type": "local", "command": words}


# -- Clients


def _everywhere(*files: str) -> Places:
    return {"linux": files}


_CLINE = "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"

_ALL = (
    AgentClient(
        name="claude-code",
        title="Claude Code",
        user=_everywhere("~/.claude.json"),
        project=(".mcp.json",),
        stdio=_started("stdio"),
        http=_by_url("url", "http"),
        reference="${NAME}",
        signs=("~/.claude.json", "~/.claude"),
        program="claude",
        advice="`/mcp` in a session shows it.",
        source=(
            "https://code.claude.com/docs/en/mcp",
            "https://github.com/anthropics/claude-code/issues/4193",
        ),
    ),
    AgentClient(
        name="claude-desktop",
        title="Claude Desktop",
        user=_everywhere("CONFIG/Claude/claude_desktop_config.json"),
        stdio=_started(),
        http=None,
        signs=("CONFIG/Claude",),
        advice="Quit Claude Desktop and start it again.",
        source=(
            "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/docs/docs/develop/connect-local-servers.mdx",
            "https://github.com/anthropics/claude-ai-mcp/issues/120",
            "https://github.com/aaddrick/claude-desktop-debian",
        ),
    ),
    AgentClient(
        name="codex",
        title="Codex",
        user=_everywhere("~/.codex/config.toml"),
        project=(".codex/config.toml",),
        format="toml",
        containers=(("mcp_servers",),),
        stdio=_started(),
        http=_codex_http,
        reference=VARIABLE,
        signs=("~/.codex",),
        program="codex",
        advice="`codex mcp list` shows it. A project's file counts only when Codex trusts the project.",
        source=(
            "https://github.com/openai/codex/blob/main/codex-rs/config/src/mcp_types.rs",
            "https://developers.openai.com/codex/mcp",
        ),
    ),
    AgentClient(
        name="cursor",
        title="Cursor",
        user=_everywhere("~/.cursor/mcp.json"),
        project=(".cursor/mcp.json",),
        stdio=_started(),
        http=_by_url("url"),
        reference="${env:NAME}",
        signs=("~/.cursor", "CONFIG/Cursor"),
        program="cursor",
        advice="Restart Cursor, and look under MCP in its settings.",
        source=("https://cursor.com/docs/mcp",),
    ),
    AgentClient(
        name="vscode",
        title="VS Code",
        user=_everywhere("CONFIG/Code/User/mcp.json"),
        project=(".vscode/mcp.json",),
        containers=(("servers",),),
        stdio=_started("stdio"),
        http=_by_url("url", "http"),
        reference="${env:NAME}",
        signs=("CONFIG/Code/User",),
        program="code",
        advice="`MCP: List Servers` in the command palette starts it.",
        source=(
            "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
            "https://github.com/microsoft/vscode/issues/245237",
        ),
    ),
    AgentClient(
        name="windsurf",
        title="Windsurf",
        user=_everywhere("~/.codeium/windsurf/mcp_config.json"),
        stdio=_started(),
        http=_by_url("serverUrl"),
        reference="${env:NAME}",
        signs=("~/.codeium/windsurf",),
        program="windsurf",
        advice="Refresh the MCP servers in Cascade.",
        source=("https://docs.windsurf.com/windsurf/cascade/mcp",),
    ),
    AgentClient(
        name="zed",
        title="Zed",
        user={
            "linux": ("CONFIG/zed/settings.json",),
            "darwin": ("~/.config/zed/settings.json",),
            "win32": ("CONFIG/Zed/settings.json",),
        },
        containers=(("context_servers",),),
        stdio=_started(),
        http=_by_url("url"),
        signs=("CONFIG/zed", "CONFIG/Zed", "~/.config/zed"),
        program="zed",
        advice="Zed starts it when the file is saved.",
        source=("https://zed.dev/docs/ai/mcp", "https://zed.dev/docs/configuring-zed"),
    ),
    AgentClient(
        name="gemini-cli",
        title="Gemini CLI",
        user=_everywhere("~/.gemini/settings.json"),
        project=(".gemini/settings.json",),
        stdio=_started(),
        http=_by_url("httpUrl"),
        reference="${NAME}",
        signs=("~/.gemini",),
        program="gemini",
        advice="Restart Gemini CLI; `/mcp` shows it.",
        source=(
            "https://geminicli.com/docs/tools/mcp-server",
            "https://geminicli.com/docs/cli/configuration",
        ),
    ),
    AgentClient(
        name="cline",
        title="Cline",
        user=_everywhere(f"CONFIG/{_CLINE}", "~/.cline/data/settings/cline_mcp_settings.json"),
        stdio=_started(),
        http=_by_url("url", "streamableHttp"),
        signs=("CONFIG/Code/User/globalStorage/saoudrizwan.claude-dev", "~/.cline"),
        program="cline",
        advice="Cline starts it when the file is saved.",
        source=(
            "https://github.com/cline/cline/blob/main/src/services/mcp/schemas.ts",
            "https://docs.cline.bot/mcp/adding-and-configuring-servers",
        ),
    ),
    AgentClient(
        name="continue",
        title="Continue",
        user=_everywhere("~/.continue/mcpServers/vestige.json"),
        project=(".continue/mcpServers/vestige.json",),
        stdio=_started(),
        http=_by_url("url", "http"),
        signs=("~/.continue",),
        advice="Reload the window; MCP works in agent mode.",
        source=(
            "https://docs.continue.dev/customize/deep-dives/mcp",
            "https://github.com/continuedev/continue/blob/main/core/context/mcp/json/loadJsonMcpConfigs.ts",
        ),
    ),
    AgentClient(
        name="opencode",
        title="opencode",
        user={
            "linux": ("CONFIG/opencode/opencode.json", "CONFIG/opencode/opencode.jsonc"),
            "darwin": ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
            "win32": ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
        },
        project=("opencode.json", "opencode.jsonc"),
        # Version 2 lists servers one level deeper, and reads files of version 1 unchanged.
        containers=(("mcp", "servers"), ("mcp",)),
        stdio=_opencode_stdio,
        http=_by_url("url", "remote"),
        reference="{env:NAME}",
        signs=("CONFIG/opencode", "~/.config/opencode"),
        program="opencode",
        advice="Restart opencode.",
        source=(
            "https://opencode.ai/v1/docs/mcp-servers/",
            "https://opencode.ai/v2/docs/mcp-servers/",
            "https://opencode.ai/docs/migrate-v1/",
        ),
    ),
)

CLIENTS: Mapping[str, AgentClient] = {client.name: client for client in _ALL}

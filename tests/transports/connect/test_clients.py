"""What each client reads, and where: the table against what their documentation says."""

from pathlib import Path

import pytest

from testbed.failures import each
from tests.transports.connect.scratch import SECRET, STDIO, URL, http_of, machine
from vestige.core.errors import InvalidInput
from vestige.transports.connect import plans
from vestige.transports.connect.clients import (
    CLIENTS,
    Entry,
    Http,
    InlineKey,
    Named,
    Stdio,
    claude_add,
    claude_remove,
    find,
)

COMMAND: Entry = {"command": STDIO.command, "args": list(STDIO.args)}
ENTRIES: dict[str, tuple[Entry, Entry | None]] = {
    "claude-code": (
        {"type": "stdio", **COMMAND},
        {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${VESTIGE_KEY}"}},
    ),
    "claude-desktop": (COMMAND, None),
    "codex": (COMMAND, {"url": URL, "bearer_token_env_var": "VESTIGE_KEY"}),
    "cursor": (COMMAND, {"url": URL, "headers": {"Authorization": "Bearer ${env:VESTIGE_KEY}"}}),
    "vscode": (
        {"type": "stdio", **COMMAND},
        {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${env:VESTIGE_KEY}"}},
    ),
    "windsurf": (COMMAND, {"serverUrl": URL, "headers": {"Authorization": "Bearer ${env:VESTIGE_KEY}"}}),
    "zed": (COMMAND, {"url": URL, "headers": {"Authorization": f"Bearer {SECRET}"}}),
    "gemini-cli": (COMMAND, {"httpUrl": URL, "headers": {"Authorization": "Bearer ${VESTIGE_KEY}"}}),
    "cline": (
        COMMAND,
        {"type": "streamableHttp", "url": URL, "headers": {"Authorization": f"Bearer {SECRET}"}},
    ),
    "continue": (COMMAND, {"type": "http", "url": URL, "headers": {"Authorization": f"Bearer {SECRET}"}}),
    "opencode": (
        {"type": "local", "command": [STDIO.command, *STDIO.args]},
        {"type": "remote", "url": URL, "headers": {"Authorization": "Bearer {env:VESTIGE_KEY}"}},
    ),
}
FILES = {
    "claude-code": (".claude.json", ".claude.json", ".claude.json"),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "codex": (".codex/config.toml",) * 3,
    "cursor": (".cursor/mcp.json",) * 3,
    "vscode": (
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json",
    ),
    "windsurf": (".codeium/windsurf/mcp_config.json",) * 3,
    "zed": (".config/zed/settings.json", ".config/zed/settings.json", "AppData/Roaming/Zed/settings.json"),
    "gemini-cli": (".gemini/settings.json",) * 3,
    "cline": tuple(
        f"{base}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
        for base in (".config", "Library/Application Support", "AppData/Roaming")
    ),
    "continue": (".continue/mcpServers/vestige.json",) * 3,
    "opencode": (".config/opencode/opencode.json",) * 3,
}


def test_every_client_is_in_the_tables_of_these_tests() -> None:
    assert list(CLIENTS) == list(ENTRIES) == list(FILES)


@each("name", CLIENTS)
def test_a_client_reads_entries_of_this_form(name: str) -> None:
    client, (stdio, http) = CLIENTS[name], ENTRIES[name]
    assert client.entry(STDIO) == stdio
    assert client.entry(Stdio(command="/bin/vestige-mcp")).get("args") is None
    if http is not None:
        assert client.entry(http_of(client)) == http
        assert SECRET not in str(client.entry(Http(url=URL)))


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_keeps_its_settings_here_on_each_platform(name: str, tmp_path: Path) -> None:
    for platform, expected in zip(("linux", "darwin", "win32"), FILES[name], strict=True):
        where = machine(tmp_path, platform)
        assert plans.place(CLIENTS[name], where, "user") == where.home / expected


@each("name", CLIENTS)
def test_a_client_names_where_the_facts_are_from(name: str) -> None:
    assert all(one.startswith("https://") for one in CLIENTS[name].source)


def test_a_key_that_is_held_goes_into_a_header_of_codex() -> None:
    entry = CLIENTS["codex"].entry(Http(url=URL, key=InlineKey(text=SECRET)))
    assert entry == {"url": URL, "http_headers": {"Authorization": f"Bearer {SECRET}"}}


def test_the_unusual_place_for_settings_counts_only_when_it_is_absolute(tmp_path: Path) -> None:
    usual = machine(tmp_path)
    for given, expected in ((tmp_path / "xdg", tmp_path / "xdg"), (Path("xdg"), usual.home / ".config")):
        where = type(usual)(home=usual.home, platform="linux", project=usual.project, config_home=given)
        assert plans.place(CLIENTS["zed"], where, "user") == expected / "zed/settings.json"


def test_of_several_files_the_one_that_is_there_counts(tmp_path: Path) -> None:
    where, client = machine(tmp_path), CLIENTS["opencode"]
    other = where.home / ".config/opencode/opencode.jsonc"
    other.parent.mkdir(parents=True)
    other.write_text("{}", encoding="utf-8")
    assert plans.place(client, where, "user") == other


def test_a_client_is_installed_when_its_folder_or_its_program_is_there(tmp_path: Path) -> None:
    where, client = machine(tmp_path), CLIENTS["cursor"]
    assert not client.installed(where)
    found = type(where)(
        home=where.home, platform="linux", project=where.project, which={"cursor": "/bin/cursor"}.get
    )
    assert client.installed(found)
    (where.home / ".cursor").mkdir()
    assert client.installed(where)


def test_an_unknown_client_names_the_nearest() -> None:
    with pytest.raises(InvalidInput) as caught:
        find("vscod")
    assert caught.value.hint == "Did you mean `vscode`?"
    with pytest.raises(InvalidInput) as caught:
        find("xyz")
    assert "claude-code" in str(caught.value.hint)


def test_what_a_client_cannot_do_is_said_with_what_it_can() -> None:
    with pytest.raises(InvalidInput) as caught:
        CLIENTS["claude-desktop"].entry(Http(url=URL))
    assert "Omit --http" in str(caught.value.hint)
    with pytest.raises(InvalidInput) as caught:
        CLIENTS["zed"].entry(Http(url=URL, key=Named(variable="VESTIGE_KEY")))
    assert "--key" in str(caught.value.hint)


def test_the_command_of_claude_code_says_the_same_as_its_file() -> None:
    assert claude_add(STDIO, "vestige") == [
        *("claude", "mcp", "add", "--scope", "user", "vestige", "--"),
        *(STDIO.command, *STDIO.args),
    ]
    http = claude_add(Http(url=URL, key=Named(variable="VESTIGE_KEY")), "vestige")
    assert http[-4:] == ["vestige", URL, "--header", "Authorization: Bearer ${VESTIGE_KEY}"]
    assert "--header" not in claude_add(Http(url=URL), "vestige")
    assert claude_remove("vestige")[-1] == "vestige"

"""Connecting and undoing, for every client, on files as people have them."""

import difflib
import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.transports.connect.scratch import (
    BROKEN,
    COMMENTED,
    NOW,
    PLAIN,
    SECRET,
    STDIO,
    URL,
    cases,
    connect,
    filled,
    http_of,
    machine,
    undo,
)
from vestige.core.errors import Conflict, InvalidInput
from vestige.transports.connect import jsonc, plans
from vestige.transports.connect import plans as masks
from vestige.transports.connect.clients import (
    CLIENTS,
    AgentClient,
    Entry,
    Http,
    InlineKey,
    Named,
    Server,
    Stdio,
)

EVERY = pytest.mark.parametrize(
    ("name", "server"), cases(), ids=[f"{name}-{type(server).__name__}" for name, server in cases()]
)


def values(client: AgentClient, text: str) -> Entry:
    return tomllib.loads(text) if client.format == "toml" else jsonc.read(text)


def entry_in(client: AgentClient, text: str) -> object:
    found: object = values(client, text)
    for key in (*client.containers[-1], "vestige"):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def have(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))


@EVERY
def test_a_missing_file_is_made_and_goes_again(name: str, server: Server, tmp_path: Path) -> None:
    client, where = CLIENTS[name], machine(tmp_path)
    path = plans.place(client, where, "user")
    connect(client, where, server)
    assert entry_in(client, path.read_text(encoding="utf-8")) == client.entry(server)
    assert path.stat().st_mode & 0o077 == 0
    undo(client, where)
    # Nor is there a folder left that would pass for an installed client.
    assert [one for one in where.home.rglob("*") if one != where.home / ".config"] == []


@EVERY
@pytest.mark.parametrize(
    "specimen", [COMMENTED, PLAIN, {"json": "", "toml": ""}, {"json": "{}", "toml": "\n"}]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_the_entry_is_added_and_undo_gives_back_every_byte(
    name: str, server: Server, specimen: dict[str, str], newline: str, tmp_path: Path
) -> None:
    client, where = CLIENTS[name], machine(tmp_path)
    path = plans.place(client, where, "user")
    before = filled(client, specimen[client.format]).replace("\n", newline)
    have(path, before)
    change = connect(client, where, server)
    after = path.read_bytes().decode("utf-8")
    assert entry_in(client, after) == client.entry(server)
    lost = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] == "-"]
    # A comma behind what was the last server is all that a line may get.
    assert all(line[2:].rstrip() + "," in after or line[2:] in ("{}", "") for line in lost), lost
    assert re.findall(r"(?://|#|/\*).*", before) == [
        one for one in re.findall(r"(?://|#|/\*).*", after) if one in before
    ]
    if "\r\n" in before:
        assert "\n" not in after.replace("\r\n", "")
    assert change.diff().startswith(f"--- {path}\n+++ {path}\n")

    assert plans.connect(client, where, server, name="vestige", scope="user").nothing
    undo(client, where)
    assert path.read_bytes() == before.encode("utf-8")
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@EVERY
def test_a_file_that_does_not_parse_is_left_alone(name: str, server: Server, tmp_path: Path) -> None:
    client, where = CLIENTS[name], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, filled(client, BROKEN[client.format]))
    for broken in (b'{"a": 1', path.read_bytes(), b"\xff\xfe", b'[1, "not an object"]\n= x'):
        path.write_bytes(broken)
        with pytest.raises(InvalidInput, match="Nothing was changed"):
            connect(client, where, server)
        with pytest.raises(InvalidInput, match="Nothing was changed"):
            undo(client, where)
        assert path.read_bytes() == broken
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@EVERY
def test_undo_in_a_file_that_was_changed_since_takes_the_entry_and_nothing_else(
    name: str, server: Server, tmp_path: Path
) -> None:
    client, where = CLIENTS[name], machine(tmp_path)
    path = plans.place(client, where, "user")
    before = filled(client, COMMENTED[client.format])
    have(path, before)
    connect(client, where, server)
    changed = path.read_text(encoding="utf-8").replace("behind a value", "changed since")
    path.write_text(changed, encoding="utf-8")
    undo(client, where)
    after = path.read_text(encoding="utf-8")
    assert after == before.replace("behind a value", "changed since")
    assert entry_in(client, after) is None


@pytest.mark.parametrize("client", [one for one in CLIENTS.values() if one.http], ids=lambda one: one.name)
@pytest.mark.parametrize("specimen", [None, COMMENTED, PLAIN])
def test_an_entry_is_updated_and_undo_goes_back_to_before_the_first(
    client: AgentClient, specimen: dict[str, str] | None, tmp_path: Path
) -> None:
    where = machine(tmp_path)
    path = plans.place(client, where, "user")
    before = filled(client, specimen[client.format]) if specimen else None
    if before is not None:
        have(path, before)
    for server in (STDIO, http_of(client), Stdio(command="/elsewhere/vestige-mcp"), Http(url=URL)):
        connect(client, where, server)
        assert entry_in(client, path.read_text(encoding="utf-8")) == client.entry(server)
    undo(client, where)
    assert (path.read_text(encoding="utf-8") if path.exists() else None) == before
    assert undo(client, where).nothing


@pytest.mark.parametrize("client", [CLIENTS["cursor"], CLIENTS["codex"]], ids=lambda one: one.name)
def test_what_people_added_to_the_entry_stays(client: AgentClient, tmp_path: Path) -> None:
    where = machine(tmp_path)
    path = plans.place(client, where, "user")
    if client.format == "toml":
        have(path, '[mcp_servers.vestige]\ncommand = "old" # mine\nstartup_timeout_sec = 9\nargs = []\n')
        comment, kept = "# mine", {"startup_timeout_sec": 9, "args": []}
    else:
        have(
            path,
            '{"mcpServers": {"vestige": {\n  "command": "old", // mine\n  "disabled": true, "args": []}}}',
        )
        comment, kept = "// mine", {"disabled": True, "args": []}
    connect(client, where, Stdio(command="new"))
    text = path.read_text(encoding="utf-8")
    assert entry_in(client, text) == {"command": "new", **kept}
    assert comment in text
    assert "Restored the previous entry" in undo(client, where).outcome
    assert "old" in path.read_text(encoding="utf-8")


def test_headers_that_people_added_stay_and_what_is_for_a_process_goes(tmp_path: Path) -> None:
    client, where = CLIENTS["cursor"], machine(tmp_path)
    path = plans.place(client, where, "user")
    theirs = {"url": "x", "headers": {"X-Vestige-Scope": "/a", "authorization": "y"}}
    have(path, json.dumps({"mcpServers": {"vestige": theirs}}))
    connect(client, where, Http(url=URL, key=Named(variable="K")))
    assert entry_in(client, path.read_text(encoding="utf-8")) == {
        "url": URL,
        "headers": {"X-Vestige-Scope": "/a", "Authorization": "Bearer ${env:K}"},
    }
    have(path, '{"mcpServers": {"vestige": {"command": "x", "env": {"A": "b"}}}}')
    connect(client, where, Http(url=URL))
    assert entry_in(client, path.read_text(encoding="utf-8")) == {"url": URL}


def test_codex_gets_no_key_of_the_other_kind_of_server_because_it_refuses_the_whole_file(
    tmp_path: Path,
) -> None:
    client, where = CLIENTS["codex"], machine(tmp_path)
    path = plans.place(client, where, "user")
    process = 'command = "x"\nargs = []\nenv_vars = []\ncwd = ""\n\n[mcp_servers.vestige.env]\nA = "b"\n'
    have(path, f"[mcp_servers.vestige]\nstartup_timeout_sec = 9\n{process}")
    connect(client, where, Http(url=URL))
    assert entry_in(client, path.read_text(encoding="utf-8")) == {"url": URL, "startup_timeout_sec": 9}
    server = 'url = "x"\noauth_resource = "y"\nenv_http_headers = { A = "B" }\nhttp_headers = { C = "d" }\n'
    have(path, f"[mcp_servers.vestige]\nstartup_timeout_sec = 9\n{server}")
    connect(client, where, Stdio(command="x"))
    assert entry_in(client, path.read_text(encoding="utf-8")) == {"command": "x", "startup_timeout_sec": 9}


@pytest.mark.parametrize("client", [one for one in CLIENTS.values() if one.project], ids=lambda one: one.name)
def test_no_key_ever_gets_into_a_file_of_a_project(client: AgentClient, tmp_path: Path) -> None:
    where = machine(tmp_path)
    with pytest.raises(InvalidInput, match="must not be in a file of a project"):
        connect(client, where, Http(url=URL, key=InlineKey(text=SECRET)), "project")
    assert list(where.project.rglob("*")) == []
    if client.reference:
        connect(client, where, Http(url=URL, key=Named(variable="VESTIGE_KEY")), "project")
        texts = [one.read_text(encoding="utf-8") for one in where.project.rglob("*") if one.is_file()]
        assert len(texts) == 1
        assert "VESTIGE_KEY" in texts[0]
    connect(client, where, STDIO, "project")
    assert list(where.home.iterdir()) == []


def test_a_client_without_files_for_projects_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no settings file for a project"):
        connect(CLIENTS["windsurf"], machine(tmp_path), STDIO, "project")


def test_a_difference_shows_no_key_and_no_endless_line(tmp_path: Path) -> None:
    client, where = CLIENTS["zed"], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, '{"a": "' + "x" * 5_000 + '"}')
    for key in (SECRET, "an old token"):
        change = connect(client, where, Http(url=URL, key=InlineKey(text=key)))
        assert key not in change.diff()
        assert key in path.read_text(encoding="utf-8")
        assert max(map(len, change.diff().splitlines())) <= plans.LINE_CHARS + 1
    assert SECRET not in change.diff()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", json.dumps({"mcpServers": {"a": {"env": {"API_KEY": "hush-1"}}}}, indent=2)),
        ("cursor", '{\n  "mcpServers": {\n    "a": {"headers": {"Authorization": "Bearer hush-2"}}\n  }\n}'),
        ("codex", "[mcp_servers.a]\nurl = \"x\"\nbearer_token = 'hush-3'\n"),
        ("cursor", '{"mcpServers":{"a":{"env":{"API_KEY":"hush-4","DB_PASSWORD":"hush-5","DSN":"hush-6"}}}}'),
        ("cursor", '{"mcpServers": {"a": {"env": {"B": "b", "A": "' + "x" * 90 + "hush-7" * 20 + '"}}}}'),
        ("cursor", '{"mcpServers": {"a": {"args": ["--auth", "--token", "hush-8", "--api-key=hush-9"]}}}'),
        ("cursor", '{"mcpServers": {"a": {"url": "https://ada:hush-10@b/?api_key=hush-11&c=d"}}}'),
        ("cursor", '{"mcpServers": {"a": {"args": ["--header", "Authorization: Bearer hush-12"]}}}'),
        ("cursor", '{"mcpServers": {"a": {"env": {"K\\"": "\\"hush-13", /* {" */ "L": "hush-14"}}}}'),
        ("cursor", '{"mcpServers": {"a": {}}} // don\'t use "API_KEY": "hush 15" or --token hush-16'),
        ("cursor", '{"mcpServers": {"vestige": {"url": "x", "headers": {"X-Mine": "hush-17"}}}}'),
        ("codex", '[mcp_servers.a]\nenv = { DSN = "hush-18", B = \'hush-19\' } # token = "hush-20"'),
        ("codex", '[mcp_servers.a.env] # "\nDSN = """\nhush-21\nhush-22"""\nB = "hush-23"'),
        ("codex", '[mcp_servers.a]\nenv.DSN = "hush-24"\n# api_key = hush-25\nargs = ["sk-hush-26"]'),
    ],
)
def test_a_difference_does_not_show_the_secrets_of_other_servers(
    name: str, text: str, tmp_path: Path
) -> None:
    client, where = CLIENTS[name], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, text)
    change = connect(client, where, Http(url=URL, key=Named(variable="VESTIGE_KEY")))
    assert "hush" not in change.diff()
    assert "VESTIGE_KEY" in change.diff()
    assert "hush" in path.read_text(encoding="utf-8")
    assert "hush" not in undo(client, where).diff()


def test_a_difference_of_nothing_but_a_key_is_one(tmp_path: Path) -> None:
    client, where = CLIENTS["zed"], machine(tmp_path)
    connect(client, where, Http(url=URL, key=InlineKey(text='a "quoted" key')))
    diff = connect(client, where, Http(url=URL, key=InlineKey(text="another"))).diff()
    lines = [line.strip("+- ") for line in diff.splitlines()[2:] if line[0] in "+-"]
    assert lines == [f'"Authorization": "{masks.MASK}"'] * 2


def test_a_key_in_a_file_that_others_can_read_is_noticed(tmp_path: Path) -> None:
    client, where = CLIENTS["zed"], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, "{}")
    path.chmod(0o644)
    assert connect(client, where, http_of(client)).exposed
    assert not connect(client, where, STDIO).exposed


def test_opencode_of_version_two_gets_its_entry_one_level_deeper(tmp_path: Path) -> None:
    client, where = CLIENTS["opencode"], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, '{\n  "mcp": {\n    "servers": {}\n  }\n}\n')
    connect(client, where, STDIO)
    read = jsonc.read(path.read_text(encoding="utf-8"))
    assert read == {"mcp": {"servers": {"vestige": client.entry(STDIO)}}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": {}, "mcpServers": {"a": {}}}'),
        ("codex", "mcp_servers = 1\n"),
        ("codex", "[[mcp_servers]]\na = 1\n"),
    ],
)
def test_a_file_that_cannot_take_the_entry_is_left_alone(name: str, text: str, tmp_path: Path) -> None:
    client, where = CLIENTS[name], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, text)
    with pytest.raises(InvalidInput, match="Nothing was changed"):
        connect(client, where, STDIO)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.vestige.command = "old"\n',
        '[mcp_servers]\nvestige = { command = "old" } # inline\n',
        'mcp_servers = { vestige = { command = "old" } }\n',
        '[mcp_servers."vestige"]\ncommand = "old"\n[mcp_servers.vestige.env]\nA = "b"\n',
    ],
)
def test_other_forms_of_toml_are_edited_right_or_not_at_all(text: str, tmp_path: Path) -> None:
    client, where = CLIENTS["codex"], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, text)
    try:
        connect(client, where, Http(url=URL, key=Named(variable="K")))
    except InvalidInput:
        assert path.read_text(encoding="utf-8") == text
    else:
        after = tomllib.loads(path.read_text(encoding="utf-8"))
        assert after == {"mcp_servers": {"vestige": {"url": URL, "bearer_token_env_var": "K"}}}
        undo(client, where)
        assert path.read_text(encoding="utf-8") == text


def test_a_file_that_changes_while_the_user_thinks_is_not_overwritten(tmp_path: Path) -> None:
    client, where = CLIENTS["cursor"], machine(tmp_path)
    path = plans.place(client, where, "user")
    have(path, "{}")
    change = plans.connect(client, where, STDIO, name="vestige", scope="user")
    have(path, '{"theirs": 1}')
    with pytest.raises(Conflict):
        change.apply(NOW)
    assert path.read_text(encoding="utf-8") == '{"theirs": 1}'
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_what_is_printed_is_a_file_that_the_client_can_read() -> None:
    for client in CLIENTS.values():
        text = plans.snippet(client, STDIO, "vestige")
        assert entry_in(client, text) == client.entry(STDIO)


def test_the_state_of_a_client_is_read_from_its_file(tmp_path: Path) -> None:
    client, where = CLIENTS["codex"], machine(tmp_path)
    assert plans.connected(client, where, name="vestige", scope="user") is None
    connect(client, where, STDIO)
    assert plans.connected(client, where, name="vestige", scope="user") == client.entry(STDIO)
    assert plans.connected(client, where, name="other", scope="user") is None


def test_undo_leaves_folders_that_hold_something_else(tmp_path: Path) -> None:
    client, where = CLIENTS["codex"], machine(tmp_path)
    connect(client, where, STDIO)
    (where.home / ".codex" / "history").touch()
    undo(client, where)
    assert [one.name for one in (where.home / ".codex").iterdir()] == ["history"]


def test_servers_in_braces_are_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    client, where = CLIENTS["codex"], machine(tmp_path)
    have(plans.place(client, where, "user"), 'mcp_servers = { other = { command = "npx" } }\n')
    with pytest.raises(InvalidInput, match=r"write its parts as tables, \[mcp_servers\.NAME\]"):
        connect(client, where, STDIO)

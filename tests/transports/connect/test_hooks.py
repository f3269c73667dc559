"""`vestige connect CLIENT --hooks`: what it writes for each client, what it leaves alone, and its undo."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.world import open_world
from tests.transports.conformance.node import NODE
from tests.transports.connect.test_connect_command import answer, run, written
from vestige.core.caller import Invocation
from vestige.engine.agent.hook_events import NAMES, read_event
from vestige.transports.connect import jsonc
from vestige.transports.connect.hooks import HOOK_CLIENTS, HookCommand, installed_text, is_ours

FOREIGN = """\
{
  // mine
  "permissions": {"allow": ["Bash(make:*)"]},
  "hooks": {
    "SessionStart": [
      {"matcher": "startup",   "hooks": [{"type": "command", "command": "tdd-guard"}]}, // keep me
    ],
    "PreToolUse": [{"hooks": []}]
  }
}
"""
COMMAND = HookCommand(program=("/opt/bin/vestige-hook",), server=None, platform="linux")
EDITED = [name for name, one in HOOK_CLIENTS.items() if one.form != "plugin"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def file_of(home: Path, client: str) -> Path:
    template = HOOK_CLIENTS[client].user[0]
    return home / template.replace("~/", "").replace("CONFIG/", ".config/")


@pytest.mark.parametrize("client", list(HOOK_CLIENTS))
def test_hooks_are_shown_written_and_undone_byte_for_byte(home: Path, client: str) -> None:
    shown = run(home, client, "--hooks")
    assert shown.exit_code == 1  # no terminal to confirm at
    assert "vestige-hook" in json.loads(shown.stdout)["diff"]
    assert not written(home)
    done = answer(run(home, client, "--hooks", "--yes"))
    assert done["changed"]
    assert (
        f"{HOOK_CLIENTS[client].title} was not found on this machine." in done["notes"] or client == "codex"
    )
    assert file_of(home, client).is_file()
    assert not answer(run(home, client, "--hooks", "--yes"))["changed"]
    assert answer(run(home, client, "--hooks", "--undo", "--yes"))["changed"]
    assert not written(home)


@pytest.mark.parametrize("client", EDITED)
def test_hooks_and_comments_of_others_stay(home: Path, client: str) -> None:
    file = file_of(home, client)
    file.parent.mkdir(parents=True)
    file.write_text(FOREIGN, encoding="utf-8")
    answer(run(home, client, "--hooks", "--yes"))
    text = file.read_text(encoding="utf-8")
    assert (
        '{"matcher": "startup",   "hooks": [{"type": "command", "command": "tdd-guard"}]}, // keep me' in text
    )
    held = jsonc.read(text)
    assert held["permissions"] == {"allow": ["Bash(make:*)"]}
    file.write_text(text.replace("// mine", "// still mine"), encoding="utf-8")  # changed since
    answer(run(home, client, "--hooks", "--undo", "--yes"))
    after = jsonc.read(file.read_text(encoding="utf-8"))
    assert after["hooks"] == jsonc.read(FOREIGN)["hooks"]
    assert "keep me" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("client", EDITED)
def test_every_event_is_one_that_vestige_answers_in_the_form_of_the_client(client: str) -> None:
    one = HOOK_CLIENTS[client]
    assert set(one.events) <= set(NAMES[client])
    held: Any = jsonc.read(installed_text(one, "", COMMAND))
    assert set(held["hooks"]) == set(one.events)
    for entries in held["hooks"].values():
        (entry,) = entries
        handler = entry["hooks"][0] if one.form == "groups" else entry
        words = [handler["command"], *handler.get("args", [])]
        assert " ".join(words) == f"/opt/bin/vestige-hook {client}"
        assert is_ours(entry)
    assert ("version" in held) == one.versioned


def test_claude_code_starts_after_a_compaction_too_and_runs_without_a_shell() -> None:
    held: Any = jsonc.read(installed_text(HOOK_CLIENTS["claude-code"], "", COMMAND))
    (start,) = held["hooks"]["SessionStart"]
    assert "compact" in start["matcher"].split("|")
    assert start["hooks"][0]["args"] == ["claude-code"]
    assert "SubagentStart" not in held["hooks"]


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_connected_server_is_called_as_a_tool_for_prompts(home: Path, client: str) -> None:
    answer(run(home, client, "--yes"))
    answer(run(home, client, "--hooks", "--yes"))
    held: Any = jsonc.read(file_of(home, client).read_text(encoding="utf-8"))["hooks"]
    (prompt,) = held["UserPromptSubmit"]
    handler = prompt["hooks"][0]
    assert (handler["type"], handler["server"], handler["tool"]) == ("mcp_tool", "vestige", "vestige")
    assert handler["input"]["arguments"]["payload"]["prompt"] == "${prompt}"
    assert held["SessionStart"][0]["hooks"][0]["type"] == "command"
    answer(run(home, client, "--hooks", "--undo", "--yes"))
    assert not file_of(home, client).exists()


def test_the_tool_that_a_hook_calls_gives_the_hooks_output(tmp_path: Path) -> None:
    server = HookCommand(program=COMMAND.program, server="vestige", platform="linux")
    held: Any = jsonc.read(installed_text(HOOK_CLIENTS["codex"], "", server))
    handler = held["hooks"]["UserPromptSubmit"][0]["hooks"][0]
    text = json.dumps(handler["input"])
    for name, value in (("session_id", "s"), ("prompt", "Who is Ada the botanist?"), ("cwd", "/")):
        text = text.replace(f"${{{name}}}", value)
    with open_world(tmp_path / "data") as world:
        world.remember("Ada is the botanist of the herbarium in Kew.")
        world.clock.advance(hours=1)
        output = world.app.call_tool(Invocation(name=handler["tool"], arguments=json.loads(text)))
    assert output["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"


def test_codex_is_told_about_trust_and_its_command_line_has_no_version(home: Path) -> None:
    done = answer(run(home, "codex", "--hooks", "--yes"))
    assert any("/hooks" in note for note in done["notes"])
    held = file_of(home, "codex").read_text(encoding="utf-8")
    assert "vestige-hook codex" in held
    for event, entries in json.loads(held)["hooks"].items():
        assert entries[0]["hooks"][0]["timeout"] == (3 if event == "SessionEnd" else 10)


def test_a_dry_run_says_what_is_left_to_do_after_the_change(home: Path) -> None:
    shown = answer(run(home, "codex", "--hooks", "--dry-run"))
    assert not file_of(home, "codex").exists()
    assert any(note.startswith("After the change: ") and "`/hooks`" in note for note in shown["notes"])
    undone = answer(run(home, "codex", "--hooks", "--undo", "--dry-run"))
    assert not any("After the change" in note for note in undone["notes"])


def test_what_the_hooks_still_lack_is_named(home: Path) -> None:
    notes = " ".join(answer(run(home, "claude-code", "--hooks", "--yes"))["notes"])
    assert "`vestige connect claude-code`" in notes
    assert "`vestige agent init`" in notes
    answer(run(home, "claude-code", "--hooks", "--undo", "--yes"))
    answer(run(home, "claude-code", "--yes"))
    (home / ".claude" / "memory").mkdir(parents=True)
    notes = " ".join(answer(run(home, "claude-code", "--hooks", "--yes"))["notes"])
    assert "`vestige" not in notes


def test_cursor_says_that_the_hooks_of_claude_code_are_enough(home: Path) -> None:
    answer(run(home, "claude-code", "--hooks", "--yes"))
    done = answer(run(home, "cursor", "--hooks", "--yes"))
    assert any("you need only one" in note for note in done["notes"])


def test_openclaw_is_sent_to_its_plugin_and_unknown_clients_are_refused(home: Path) -> None:
    for client, hint in (("openclaw", "plugin"), ("codxe", "codex"), ("zed", "One of")):
        error = json.loads(run(home, client, "--hooks").stderr)["error"]
        assert hint in error["hint"]


def test_a_file_that_is_not_json_is_left_alone(home: Path) -> None:
    file = file_of(home, "claude-code")
    file.parent.mkdir(parents=True)
    file.write_text("{ not json", encoding="utf-8")
    assert run(home, "claude-code", "--hooks", "--yes").exit_code == 2
    assert file.read_text(encoding="utf-8") == "{ not json"


def test_the_plugin_for_opencode_tells_a_whole_session(home: Path) -> None:
    answer(run(home, "opencode", "--hooks", "--yes"))
    plugin = file_of(home, "opencode")
    text = plugin.read_text(encoding="utf-8")
    assert 'vestige-hook", "opencode"]' in text
    # What it asks is written down by a program that stands in for `vestige-hook`.
    asked, program = home / "asked.jsonl", home / "program.py"
    program.write_text(
        "import json, sys\n"
        "given = json.load(sys.stdin)\n"
        f"open({str(asked)!r}, 'a').write(json.dumps(given) + '\\n')\n"
        "text = {'SessionStart': 'pack', 'UserPromptSubmit': 'tail'}.get(given['hook_event_name'])\n"
        "print(json.dumps({'hookSpecificOutput': {'additionalContext': text}} if text else {}))\n",
        encoding="utf-8",
    )
    command = f"const COMMAND = {json.dumps([sys.executable, str(program)])}\n"
    module = plugin.with_suffix(".mjs")
    module.write_text(re.sub(r"const COMMAND = .*\n", lambda _: command, text), encoding="utf-8")
    driver = home / "driver.mjs"
    driver.write_text(OPENCODE_SESSION.replace("MODULE", json.dumps(module.as_uri())), encoding="utf-8")
    done = subprocess.run(
        [NODE, driver], capture_output=True, text=True, timeout=120, env={"HOME": str(home)}
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["pack", "tail"]
    events = [json.loads(line) for line in asked.read_text(encoding="utf-8").splitlines()]
    assert [one["hook_event_name"] for one in events] == [
        "SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionStart", "SessionEnd",
    ]  # fmt: skip
    assert {one["session_id"] for one in events} == {"s"}  # the subagent is left alone
    stopped = read_event("opencode", events[2])
    assert stopped is not None
    assert (stopped.message, [one.text for one in stopped.turns]) == ("Done.", ["Fix it.", "Done."])
    assert stopped.calls == ({"name": "edit", "input": {"filePath": "a.py"}},)
    assert "calls" in events[3]
    assert events[4]["source"] == "compact"


OPENCODE_SESSION = """
const { Vestige } = await import(MODULE)
const said = [
  { info: { role: "user" }, parts: [{ type: "text", text: "Fix it." }] },
  { info: { role: "assistant" }, parts: [{ type: "tool" }, { type: "text", text: "Done." }] },
]
const client = { session: {
  get: async ({ path }) => ({ data: path.id === "child" ? { parentID: "s" } : {} }),
  messages: async () => ({ data: said }),
} }
const hooks = await Vestige({ directory: "/w", client })
const happens = (type, sessionID) => hooks.event({ event: { type, properties: { sessionID } } })
const output = { system: [] }
await hooks["chat.message"]({ sessionID: "s" }, { parts: said[0].parts })
await hooks["chat.message"]({ sessionID: "child" }, { parts: said[0].parts })
await hooks["experimental.chat.system.transform"]({ sessionID: "s" }, output)
const args = { filePath: "a.py", newString: "x" }
await hooks["tool.execute.before"]({ tool: "edit", sessionID: "s" }, { args })
await happens("session.idle", "s")
await happens("session.idle", "child")
await hooks["experimental.session.compacting"]({ sessionID: "s" }, {})
await happens("session.compacted", "s")
await happens("session.deleted", "s")
await happens("session.deleted", "child")
console.log(JSON.stringify(output.system))
"""
"""A session of OpenCode, as its server calls a plugin."""


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3), max_size=4
    ),
    st.integers(0, 3),
)
def test_an_item_is_appended_and_taken_out_of_any_array(items: list[dict[str, Any]], at: int) -> None:
    text = json.dumps({"a": {"b": items}, "c": 1}, indent=2)
    longer = jsonc.append(text, ("a", "b"), {"new": [1]})
    assert jsonc.read(longer) == {"a": {"b": [*items, {"new": [1]}]}, "c": 1}
    place = min(at, len(items))
    rest = [*items, {"new": [1]}]
    del rest[place]
    assert jsonc.read(jsonc.take_item(longer, ("a", "b"), place)) == {"a": {"b": rest}, "c": 1}

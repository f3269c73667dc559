"""Hooks of a session, from its start to its end, and what is known of its injections afterwards."""

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from testbed.world import HandClock, World, open_world
from tests.engine.agent.agent_world import new_agent
from tests.engine.agent.test_tail import FACT, PROMPT, remembered
from tests.transports.http.support.harness import bearer, open_site
from tests.transports.http.support.inside import URL, inside
from tests.transports.http.support.mcp_requests import modern
from vestige.core.models import EVERYTHING
from vestige.engine.agent.checkup import HOOK_FILES
from vestige.engine.agent.session_state import load_session
from vestige.transports.connect.hooks import HOOK_CLIENTS

SESSION = "0f1e"


def hook(world: World, name: str, client: str = "claude-code", **fields: Any) -> str:
    """The context that a hook gives."""
    payload = {"hook_event_name": name, "session_id": SESSION, **fields}
    output = world.call("agent", action="hook", client=client, payload=payload)
    return str(output.get("hookSpecificOutput", {}).get("additionalContext", ""))


def claude_folder(home: Path) -> Path:
    """A project of Claude Code in a home directory; the home of a world is its data directory."""
    folder = home / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def impact(world: World) -> dict[str, Any]:
    return world.call("agent", action="impact")


def test_the_output_is_in_the_form_of_the_client_or_empty(world: World) -> None:
    remembered(world)
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": SESSION, "prompt": PROMPT}
    output = world.call("agent", action="hook", client="codex", payload=payload)
    assert list(output) == ["hookSpecificOutput"]
    assert set(output["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert output["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert world.call("agent", action="hook", client="codex", payload=payload) == {}


def test_a_compaction_shows_again_what_the_model_has_lost(world: World) -> None:
    remembered(world)
    assert hook(world, "UserPromptSubmit", prompt=PROMPT)
    assert not hook(world, "UserPromptSubmit", prompt=PROMPT)
    hook(world, "PreCompact", trigger="auto")
    hook(world, "SessionStart", source="compact")
    assert hook(world, "UserPromptSubmit", prompt=PROMPT)


def test_the_work_before_a_compaction_is_in_the_new_pack(world: World, tmp_path: Path) -> None:
    transcript = claude_folder(tmp_path / "data") / "t.jsonl"
    call = {"type": "tool_use", "name": "Edit", "input": {"file_path": "src/login.py"}}
    line = {"type": "assistant", "message": {"role": "assistant", "content": [call]}}
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert hook(world, "SessionStart", source="startup") == ""
    hook(world, "PreCompact", trigger="auto", transcript_path=str(transcript))
    assert "- file: src/login.py" in hook(world, "SessionStart", source="compact")


def claude_lines(*turns: tuple[str, Any]) -> str:
    """Lines of Claude Code: a role and what it said or did."""
    lines = []
    for number, (role, content) in enumerate(turns):
        line = {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
        lines.append(
            json.dumps({**line, "sessionId": SESSION, "message": {"role": role, "content": content}})
        )
    return "".join(f"{line}\n" for line in lines)


WORKED = (
    ("user", "Write a parser."),
    ("assistant", [
        {"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": {"todos": [
            {"content": "Write it", "status": "completed"},
            {"content": "Document it", "status": "pending"}]}},
        {"type": "tool_use", "id": "t2", "name": "Edit", "input": {"file_path": "parser.py"}},
    ]),
    ("user", "We use Pratt parsing because precedence is easy with it."),
)  # fmt: skip


def test_decisions_and_open_tasks_survive_a_compaction_and_reach_the_log(
    world: World, tmp_path: Path
) -> None:
    files, transcript = new_agent(world), claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    transcript.write_text(claude_lines(*WORKED), encoding="utf-8")
    given = {"transcript_path": str(transcript)}
    hook(world, "SessionStart", source="startup")
    hook(world, "UserPromptSubmit", prompt="Write a parser.")
    hook(world, "UserPromptSubmit", prompt="And now its documentation.")
    hook(world, "PreCompact", trigger="auto", **given)
    shown = hook(world, "SessionStart", source="compact")
    assert "- asked last: And now its documentation." in shown
    assert "- open: Document it" in shown
    assert "- decided: We use Pratt parsing because precedence is easy with it." in shown
    hook(world, "Stop", last_assistant_message="The parser works.", **given)
    hook(world, "SessionEnd", reason="other", **given)
    (file,) = files.session_files()
    entry = json.loads(file.read_text(encoding="utf-8"))
    assert entry["decisions"] == ["We use Pratt parsing because precedence is easy with it."]
    assert entry["open_threads"] == ["Document it"]


def test_a_plugin_states_the_work_and_the_words_of_a_session_without_a_transcript(world: World) -> None:
    files, client = new_agent(world), "opencode"
    said = {
        "calls": [
            {"name": "edit", "input": {"path": "parser.py"}},
            {"name": "todowrite", "input": {"todos": [{"content": "Document it", "status": "pending"}]}},
            "not a call",
        ],
        "turns": [{"role": "user", "text": "We use Pratt parsing because precedence is easy."}, {"role": 1}],
    }
    hook(world, "SessionStart", client, source="startup")
    hook(world, "UserPromptSubmit", client, prompt="Write a parser.")
    hook(world, "Stop", client, last_assistant_message="It parses.", **said)
    shown = hook(world, "SessionStart", client, source="compact")
    assert all(one in shown for one in ("open: Document it", "decided: We use Pratt", "file: parser.py"))
    hook(world, "SessionEnd", client)
    (log,) = files.session_files()
    assert json.loads(log.read_text(encoding="utf-8"))["artifacts"] == ["parser.py"]
    (waiting,) = world.call("review", action="list")["texts"]
    assert (waiting["nodeType"], waiting["source"]) == ("decision", "opencode")
    hook(world, "Stop", "codex", last_assistant_message="It parses.", **said)
    assert world.call("review", action="list")["total"] == 1


SUMMARY = """\
6. All user messages:
   - "Write a parser."
7. Pending Tasks:
   - Document the  grammar
   - Release it

8. Current Work:
   - The tests of the parser
"""


def test_the_summary_of_a_compaction_names_what_is_pending(world: World, tmp_path: Path) -> None:
    files, transcript = new_agent(world), claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    edit = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "parser.py"}}
    transcript.write_text(claude_lines(("assistant", [edit])), encoding="utf-8")
    given = {"transcript_path": str(transcript)}
    hook(world, "PostCompact", trigger="auto", compact_summary="We wrote a parser.", **given)
    hook(world, "PostCompact", trigger="auto", compact_summary=SUMMARY, **given)
    hook(world, "Stop", last_assistant_message="It parses.", **given)
    hook(world, "SessionEnd", reason="other", **given)
    (log,) = files.session_files()
    entry = json.loads(log.read_text(encoding="utf-8"))
    assert entry["open_threads"] == ["Document the grammar", "Release it"]


def test_what_a_session_stored_or_found_itself_is_not_recalled_for_it(world: World, tmp_path: Path) -> None:
    memory_id, transcript = remembered(world), claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    result = {"type": "tool_result", "tool_use_id": "t", "content": json.dumps({"nodeId": memory_id})}
    transcript.write_text(claude_lines(("user", [result])), encoding="utf-8")
    hook(world, "Stop", last_assistant_message="Stored.", transcript_path=str(transcript))
    assert not hook(world, "UserPromptSubmit", prompt=PROMPT)
    assert hook(world, "UserPromptSubmit", prompt=PROMPT, session_id="another")


def test_the_log_of_a_session_is_not_recalled_for_it(world: World, tmp_path: Path) -> None:
    new_agent(world)
    transcript = claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    transcript.write_text(claude_lines(*WORKED), encoding="utf-8")
    given = {"transcript_path": str(transcript)}
    said = "The staging database of the orders service listens on port 5439."
    hook(world, "Stop", last_assistant_message=said, **given)
    hook(world, "SessionEnd", reason="other", **given)
    world.clock.advance(hours=2)
    assert "5439" in hook(world, "UserPromptSubmit", prompt=PROMPT, session_id="another")
    assert not hook(world, "UserPromptSubmit", prompt=PROMPT)


def test_a_session_that_goes_on_after_its_end_leaves_a_second_line(world: World, tmp_path: Path) -> None:
    files, transcript = new_agent(world), claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    given = {"transcript_path": str(transcript)}
    for number, said in enumerate(("The parser works.", "The printer works."), 1):
        with transcript.open("a", encoding="utf-8") as file:
            file.write(claude_lines(*WORKED))
        hook(world, "Stop", last_assistant_message=said, **given)
        for _ in range(2):
            hook(world, "SessionEnd", reason="other", **given)
        (log,) = files.session_files()
        assert len(log.read_text(encoding="utf-8").splitlines()) == number
    assert json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["summary"] == "The printer works."


def test_a_session_whose_client_never_said_that_it_ended_is_logged_later(
    world: World, tmp_path: Path
) -> None:
    files, transcript = new_agent(world), claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    transcript.write_text(claude_lines(*WORKED), encoding="utf-8")
    given = {"transcript_path": str(transcript)}
    hook(world, "Stop", last_assistant_message="The parser works.", **given)
    (state,) = (files.state / "sessions").glob("*.json")
    assert "The parser works." not in hook(world, "SessionStart", source="startup", session_id="next")
    assert not files.session_files()
    ended = world.clock.now.timestamp() - 7 * 3600
    os.utime(state, (ended, ended))
    for name in ("later", "last"):
        assert "The parser works." in hook(world, "SessionStart", source="startup", session_id=name)
    (log,) = files.session_files()
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1


def test_the_state_of_a_session_holds_no_secret(world: World, tmp_path: Path) -> None:
    files, transcript = new_agent(world), claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    secret = "ghp_" + "a8Kx93mPq0ZvT2rYw7LdNc51sBfUeJhGi4Xo"  # made up
    command = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": f"push --token {secret}"}}
    transcript.write_text(claude_lines(("assistant", [command])), encoding="utf-8")
    hook(world, "UserPromptSubmit", prompt=f"Push it with {secret} please.")
    hook(world, "Stop", last_assistant_message=f"Pushed with {secret}.", transcript_path=str(transcript))
    (state,) = (files.state / "sessions").glob("*.json")
    held = state.read_text(encoding="utf-8")
    assert "push --token" in held
    assert secret not in held


def test_a_session_that_did_something_leaves_one_line_and_one_that_did_not_leaves_none(
    world: World, tmp_path: Path
) -> None:
    files, transcript = new_agent(world), claude_folder(tmp_path / "data") / "t.jsonl"
    hook(world, "UserPromptSubmit", prompt="Fix the login test")
    hook(world, "Stop", last_assistant_message="The login test passes; the fixture was stale.")
    hook(world, "SessionEnd", reason="other")
    assert not files.session_files()
    call = {"type": "tool_use", "name": "Bash", "input": {"command": "make test"}}
    edit = {"type": "tool_use", "name": "Write", "input": {"file_path": "login.py"}}
    line = {"type": "assistant", "message": {"role": "assistant", "content": [call, edit]}}
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")
    secret = "ghp_" + "a8Kx93mPq0ZvT2rYw7LdNc51sBfUeJhGi4Xo"  # made up
    message = f"The login test passes; the token {secret} was stale."
    hook(world, "Stop", last_assistant_message=message, transcript_path=str(transcript))
    for _ in range(2):
        hook(world, "SessionEnd", reason="other", transcript_path=str(transcript))
    (file,) = files.session_files()
    (written,) = file.read_text(encoding="utf-8").splitlines()
    entry = json.loads(written)
    assert (entry["session"], entry["artifacts"]) == ("Fix the login test", ["login.py"])
    assert entry["summary"].startswith("The login test passes")
    assert secret not in written
    assert "The login test passes" in hook(world, "SessionStart", source="clear")


CALL = {"type": "tool_use", "name": "edit", "input": {"path": "login.py"}}
DONE = "The login test passes now."


@pytest.mark.parametrize(
    ("client", "start", "stop", "end", "transcript", "records"),
    [
        (
            "copilot-cli",
            ("SessionStart", {"source": "new", "initial_prompt": "Fix the login test"}),
            ("Stop", {"stop_reason": "end_turn"}),
            "SessionEnd",
            f".copilot/session-state/{SESSION}/events.jsonl",
            [
                {"type": "tool.execution_start", "data": {"toolName": "edit", "arguments": CALL["input"]}},
                {"type": "assistant.message", "data": {"content": DONE}},
            ],
        ),
        (
            "cursor",
            ("beforeSubmitPrompt", {"prompt": "Fix the login test"}),
            ("stop", {"status": "completed"}),
            "sessionEnd",
            f".cursor/projects/w/agent-transcripts/{SESSION}.jsonl",
            [{"role": "assistant", "message": {"content": [CALL, {"type": "text", "text": DONE}]}}],
        ),
    ],
)
def test_a_client_whose_hooks_do_not_give_the_last_answer_has_its_sessions_logged(
    tmp_path: Path,
    client: str,
    start: tuple[str, dict[str, str]],
    stop: tuple[str, dict[str, str]],
    end: str,
    transcript: str,
    records: list[dict[str, Any]],
) -> None:
    path = tmp_path / "data" / transcript
    path.parent.mkdir(parents=True)
    written(path, records)
    with open_world(tmp_path / "data") as world:
        files = new_agent(world)
        hook(world, start[0], client=client, **start[1])
        hook(world, stop[0], client=client, transcript_path=str(path), **stop[1])
        hook(world, end, client=client)
        (file,) = files.session_files()
        entry = json.loads(file.read_text(encoding="utf-8"))
    assert (entry["session"], entry["artifacts"]) == ("Fix the login test", ["login.py"])
    assert entry["summary"] == DONE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I connect to pg-stage-2, the staging host of the orders service, on its usual one.", "words"),
        ("See memory {id}.", "id"),
    ],
)
def test_a_later_answer_shows_that_a_memory_was_used(world: World, answer: str, reason: str) -> None:
    memory_id = remembered(world, FACT + " Its owner is the platform group; restarts happen nightly.")
    assert hook(world, "UserPromptSubmit", prompt="Which port does the staging database listen on?")
    hook(world, "Stop", last_assistant_message="Something else entirely.")
    assert impact(world)["used"] == 0
    text = answer.format(id=memory_id) + " The platform group restarts it nightly, its owner said."
    hook(world, "Stop", last_assistant_message=text)
    found = impact(world)
    assert (found["injections"], found["used"], found["memories"]) == (1, 1, 1)
    log = world.app.engine.settings.data_dir / "agent" / "receipts.jsonl"
    assert f'"by": "{reason}"' in log.read_text(encoding="utf-8")
    assert "5439" not in log.read_text(encoding="utf-8")
    world.app.settle()
    strength = world.app.engine.store.get_many([memory_id], access=EVERYTHING)[0].strength
    assert strength.exposed_at == world.clock.now


def test_a_correction_by_the_user_counts_against_the_last_injection(world: World) -> None:
    remembered(world)
    assert hook(world, "UserPromptSubmit", prompt=PROMPT)
    hook(world, "UserPromptSubmit", prompt="No, that is outdated.")
    assert (impact(world)["misled"], impact(world)["used"]) == (1, 0)


def test_a_correction_counts_against_the_memory_that_the_answer_used(world: World) -> None:
    memory_id = remembered(world)
    assert hook(world, "UserPromptSubmit", prompt=PROMPT)
    hook(world, "Stop", last_assistant_message=f"As {memory_id} says, it is so.")
    hook(world, "UserPromptSubmit", prompt="No, that is outdated.")
    found = impact(world)
    assert (found["used"], found["helped"], found["misled"]) == (1, 0, 1)


def test_a_correction_of_a_later_answer_counts_against_no_memory_that_was_used_before(world: World) -> None:
    memory_id = remembered(world)
    assert hook(world, "UserPromptSubmit", prompt=PROMPT)
    hook(world, "Stop", last_assistant_message=f"As {memory_id} says, it is so.")
    hook(world, "UserPromptSubmit", prompt="Good. Now write a haiku about autumn.")
    hook(world, "UserPromptSubmit", prompt="No, that is wrong.")
    assert (impact(world)["used"], impact(world)["misled"]) == (1, 0)


def test_feedback_in_the_session_that_was_shown_a_memory_says_whether_it_helped(world: World) -> None:
    memory_id = remembered(world)
    world.call("memory", action="promote", id=memory_id)
    world.clock.advance(hours=2)
    assert hook(world, "UserPromptSubmit", prompt=PROMPT)
    counts = [impact(world)[name] for name in ("used", "helped", "misled")]
    assert counts == [0, 0, 0]

    world.clock.advance(hours=0.1)
    world.call("memory", action="useful", id=memory_id)
    assert [impact(world)[name] for name in ("used", "helped", "misled")] == [1, 1, 0]
    world.clock.advance(hours=0.1)
    world.call("memory", action="demote", id=memory_id)
    assert [impact(world)[name] for name in ("helped", "misled")] == [0, 1]
    world.clock.advance(hours=5)
    world.call("memory", action="promote", id=memory_id)
    assert [impact(world)[name] for name in ("helped", "misled")] == [0, 1]


def test_impact_counts_silence_repeats_and_tokens(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", clock=HandClock()) as world:
        remembered(world)
        for session in ("a", "b"):
            for prompt in (PROMPT, PROMPT, "Write a haiku about autumn."):
                world.call("agent", action="recall", prompt=prompt, session_id=session)
        found = impact(world)
        counted = {name: found[name] for name in ("sessions", "prompts", "injections", "repeats", "memories")}
        assert counted == {"sessions": 2, "prompts": 6, "injections": 2, "repeats": 0, "memories": 1}
        assert found["silence"] == pytest.approx(4 / 6, abs=1e-4)
        assert 20 < found["tokens"] < 500
        assert [one["shown"] for one in found["neverUsed"]] == [2]


def test_a_session_gets_its_pack_where_nothing_can_be_written(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        files = new_agent(world)
        files.memory.write_text("# Working Patterns\n- Prefers short answers.\n", encoding="utf-8")
        shutil.rmtree(files.state, ignore_errors=True)
        files.state.write_text(
            "a file here makes the folder as unwritable as a read-only home", encoding="utf-8"
        )
        first = hook(world, "SessionStart", source="startup")
        assert "Prefers short answers." in first
        assert hook(world, "SessionStart", source="resume") == first
        assert world.call("agent", action="context", session_id="s")["kept"] is False
        assert hook(world, "UserPromptSubmit", prompt=PROMPT) == ""
        assert hook(world, "SessionEnd") == ""


def test_a_session_keeps_its_pack_after_the_disk_became_full(world: World) -> None:
    files = new_agent(world)
    files.memory.write_text("# Working Patterns\n- Prefers short answers.\n", encoding="utf-8")
    first = hook(world, "SessionStart", source="startup")
    (lock,) = (files.state / "sessions").glob(".*.lock")
    lock.unlink()
    lock.mkdir()  # the session cannot be locked any more, so it cannot be changed
    files.memory.write_text("# Working Patterns\n- Prefers long answers.\n", encoding="utf-8")
    assert hook(world, "SessionStart", source="resume") == first
    assert "Prefers long answers." in hook(world, "SessionStart", source="clear")


def test_doctor_says_when_the_hooks_of_each_client_last_ran(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        for name in (".claude/settings.json", ".codex/hooks.json"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text('{"hooks": {"Stop": [{"command": "vestige-hook x"}]}}', encoding="utf-8")
        (tmp_path / ".cursor").mkdir()
        (tmp_path / ".cursor" / "hooks.json").write_text('{"hooks": {}}', encoding="utf-8")
        hook(world, "SessionStart", source="startup")
        first = world.clock.now
        world.clock.advance(hours=3)
        hook(world, "Stop", last_assistant_message="Done.")
        found = world.call("agent", action="doctor")
        assert [(one["client"], one["installed"]) for one in found["hooks"]] == [
            ("claude-code", True),
            ("codex", True),
        ]
        ran = datetime.fromisoformat(found["hooks"][0]["lastRun"])
        assert ran == world.clock.now.replace(microsecond=0) > first
        assert "lastRun" not in found["hooks"][1]
        (never,) = [one for one in found["problems"] if "none has run" in one]
        assert never.startswith("The hooks of codex are installed")


def test_doctor_looks_for_hooks_where_connect_writes_them() -> None:
    written = {name: one.user[0].replace("CONFIG", "~/.config") for name, one in HOOK_CLIENTS.items()}
    assert written == HOOK_FILES


def test_doctor_names_broken_lines_future_notes_and_what_is_not_stored(world: World) -> None:
    files = new_agent(world)
    files.reflections.write_text('{"type":"idea","content":"x y z"}\nbroken\n', encoding="utf-8")
    (files.knowledge / "A.md").write_text("See [[Not written]].\n", encoding="utf-8")
    found = world.call("agent", action="doctor")
    assert found["futureNotes"] == ["Not written"]
    assert any("reflections.jsonl: 1 lines" in one for one in found["problems"])
    assert any(one.startswith("2 records") for one in found["problems"])
    world.call("agent", action="rebuild")
    assert not any("not in the store" in one for one in world.call("agent", action="doctor")["problems"])


def test_uninstall_removes_the_state_and_keeps_the_files(world: World) -> None:
    files = new_agent(world)
    hook(world, "SessionStart", source="startup")
    assert files.state.is_dir()
    assert world.call("agent", action="uninstall")["removed"]
    assert not files.state.exists()
    assert files.memory.is_file()


def test_uninstall_names_the_hooks_that_are_still_installed(world: World) -> None:
    files = new_agent(world)
    assert "--undo" not in world.call("agent", action="uninstall")["message"]
    hooks = files.memory.parent.parent / "settings.json"
    hooks.write_text('{"hooks": {"Stop": [{"hooks": [{"command": "vestige-hook"}]}]}}', encoding="utf-8")
    said = world.call("agent", action="uninstall")["message"]
    assert "`vestige connect claude-code --hooks --undo`" in said


CORRECTED = [
    {"type": "user", "message": {"role": "user", "content": "Start the service."}},
    {"type": "assistant", "message": {"role": "assistant", "content": "The service listens on port 5432."}},
    {"type": "user", "message": {"role": "user", "content": "No, it listens on port 5433."}},
]


def written(path: Path, records: list[dict[str, Any]]) -> str:
    """A transcript of Claude Code with these records; its path."""
    above = None
    lines = []
    for number, record in enumerate(records):
        link = {"uuid": f"u{number}", "parentUuid": above, "sessionId": SESSION}
        lines.append(json.dumps({**record, **link, "timestamp": f"2026-03-01T10:00:0{number}Z"}))
        above = f"u{number}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["Stop", "PreCompact", "SessionEnd"])
def test_a_correction_by_the_user_waits_for_a_review_once(world: World, tmp_path: Path, name: str) -> None:
    path = written(claude_folder(tmp_path / "data") / f"{SESSION}.jsonl", CORRECTED)
    for _ in range(2):
        hook(world, name, transcript_path=path)
    (waiting,) = world.call("review", action="list")["texts"]
    assert "5433" in waiting["content"]
    assert world.find("which port does the service listen on") == []
    world.call("review", action="reject", id=waiting["id"])
    hook(world, "SessionEnd", transcript_path=path)
    assert world.call("review", action="list")["texts"] == []


def test_nothing_is_proposed_when_capture_is_off_or_from_a_broken_transcript(tmp_path: Path) -> None:
    path = written(claude_folder(tmp_path) / f"{SESSION}.jsonl", CORRECTED)
    settings: dict[str, Any] = {"agent.capture": False, "sessions.home": str(tmp_path)}
    with open_world(tmp_path / "off", **settings) as off:
        hook(off, "SessionEnd", transcript_path=path)
        assert off.call("review", action="list")["texts"] == []
    broken = claude_folder(tmp_path) / "broken.jsonl"
    broken.write_bytes(b'\xff{"type": "user"\n[]\n{"type": 3}\n')
    settings = {"sessions.home": str(tmp_path)}
    with open_world(tmp_path / "on", **settings) as on:
        hook(on, "SessionEnd", transcript_path=str(broken))
        hook(on, "SessionEnd", transcript_path=str(broken.with_name("gone.jsonl")))
        assert on.call("review", action="list")["texts"] == []


def ran(number: int, command: str, output: str, *, failed: bool = False) -> list[dict[str, Any]]:
    """A command of the agent and its result, as Claude Code writes them."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output, "is_error": failed}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]


def test_an_error_and_what_fixed_it_wait_for_a_review(world: World, tmp_path: Path) -> None:
    cause = "The build fails because the lock file is stale. I will refresh it."
    records = [
        *ran(1, "make build", "error: package foo 1.2 not found in lock file", failed=True),
        {"type": "assistant", "message": {"role": "assistant", "content": cause}},
        *ran(2, "make lock", "locked"),
        *ran(3, "make build", "done"),
    ]
    hook(
        world,
        "SessionEnd",
        transcript_path=written(claude_folder(tmp_path / "data") / f"{SESSION}.jsonl", records),
    )
    (waiting,) = world.call("review", action="list")["texts"]
    assert waiting["nodeType"] == "fix"
    assert "package foo 1.2 not found" in waiting["content"]


# -- Whose transcripts are read


def waiting(world: World) -> list[str]:
    return [one["content"] for one in world.call("review", action="list")["texts"]]


def log_of(world: World) -> str:
    path = world.app.engine.settings.data_dir / "agent" / "hooks.log"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def read_to(world: World) -> int:
    """How far hooks have read the transcript of the session."""
    state = world.app.engine.settings.data_dir / "agent"
    return load_session(state, f"claude-code:{SESSION}").read_to


@pytest.mark.parametrize("over", ["rest", "mcp"])
@pytest.mark.parametrize("permissions", [("read", "write"), ("read", "write", "admin")])
def test_a_client_of_the_network_cannot_have_a_file_read(
    tmp_path: Path, permissions: tuple[str, ...], over: str
) -> None:
    path = written(claude_folder(tmp_path / "data") / f"{SESSION}.jsonl", CORRECTED)
    payload = {"hook_event_name": "SessionEnd", "session_id": SESSION, "transcript_path": path}
    with open_world(tmp_path / "data") as world, open_site(world) as site:
        key = bearer(site.key(*permissions))
        if over == "rest":
            url = "/api/v1/agent/hooks/claude-code"
            answer = site.http.post(url, json={"payload": payload}, headers=key)
        else:
            arguments = {"action": "hook", "client": "claude-code", "payload": payload}
            headers, body = modern("tools/call", {"name": "agent", "arguments": arguments})
            answer = site.http.post("/mcp", json=body, headers={**headers, **key})
            assert not answer.json()["result"].get("isError")
        assert answer.status_code == 200
        assert (waiting(world), read_to(world)) == ([], 0)
        assert log_of(world) == ""  # it learns nothing of the disk, and leaves nothing on it
        hook(world, "SessionEnd", transcript_path=path)  # the same, from the user's own machine
        assert (len(waiting(world)), read_to(world)) == (1, Path(path).stat().st_size)


def test_a_server_without_keys_reads_no_file_for_a_client_either(tmp_path: Path) -> None:
    path = written(claude_folder(tmp_path / "data") / f"{SESSION}.jsonl", CORRECTED)
    payload = {"hook_event_name": "SessionEnd", "session_id": SESSION, "transcript_path": path}
    with (
        open_world(tmp_path / "data") as world,
        inside(world.app) as transport,
        httpx.Client(transport=transport, base_url=f"{URL}/api/v1") as http,
    ):
        assert http.post("/agent/hooks/claude-code", json={"payload": payload}).status_code == 200
        assert (waiting(world), read_to(world)) == ([], 0)


def test_an_agent_cannot_have_files_outside_of_its_clients_folders_read(tmp_path: Path) -> None:
    home = tmp_path / "data"
    inner = claude_folder(home)
    outside = tmp_path / "private" / f"{SESSION}.jsonl"
    outside.parent.mkdir()
    written(outside, CORRECTED)
    (inner / "link.jsonl").symlink_to(outside)
    (inner / "folder").symlink_to(outside.parent)
    (inner / "loop.jsonl").symlink_to(inner / "loop.jsonl")
    (inner / "device.jsonl").symlink_to("/dev/zero")
    (inner / "directory.jsonl").mkdir()
    os.mkfifo(inner / "pipe.jsonl")
    written(inner / "text.txt", CORRECTED)
    dots = f"{inner}/../../../../private/{outside.name}"
    names = ["link.jsonl", f"folder/{outside.name}", "loop.jsonl", "device.jsonl", "directory.jsonl"]
    tried = [str(inner / name) for name in (*names, "pipe.jsonl", "text.txt")]
    with open_world(home) as world:
        for path in (*tried, dots, str(outside), "relative.jsonl", "/dev/zero", "\0.jsonl", "x" * 9_000):
            hook(world, "SessionEnd", transcript_path=path)
            hook(world, "Stop", transcript_path=path)
        assert waiting(world) == []
        assert str(outside) in log_of(world)


def test_each_client_may_name_only_its_own_transcripts(tmp_path: Path) -> None:
    path = written(claude_folder(tmp_path / "data") / f"{SESSION}.jsonl", CORRECTED)
    with open_world(tmp_path / "data") as world:
        for client, name in (("codex", "Stop"), ("gemini-cli", "AfterAgent"), ("opencode", "Stop")):
            hook(world, name, client=client, transcript_path=path)
        assert waiting(world) == []


def test_a_folder_of_a_client_may_be_a_link_that_its_user_made(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "data", tmp_path / "dotfiles"
    elsewhere.mkdir()
    home.mkdir()
    (home / ".claude").symlink_to(elsewhere)
    path = written(claude_folder(home) / f"{SESSION}.jsonl", CORRECTED)
    with open_world(home) as world:
        hook(world, "SessionEnd", transcript_path=path)
        assert len(waiting(world)) == 1


def test_of_a_huge_transcript_only_the_end_is_read(tmp_path: Path) -> None:
    path = claude_folder(tmp_path / "data") / f"{SESSION}.jsonl"
    with path.open("wb") as file:
        file.truncate(50_000_000_000)  # without blocks on the disk
        file.seek(0, os.SEEK_END)
        call = {"type": "tool_use", "name": "Bash", "input": {"command": "make test"}}
        line = {"type": "assistant", "message": {"role": "assistant", "content": [call]}}
        file.write(f"\n{json.dumps(line)}\n".encode())
    with open_world(tmp_path / "data") as world:
        hook(world, "SessionEnd", transcript_path=str(path))
        state = load_session(world.app.engine.settings.data_dir / "agent", f"claude-code:{SESSION}")
        assert state.work.commands == ("make test",)
        assert waiting(world) == []

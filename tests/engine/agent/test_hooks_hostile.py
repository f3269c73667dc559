"""Hostile payloads of hooks, transcripts and files of the agent, in which any value can be anything: each
gets an answer that every transport can send, or a named error."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from testbed.effort import effort
from testbed.world import World, open_world
from tests.engine.agent.agent_world import new_agent
from tests.engine.agent.test_hooks import claude_folder, hook
from vestige.core.errors import VestigeError
from vestige.engine.agent.hook_events import NAMES, PLUGINS
from vestige.engine.agent.session_state import FOLDER, load_session, quiet_sessions
from vestige.engine.agent.transcript import read_part

SEEDS = effort(60, nightly=3_000)
DEEP: Any = json.loads("[" * 400 + '"a"' + "]" * 400)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 1e300, "", " ", "a", "\0", "a\0b", "\ud800", "a\udfffb", "\u202e\u200b", "/",
    "~", "x" * 250_000, [], {}, [[]], [None, 1, "x", {}], {"a": []}, DEEP, {"a": DEEP}, ["completed"],
    "9999-12-31T23:59:59-14:00", {"content": {}}, '{"command": [[1]]}', "*** Update File: \ud800\n",
    "No, wrong: \ud800.", "Next steps:\n- \ud800\n", "What does Ada prefer, \ud800 or \0?",
)  # fmt: skip
TASKS = {"todos": [{"status": "pending", "content": "Test it"}, {"status": "completed", "content": "Build"}]}
CALLS = [
    {"name": "Edit", "input": {"file_path": "a.py"}},
    {"name": "Bash", "input": {"command": "ls"}},
    {"name": "shell", "input": '{"command": ["ls"]}'},
    {"name": "TodoWrite", "input": TASKS},
]


def payload_of(rng: Random, client: str) -> dict[str, Any]:
    """A payload with all fields that any client sends, some of them hostile."""
    made: dict[str, Any] = {
        "hook_event_name": rng.choice(list(NAMES[client])),
        "session_id": rng.choice(("s-1", "s-2", "s-\ud800", "s-\0")),
        "prompt": rng.choice(("Which language does Ada prefer?", *VALUES)),
        "source": rng.choice(("startup", "clear", "compact")),
        "last_assistant_message": "I use port 5439.",
        "compact_summary": "Pending tasks:\n- Test it\n",
        "cwd": "/w",
        "workspace_roots": ["/w"],
        "transcript_path": "/w/t.jsonl",
        "turns": [{"role": "user", "text": "No, it listens on 5433."}, {"role": "assistant", "text": "Yes."}],
        "calls": json.loads(json.dumps(CALLS)),
    }
    for _ in range(rng.randrange(4)):
        spoil(rng, made)
    return made


def spoil(rng: Random, holder: Any) -> None:
    """Replace a value at any depth; the name of the event stays, so that something is done."""
    names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    name = rng.choice([one for one in names if one != "hook_event_name"])
    inner = holder[name]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
        spoil(rng, inner)
    else:
        holder[name] = rng.choice(VALUES)


def test_every_payload_gets_an_output_that_can_be_sent(world: World) -> None:
    new_agent(world)
    world.remember("Ada prefers TypeScript over JavaScript.")
    world.clock.advance(hours=2)
    for seed in range(SEEDS):
        rng = Random(seed)
        client = rng.choice((*NAMES, *PLUGINS * 3))
        world.clock.advance(hours=rng.choice((0, 0, 7)))
        payload = payload_of(rng, client)
        try:
            output = world.call("agent", action="hook", client=client, payload=payload)
        except VestigeError as error:
            output = error.value()
        json.dumps(output, ensure_ascii=False, allow_nan=False).encode()
    world.app.settle()
    assert world.call("doctor")["status"] == "ok"


def test_a_role_or_a_status_that_is_no_text_costs_only_itself(world: World) -> None:
    turns = [{"role": [], "text": "a"}, {"role": {}, "text": "b"}, {"role": "user", "text": "It is 5433."}]
    tasks = [{"status": ["x"], "content": "Open"}, {"status": "completed", "content": "Done"}]
    calls = [{"name": "TodoWrite", "input": {"todos": tasks}}]
    hook(world, "Stop", client="opencode", turns=turns, calls=calls, last_assistant_message="Done.")
    held = load_session(world.app.engine.settings.data_dir / "agent", "opencode:0f1e")
    assert held.work.open_threads == ("Open",)


def test_half_a_character_in_a_transcript_becomes_a_question_mark(world: World, tmp_path: Path) -> None:
    tasks = [{"status": ["x"], "content": "\ud800"}]
    blocks = [
        {"type": "text", "text": "Port \ud800."},
        {"type": "tool_use", "name": "Edit", "input": {"file_path": f"{'x' * 2_000}\ud800"}},
        {"type": "tool_use", "name": "Bash", "input": {"command": "ls \ud800"}},
        {"type": "tool_use", "name": "TodoWrite", "input": {"todos": tasks}},
    ]
    line = {"type": "assistant", "message": {"role": "assistant", "content": blocks}}
    path = claude_folder(tmp_path / "data") / "t.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    part = read_part(path, 0)
    assert (part.text, part.last, part.work.commands) == ("Port ?.", "Port ?.", ("ls ?",))
    assert part.work.open_threads == ("?",)
    assert part.work.files == ("x" * 1_000,)
    hook(world, "Stop", transcript_path=str(path))


STATES: tuple[Any, ...] = (
    {"prompts": 1e999}, {"readTo": [1]}, {"pending": {"a": 1}}, {"pending": [{"id": 1, "signs": []}]},
    {"work": []}, {"work": {"files": 7}}, {"at": 5}, {"at": "9999-99-99"}, {"shown": None}, DEEP,
)  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_a_damaged_state_of_a_session_is_a_new_session(world: World, state: Any) -> None:
    hook(world, "UserPromptSubmit", prompt="Which language does Ada prefer?")
    (file,) = (world.app.engine.settings.data_dir / "agent" / FOLDER).glob("*.json")
    body = {"id": "claude-code:0f1e", **state} if isinstance(state, dict) else state
    file.write_text(json.dumps(body), encoding="utf-8")
    folder = world.app.engine.settings.data_dir / "agent"
    assert load_session(folder, "claude-code:0f1e").prompts == 0
    quiet_sessions(folder, world.clock.now)
    hook(world, "SessionStart", source="startup")
    assert world.call("agent", action="doctor")["sessions"] == 1


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
def test_days_at_the_end_of_the_calendar_and_odd_values_in_a_log_stop_nothing(
    tmp_path: Path, zone: str
) -> None:
    entries = [
        {"date": day, "time": clock, "session": "Parser", "summary": f"Wrote \ud800 on {day}."}
        for day in ("9999-12-31", "0001-01-01", "2026-02-31", "\ud800")
        for clock in ("00:00", "23:59", "25:00", "23:59:59.999999+14:00")
    ]
    values = [{"session": "a", "summary": one, "date": one, "time": one} for one in VALUES]
    with open_world(tmp_path / "data", timezone=zone) as world:
        files = new_agent(world)
        lines = "".join(json.dumps(one) + "\n" for one in (*entries, *values))
        (files.sessions / "2026-03-01.jsonl").write_text(lines, encoding="utf-8")
        files.reflections.write_text(
            "".join(json.dumps({"type": one, "content": one, "at": one}) + "\n" for one in VALUES),
            encoding="utf-8",
        )
        for action in ("rebuild", "doctor", "context", "impact"):
            answer = world.call("agent", action=action)
            json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
        assert world.call("doctor")["status"] == "ok"

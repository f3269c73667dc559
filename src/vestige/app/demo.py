"""The demo of `make demo`: a scratch memory that is filled, searched, corrected and left to fade.

It only uses the tools that agents have. The scratch memory has its own clock, so that months pass in a
moment.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from vestige.app.app import App, Clock, open_app, system_clock
from vestige.core.caller import Invocation
from vestige.core.clock import Uuid7
from vestige.core.errors import VestigeError
from vestige.operations.memory.search_view import SIGNAL_WORDS
from vestige.operations.shared.text import strength_share
from vestige.transports.cli.program import own_command, typed
from vestige.transports.connect.clients import Stdio, claude_add

WIDTH = 80
BAR = 24
REASONS = 3
"""The reasons that are shown for a result, the strongest first."""
BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CORRECTED = BEGIN + timedelta(days=60)
FADING_DAYS = (0, 1, 7, 30, 90, 365)
LESSONS = (
    "The printer on the second floor needs a restart after every paper jam.",
    "Invoices of the Rotterdam office are sent as scanned images.",
)

QUESTIONS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("What must Ada not eat?", {}),
    ("What caused the authentication outage?", {}),
    ("Did we consider container orchestration?", {}),
    ("HBR-2207", {}),
    ("Who is on call?", {"as_of": "2026-03-04"}),
    ("Who is on call?", {"as_of": "2026-03-11"}),
)

SESSION = {
    "session": "Move to PostgreSQL 16",
    "summary": "Harbour was moved in a dump and a restore.",
    "decisions": ["dump and restore, because the window was two hours"],
    "open_threads": ["remove the old server"],
}
PROMPTS = (
    "Which PostgreSQL does Harbour run on?",
    "Which PostgreSQL does Harbour run on?",
    "Write a haiku about autumn.",
)

OLD_SESSION = "4f0e6f1e-0000-4000-8000-000000000001"
TALK = (
    ("user", "The nightly import of Harbour stopped again. Why?"),
    (
        "assistant",
        "A run that was killed left its lock file. I make the import remove a lock without a process.",
    ),
)
LOST = "who left the lock file of the import"

Say = Callable[[str], None]


class Scratch:
    """A scratch memory: its tools and its clock."""

    def __init__(self, data_dir: Path, options: Mapping[str, Any]) -> None:
        self.time = BEGIN
        system = system_clock()
        clock: Clock = replace(system, now=self.now, new_id=Uuid7(self.now, system.rng))
        # Never the store that the environment names: made-up texts do not belong among real memories.
        folders = {f"agent.{name}_dir": str(data_dir / name) for name in ("memory", "on_demand", "knowledge")}
        self.home = data_dir / "home"
        apart = {
            "data_dir": str(data_dir),
            "storage.backend": "sqlite",
            "sessions.home": str(self.home),
            **folders,
        }
        self.app: App = open_app({**options, **apart}, clock=clock)

    def now(self) -> datetime:
        return self.time

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.app.call_tool(Invocation(name=name, arguments=arguments, request_id="demo"))


def main() -> int:
    """Show the demo; returns the exit code."""
    options = {"embeddings.wait_seconds": 60.0, "log_level": "error"}
    try:
        with tempfile.TemporaryDirectory(prefix="vestige-demo-") as folder:
            show(click.echo, Path(folder), options)
        for line in connecting(Path(sys.executable).with_name("vestige-mcp")):
            click.echo(line)
    except VestigeError as exc:
        click.echo(f"Error: {exc.message}" + (f"\nHint: {exc.hint}" if exc.hint else ""), err=True)
        return exc.exit_code
    except BrokenPipeError:
        # The reader closed the pipe; the rest of the buffer is dropped too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def show(say: Say, data_dir: Path, options: Mapping[str, Any]) -> None:
    """Fill a memory in `data_dir`, search it, correct it, and watch it fade."""
    scratch = Scratch(data_dir, options)
    with scratch.app:
        _remember(scratch, say)
        _ask(scratch, say)
        _correct(scratch, say)
        _start(scratch, say)
        _find_session(scratch, say)
        _fade(scratch, say)


def connecting(command: Path) -> list[str]:
    """Instructions for adding this Vestige to an agent."""
    path = str(command)
    desktop = {"mcpServers": {"vestige": {"command": path}}}
    return [
        *_heading("Connect your agent"),
        "This command configures many clients, and first shows what it would change:",
        f"  {own_command({})} connect",
        "",
        "Hooks bring the context and the recall above by themselves:",
        f"  {own_command({})} connect claude-code --hooks",
        "",
        "By hand. Claude Code, in a terminal:",
        f"  {typed(claude_add(Stdio(command=path), 'vestige'))}",
        "",
        "Codex, in ~/.codex/config.toml:",
        "  [mcp_servers.vestige]",
        f"  command = {json.dumps(path)}",
        "",
        "Claude Desktop, in claude_desktop_config.json",
        "(Settings > Developer > Edit Config):",
        f"  {json.dumps(desktop)}",
    ]


def _remember(scratch: Scratch, say: Say) -> None:
    items = json.loads(files(__package__).joinpath("demo.json").read_text(encoding="utf-8"))
    answer = scratch.tool("smart_ingest", items=items)
    model = scratch.tool("system_status")["embeddingModel"]
    ready = model["state"] == "ready"
    state = f"Model: {model['name']}, on this machine." if ready else f"Words only: {model.get('detail')}"
    _say(say, wrap(state, WIDTH))
    _say(say, _heading(f"{len(items)} facts stored in one call, and the decision about each"))
    groups: dict[tuple[str, str], list[str]] = {}
    for item, result in zip(items, answer["results"], strict=True):
        groups.setdefault((result["decision"], result["reason"]), []).append(item["content"])
    for (decision, reason), texts in groups.items():
        said = [f"{decision:<10}{len(texts):>3} x  {reason}", f"{'':<16}{texts[-1]}"]
        _say(say, [_clip(line, WIDTH) for line in said])


def _ask(scratch: Scratch, say: Say) -> None:
    _say(say, _heading("Questions, and why each answer has its rank"))
    for question, where in QUESTIONS:
        _answer(scratch, say, question, **where)


def _answer(scratch: Scratch, say: Say, question: str, **where: Any) -> None:
    """Search, and show the two best results with their explanation."""
    when = f"   (as of {where['as_of']})" if "as_of" in where else ""
    say("")
    say(f"? {question}{when}")
    found = scratch.tool("search", query=question, limit=2, explain=True, record=False, **where)
    for hit in found["results"]:
        say(f"  {hit['explain']['rank']}. {_clip(hit['content'], WIDTH - 5)}")
        _say(say, wrap(_reasons(hit["explain"]), WIDTH, initial_indent=" " * 5, subsequent_indent=" " * 5))
    if not found["results"]:
        say("  Nothing good enough." if found["abstained"] else "  Nothing found.")


def _reasons(why: Mapping[str, Any]) -> str:
    """The strongest signals of a hit, in the words of `vestige search --explain`."""
    strongest = sorted((one for one in why["signals"] if one["adds"]), key=lambda one: -abs(one["adds"]))
    return "; ".join(f"{SIGNAL_WORDS[one['signal']]} {one['adds']:+.2f}" for one in strongest[:REASONS])


def _correct(scratch: Scratch, say: Say) -> None:
    _say(say, _heading("Two months later: a correction, not an overwrite"))
    scratch.time = CORRECTED
    stored = "Harbour runs on PostgreSQL 16."
    answer = scratch.tool("smart_ingest", content=stored, tags=["database"], scope="/project/harbour")
    say(f"+ {stored}")
    say(f"  {answer['decision']}: {answer['reason']}")
    question = "Which PostgreSQL does Harbour run on?"
    for when in ("2026-04-01", f"{CORRECTED:%Y-%m-%dT%H:%M:%S}Z"):
        found = scratch.tool("search", query=question, limit=1, as_of=when, record=False)
        best = found["results"][0]["content"] if found["results"] else "Nothing found."
        say("")
        say(f"? {question}   (as of {when[:10]})")
        say(f"  {best}")


def _start(scratch: Scratch, say: Say) -> None:
    _say(say, _heading("A cold start: what a session begins with, and recall that is mostly silent"))
    scratch.tool("agent", action="init")
    scratch.tool("agent", action="remember", text="Ada, who runs Harbour. Prefers short answers.")
    scratch.tool("agent", action="log", **SESSION)
    scratch.tool("agent", action="reflect", content="Run the fast tests first.", type="pattern")
    scratch.time += timedelta(days=1)
    for line in scratch.tool("agent", action="context", session_id="demo")["context"].splitlines():
        say(_clip(line, WIDTH))
    for prompt in PROMPTS:
        found = scratch.tool("agent", action="recall", prompt=prompt, session_id="demo")
        say("")
        say(f"> {prompt}")
        shown = found["context"].splitlines()[2:-1] if found["context"] else [f"(silent: {found['why']})"]
        _say(say, [_clip(f"  {line}", WIDTH) for line in shown])


def _find_session(scratch: Scratch, say: Say) -> None:
    _say(say, _heading("An old session of a coding agent, found by what was said in it"))
    folder = scratch.home / ".claude" / "projects" / "-work-harbour"
    folder.mkdir(parents=True)
    with (folder / f"{OLD_SESSION}.jsonl").open("w", encoding="utf-8") as file:
        for number, (role, text) in enumerate(TALK):
            line = {
                "type": role, "uuid": f"{number}", "sessionId": OLD_SESSION, "cwd": "/work/harbour",
                "timestamp": BEGIN.isoformat(), "message": {"role": role, "content": text},
            }  # fmt: skip
            file.write(f"{json.dumps(line)}\n")
    scratch.tool("sessions", action="index")
    say(f"? {LOST}")
    for one in scratch.tool("recall_sessions", query=LOST)["sessions"]:
        for passage in one["passages"]:
            say(_clip(f"  {passage['role']}: {passage['text']}", WIDTH))
        say(f"  {one['resumeCommand']}")


def _fade(scratch: Scratch, say: Say) -> None:
    _say(say, _heading("Forgetting, on the FSRS-6 curve: strength after a number of days"))
    stored = scratch.tool("smart_ingest", items=[{"content": text} for text in LESSONS])
    helpful, other = (result["nodeId"] for result in stored["results"])
    start = scratch.time
    say(f"{'days':>5}   {'not used':<{BAR + 6}}   promoted on the first day")
    for days in FADING_DAYS:
        scratch.time = start + timedelta(days=days)
        if days == 1:
            scratch.tool("memory", action="promote", id=helpful, reason="It solved the problem.")
        kept = [_strength(scratch, memory_id) for memory_id in (other, helpful)]
        say(f"{days:>5}   " + "   ".join(_bar(share) for share in kept))
    say("")
    say("Faded memories rank lower; they are never deleted automatically.")


def _strength(scratch: Scratch, memory_id: str) -> float:
    state = scratch.tool("memory", action="state", id=memory_id)
    return strength_share(float(state["components"]["retention"]))


def _bar(share: float) -> str:
    full = round(BAR * share)
    return f"{'#' * full}{'.' * (BAR - full)} {share:>5.0%}"


def _heading(text: str) -> list[str]:
    return ["", "", text, "-" * len(text)]


def _say(say: Say, lines: Sequence[str]) -> None:
    for line in lines:
        say(line)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


if __name__ == "__main__":
    sys.exit(main())

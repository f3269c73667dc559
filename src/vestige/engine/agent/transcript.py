"""The end of a client's transcript, read for what a session did: files, commands, the last answer.

Only names and shapes that several clients share are used: any JSON object in a line with a path or a command
in it. What cannot be read is left out; a transcript is never needed.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vestige.core.lazy_dataclass import dataclass
from vestige.engine.agent.session_state import NO_WORK, SessionWork
from vestige.exchange.transcripts.clean import storable, without_injected
from vestige.exchange.transcripts.folders import TRANSCRIPT_SUFFIX, open_regular

TAIL_BYTES = 2_000_000
MAX_DEPTH = 12
TEXT_CHARS = 200_000
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_COMMANDS = ("command", "cmd")
_EDITS = re.compile(r"edit|write|patch|replace|create|notebook", re.IGNORECASE)
_TASKS = ("todos", "plan", "tasks")
_TASK_NAMES = ("content", "step", "title", "description")
_DONE = frozenset(("completed", "complete", "done", "cancelled", "canceled"))
_STATUS = ("status",)
TASK_CHARS, PATH_CHARS = 300, 1_000
_MEMORY_ID = re.compile(rb"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b")
MOST_MEMORIES = 500
_PENDING = re.compile(
    r"\W{0,6}(?:\d{1,2}\.)?\W{0,6}(?:pending tasks|open (?:tasks|threads)|remaining tasks|next steps)\W{0,6}",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s{0,20}[-*•] {1,8}(\S.{0,1000})")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,300})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptPart:
    """What a part of a transcript shows, and where it ends."""

    work: SessionWork = NO_WORK
    text: str = ""
    """What the agent said, without blocks that Vestige and other programs put in."""
    last: str = ""
    """The last message of the agent, for clients whose hooks do not give it."""
    memories: tuple[str, ...] = ()
    """Ids like those of memories, in the lines: what the session stored or found itself."""
    end: int = 0


def read_part(path: Path | None, start: int) -> TranscriptPart:
    """The lines of a transcript from a position on, at most the last two megabytes."""
    if path is None or path.suffix != TRANSCRIPT_SUFFIX:
        return TranscriptPart(end=start)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            begin = max(0 if start > size else start, size - TAIL_BYTES)
            file.seek(begin)
            raw = file.read(TAIL_BYTES)
    except OSError:
        return TranscriptPart(end=start)
    whole = raw.rfind(b"\n") + 1
    calls: list[Mapping[str, Any]] = []
    said: list[str] = []
    for line in raw[:whole].split(b"\n"):
        value = _object(line)
        if value is None or value.get("isSidechain") or value.get("agentId"):
            continue
        calls += _calls(value)
        said += map(storable, _said(value))
    text = without_injected("\n".join(said)[-TEXT_CHARS:])
    named = dict.fromkeys(one.decode() for one in _MEMORY_ID.findall(raw, 0, whole))
    ids = tuple(named)[-MOST_MEMORIES:]
    last = next((one for text in reversed(said) if (one := without_injected(text[-TEXT_CHARS:]))), "")
    return TranscriptPart(work=work_of(calls), text=text, last=last, memories=ids, end=begin + whole)


def work_of(calls: Iterable[Mapping[str, Any]]) -> SessionWork:
    """What calls of tools did: objects with a name and an input."""
    work = SessionWork()
    for call in calls:
        given = {"name": call["name"], "input": _arguments(call.get("input"))}
        files = tuple(storable(one[:PATH_CHARS]) for one in _files(given))
        commands, tasks = tuple(map(storable, _commands(given))), _open_tasks(given)
        work = work.then(SessionWork(files=files, commands=commands, open_threads=tasks))
    return work


def _object(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _calls(value: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The tool calls in a line: objects with a name and an input."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        name = value.get("name") or value.get("toolName")
        given = value.get("input") or value.get("arguments")
        if isinstance(name, str) and given:
            yield {"name": name, "input": given}
            return
        for one in value.values():
            yield from _calls(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            yield from _calls(one, depth + 1)


def _arguments(given: object) -> object:
    """Codex writes the arguments of a call as JSON in a text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return {"patch": given}


def _files(call: Mapping[str, Any]) -> list[str]:
    given, found = call["input"], list[str]()
    if not isinstance(given, dict):
        return found
    if _EDITS.search(call["name"]):
        found += [one for name in _PATHS if isinstance(one := given.get(name), str)]
    patch = given.get("patch") or given.get("input")
    return found + (_PATCHED.findall(patch) if isinstance(patch, str) else [])


def _commands(call: Mapping[str, Any]) -> list[str]:
    given, found = call["input"], list[str]()
    for one in (given.get(name) for name in _COMMANDS) if isinstance(given, dict) else ():
        if isinstance(one, str):
            found.append(" ".join(one.split())[:300])
        elif isinstance(one, list) and all(isinstance(word, str) for word in one):
            found.append(" ".join(one)[:300])
    return found


def _open_tasks(call: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What is not done of a list of tasks, such as TodoWrite of Claude Code and update_plan of Codex write;
    None for another call."""
    given = call["input"]
    for listed in (given.get(name) for name in _TASKS) if isinstance(given, dict) else ():
        if isinstance(listed, list) and any(isinstance(one, dict) and one.get("status") for one in listed):
            left = [one for one in listed if isinstance(one, dict) and _first_text(one, _STATUS) not in _DONE]
            named = (_first_text(one, _TASK_NAMES) for one in left)
            return tuple(storable(" ".join(one.split())[:TASK_CHARS]) for one in named if one)
    return None


def pending_tasks(summary: str) -> tuple[str, ...] | None:
    """The tasks that the summary of a compaction lists as pending; None without such a list."""
    found: list[str] = []
    lines = iter(summary.splitlines())
    if not any(_PENDING.fullmatch(line) for line in lines):
        return None
    for line in lines:
        item = _ITEM.match(line)
        if item is not None:
            found.append(" ".join(item[1].split())[:TASK_CHARS])
        elif line.strip():
            break
    return tuple(found) or None


def _first_text(values: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((one for one in map(values.get, names) if isinstance(one, str)), "")


def _said(value: Mapping[str, Any]) -> list[str]:
    """The texts of an assistant in a line of Claude Code, Codex, Cursor, Gemini CLI or Copilot CLI."""
    inner = value.get("message") or value.get("payload") or value.get("data") or value
    if not isinstance(inner, dict):
        return []
    role = inner.get("role") or value.get("type") or value.get("role") or ""
    if not any(word in str(role) for word in ("assistant", "gemini", "agent_message")):
        return []
    content = inner.get("content") or inner.get("text") or inner.get("message")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [str(one["text"]) for one in parts if isinstance(one, dict) and isinstance(one.get("text"), str)]

"""Transcripts of coding agents: which session led to a commit with this subject?"""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.client import Json
from benchmarks.quality.corpus import Corpus, Document, Question, need

FOLDER = "claude_sessions"
_SPOKEN = ("text", "thinking")
_ARGUMENT_CHARS = 300
"""Of each argument of a tool call: enough for a path or a command, too little for a whole file."""


def transcripts(data: Path) -> Corpus:
    """Every message as a memory, threads are sessions, gold are sessions. Results of tools are left out:
    they are files and listings, not what was said or done."""
    folder = need(data / FOLDER)
    documents = [
        Document(key=f"{path.stem}#{position}", content=text, thread=path.stem, position=position, author=who)
        for path in sorted(folder.glob("*.jsonl"))
        for position, (who, text) in enumerate(messages(path.read_text(encoding="utf-8")))
    ]
    known = {document.thread for document in documents}
    questions = []
    for asked in json.loads(need(folder / "queries.json").read_text(encoding="utf-8")):
        if gold := {session: 1.0 for session in asked["gold_sessions"] if session in known}:
            questions.append(Question(text=asked["subject"], gold=gold))
    return Corpus(name="transcripts", documents=documents, questions=questions)


def messages(text: str) -> Iterator[tuple[str, str]]:
    """Who said or did what, in order; broken lines are passed over."""
    for record in _records(text):
        message = record.get("message")
        if isinstance(message, dict) and record.get("type") in ("user", "assistant"):
            said = _said(message.get("content"))
        elif record.get("type") in ("user", "gemini"):
            said = "\n".join([_said(record.get("content")), *map(_called, record.get("toolCalls", []))])
        else:
            continue
        if said.strip():
            yield "user" if record["type"] == "user" else "assistant", said.strip()


def _records(text: str) -> Iterator[Json]:
    """The lines of a JSONL file; or the messages of a file that is one JSON object."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        lines = text.splitlines()
    else:
        yield from whole.get("messages", [whole])
        return
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield record


def _said(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(_part(part) for part in parts if isinstance(part, dict))


def _part(part: Json) -> str:
    kind = part.get("type")
    if kind in _SPOKEN:
        return str(part.get(kind, ""))
    return _called({"name": part.get("name"), "args": part.get("input")}) if kind == "tool_use" else ""


def _called(tool: Json) -> str:
    given = tool.get("args") or {}
    texts = (value[:_ARGUMENT_CHARS] for value in given.values() if isinstance(value, str))
    return " ".join([str(tool.get("name", "")), *texts])

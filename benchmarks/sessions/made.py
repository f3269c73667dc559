"""Transcripts of any total size, made from public ones: the same shape, other words.

Each file is a chain of public sessions in which words, numbers and ids are exchanged, so that no text comes
twice: a word for another one that is about as frequent, now and then for a new one. What is frequent stays.
Sizes of files follow a log-normal distribution with the median of the public ones: many small, a few large.
"""

import json
import math
import random
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.transcripts import FOLDER

MEDIAN_BYTES, SIGMA, LARGEST_BYTES = 250_000, 1.6, 60_000_000
"""Mean 900 kB. The public sessions have a median of 240 kB."""
CODEX_SHARE = 0.3
"""Of the files; the others are of Claude Code."""
UNCHANGED_WORDS = 300
NEW_WORDS = 0.05
"""The share of the words of a chained session that nothing had before, as names in a project are."""
SEED = 20_261_119
PROJECTS = 40
_FIXED_KEYS = frozenset(
    "type role name model version userType subtype level stop_reason media_type operation "
    "service_tier".split()
)
_TOKEN = re.compile(
    r"\\+(?:u[0-9a-f]{4}|.)"
    r"|(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<day>\b20\d\d-\d\d-\d\d(?=T))"
    r"|(?P<id>\b(?:msg|toolu|req)_\w{10,}|\b(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}\b)"
    r"|(?P<number>(?<![\d.])\d{3,15}(?![\d.]))"
    r"|(?P<word>[A-Za-z]{4,30}(?![A-Za-z]|\w*\\\":))",
    re.ASCII,
)
_KINDS = {"sessionId": "session", "session": "session", "cwd": "cwd"}
"""Values of these keys are those of the file. A rollout of Codex takes its id from its name."""

Record = dict[str, Any]  # a line of a transcript: its values can be anything
Piece = tuple[str, str]
"""A kind ("" stays as it is) and a text."""


@dataclass(frozen=True, slots=True)
class Template:
    """A public session, as the lines of a client in pieces."""

    lines: tuple[tuple[Piece, ...], ...]


class Vocabulary:
    """The words of the templates by class: how they are written, and how frequent they are."""

    def __init__(self, counts: Counter[str]) -> None:
        self.unchanged = {"bash", *(word for word, _ in counts.most_common(UNCHANGED_WORDS))}
        self._classes: dict[tuple[str, int], list[str]] = {}
        for word, times in sorted(counts.items()):
            if word not in self.unchanged:
                self._classes.setdefault(_class(word, times), []).append(word)
        self._of = {word: _class(word, times) for word, times in counts.items()}

    def other(self, word: str, rng: random.Random) -> str:
        if word in self.unchanged:
            return word
        made = rng.choice(self._classes[self._of[word]])
        if rng.random() < NEW_WORDS:
            made += "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 5)))
        return made


def _class(word: str, times: int) -> tuple[str, int]:
    form = (
        "lower"
        if word.islower()
        else "upper"
        if word.isupper()
        else "name"
        if word[1:].islower()
        else "mixed"
    )
    return form, int(math.log2(times))


class Exchange(dict[Piece, str]):
    """What each piece becomes in one chained session: the same piece always the same."""

    def __init__(self, words: Vocabulary, rng: random.Random, *, session: str, day: str, cwd: str) -> None:
        super().__init__()
        self._words, self._rng = words, rng
        self._given = {"session": session, "day": day, "cwd": cwd}

    def __missing__(self, piece: Piece) -> str:
        self[piece] = made = self._made(*piece)
        return made

    def _made(self, kind: str, text: str) -> str:
        if kind in self._given:
            return self._given[kind]
        if kind == "word":
            return self._words.other(text, self._rng)
        if kind in ("uuid", "id", "number"):
            return _TAIL.sub(self._drawn, text) if kind == "id" else _DIGITS.sub(self._drawn, text)
        return text

    def _drawn(self, found: re.Match[str]) -> str:
        digits = string.digits if found[0].isdigit() else "0123456789abcdef"
        if any(one.isupper() for one in found[0]):
            digits = string.ascii_letters + string.digits
        return "".join(self._rng.choices(digits, k=len(found[0])))


_DIGITS = re.compile(r"[0-9a-f]+")
_TAIL = re.compile(r"(?<=_)\w+$|^[0-9a-f]+$")


# -- Templates


def templates(data: Path) -> tuple[list[Template], list[Template], Vocabulary]:
    """The public sessions as files of Claude Code and as files of Codex."""
    claude, codex = [], []
    counts: Counter[str] = Counter()
    for path in sorted((data / FOLDER).glob("*.jsonl")):
        records = _records(path)
        if not records:
            continue
        claude.append(Template(tuple(tuple(_pieces(one)) for one in records)))
        codex.append(Template(tuple(tuple(_pieces(one)) for one in as_codex(records))))
        counts.update(text for line in claude[-1].lines for kind, text in line if kind == "word")
        counts.update(
            {
                text: 1
                for line in codex[-1].lines
                for kind, text in line
                if kind == "word" and text not in counts
            }
        )
    return claude, codex, Vocabulary(counts)


def _records(path: Path) -> list[Record]:
    """The lines of a file of Claude Code that are objects; none of a file of another client."""
    made = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "type" in record:
            made.append(record)
    return made if any("uuid" in one for one in made) else []


def _pieces(record: Record) -> Iterator[Piece]:
    """The line of a record in pieces, of which neighbours that stay as they are are one."""
    held = ""
    for kind, text in _of_value(record, ""):
        if kind:
            if held:
                yield "", held
                held = ""
            yield kind, text
        else:
            held += text
    yield "", f"{held}\n"


def _of_value(value: object, key: str) -> Iterator[Piece]:
    if isinstance(value, dict):
        comma = "{"
        for name, inner in value.items():
            yield "", f"{comma}{json.dumps(name, ensure_ascii=False)}:"
            yield from _of_value(inner, name)
            comma = ","
        yield "", "}" if value else "{}"
    elif isinstance(value, list):
        comma = "["
        for inner in value:
            yield "", comma
            yield from _of_value(inner, key)
            comma = ","
        yield "", "]" if value else "[]"
    elif isinstance(value, str) and key in _KINDS:
        yield from (("", '"'), (_KINDS[key], value), ("", '"'))
    elif isinstance(value, str) and key not in _FIXED_KEYS:
        yield from _of_text(json.dumps(value, ensure_ascii=False))
    else:
        yield "", json.dumps(value, ensure_ascii=False)


def _of_text(written: str) -> Iterator[Piece]:
    at = 0
    for found in _TOKEN.finditer(written):
        if found.lastgroup is not None:
            yield "", written[at : found.start()]
            yield found.lastgroup, found[0]
            at = found.end()
    yield "", written[at:]


# -- Codex


def as_codex(records: Sequence[Record]) -> Iterator[Record]:
    """The same session as a rollout of Codex: each message as an item and again as an event."""
    times = [str(one["timestamp"]) for one in records if one.get("timestamp")]
    at = times[0] if times else "2026-01-05T12:00:00.000Z"
    yield _codex(at, "session_meta", {"session": "", "cwd": "/", "cli_version": "0.50.0", "source": "cli"})
    yield _codex(at, "turn_context", {"cwd": "/", "model": "gpt-5.5", "approval_policy": "on-request"})
    for record in records:
        at = str(record.get("timestamp") or at)
        message = record.get("message")
        if record["type"] in ("user", "assistant") and isinstance(message, dict) and not record.get("isMeta"):
            yield from _messages(at, str(record["type"]), message.get("content"))


def _messages(at: str, role: str, content: object) -> Iterator[Record]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            form = "input_text" if role == "user" else "output_text"
            part = {"type": form, "text": block["text"]}
            yield _codex(at, "response_item", {"type": "message", "role": role, "content": [part]})
            yield _codex(
                at,
                "event_msg",
                {"type": f"{'user' if role == 'user' else 'agent'}_message", "message": block["text"]},
            )
        elif kind == "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}]
            yield _codex(at, "response_item", {"type": "reasoning", "summary": summary, "content": None})
            yield _codex(at, "event_msg", {"type": "agent_reasoning", "text": block["thinking"]})
        elif kind == "tool_use":
            yield _codex(at, "response_item", _call(block))
        elif kind == "tool_result":
            output = json.dumps(
                {"output": _text(block.get("content")), "metadata": {"exit_code": 0}}, ensure_ascii=False
            )
            yield _codex(
                at,
                "response_item",
                {"type": "function_call_output", "call_id": block["tool_use_id"], "output": output},
            )
            yield _codex(at, "event_msg", {"type": "token_count", "info": {"total_tokens": 12_345}})


def _call(block: Mapping[str, Any]) -> Record:
    given = block.get("input") or {}
    name, arguments = str(block.get("name")), given
    if name == "Bash":
        name, arguments = "shell", {"command": ["bash", "-lc", given.get("command", "")], "cwd": "/"}
    written = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "name": name, "arguments": written, "call_id": block["id"]}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(one.get("text") or "") for one in parts if isinstance(one, dict))


def _codex(at: str, kind: str, payload: Record) -> Record:
    return {"timestamp": at, "type": kind, "payload": payload}


# -- Files


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A transcript, and the word that only its last message has."""

    path: Path
    client: str
    session: str
    size: int
    mark: str


def write_transcripts(data: Path, home: Path, size: int) -> list[MadeFile]:
    """Files of Claude Code and Codex of this size in bytes in all."""
    claude, codex, words = templates(data)
    rng = random.Random(SEED)
    made: list[MadeFile] = []
    left = size
    while left > 0:
        client = "codex" if rng.random() < CODEX_SHARE else "claude"
        target = min(int(rng.lognormvariate(math.log(MEDIAN_BYTES), SIGMA)), LARGEST_BYTES, left)
        made.append(
            _write(home, len(made), client, codex if client == "codex" else claude, words, target, rng)
        )
        left -= made[-1].size
    return made


def _write(
    home: Path,
    number: int,
    client: str,
    sessions: Sequence[Template],
    words: Vocabulary,
    target: int,
    rng: random.Random,
) -> MadeFile:
    session = f"{rng.getrandbits(32):08x}-0000-4000-8000-{number:012x}"
    project = rng.randrange(PROJECTS)
    cwd = f"/home/dev/work/project-{project}"
    day = f"2026-{rng.randint(1, 10):02d}-{rng.randint(1, 28):02d}"
    if client == "codex":
        path = home / ".codex/sessions" / day.replace("-", "/") / f"rollout-{day}T10-00-00-{session}.jsonl"
    else:
        path = home / ".claude/projects" / f"-home-dev-work-project-{project}" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("w", encoding="utf-8", errors="replace") as file:
        while written < target:
            exchange = Exchange(words, rng, session=session, day=day, cwd=cwd)
            for pieces in rng.choice(sessions).lines:
                written += file.write("".join([exchange[piece] for piece in pieces]))
                if written >= target:
                    break
        mark = f"zq{number:x}mark"
        written += file.write(said(client, session, mark, f"What about {mark}, did that work?"))
    return MadeFile(path=path, client=client, session=session, size=path.stat().st_size, mark=mark)


def said(client: str, session: str, uid: str, text: str) -> str:
    """A line with a prompt, as the client writes it."""
    at = "2026-10-28T10:00:00.000Z"
    if client == "codex":
        part = {"type": "input_text", "text": text}
        payload = {"type": "message", "role": "user", "content": [part]}
        return f"{json.dumps(_codex(at, 'response_item', payload))}\n"
    record = {
        "type": "user", "uuid": uid, "parentUuid": None, "sessionId": session, "timestamp": at,
        "message": {"role": "user", "content": text},
    }  # fmt: skip
    return f"{json.dumps(record)}\n"

"""What the readers of transcripts share: values of records, and what steps add up to.

A reader takes records as its client wrote them and keeps what it must remember between two records in a small
state of JSON values, so that a file can be read on from where an earlier run stopped.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from vestige.core.lazy_dataclass import dataclass
from vestige.core.transcripts import (
    Action,
    Entry,
    Restarted,
    Rewound,
    RolledBack,
    SessionFacts,
    Step,
    Titled,
    merged,
    side_branches,
)

Json = dict[str, Any]  # a record of a client: its values can be anything
State = dict[str, Any]  # JSON values that a reader keeps between two records

MAX_OUTPUT_CHARS = 1_500
"""Of the output of a tool: most of it is files and listings. The file and its archive have the rest."""
MAX_ARGUMENT_CHARS = 300
"""Of an argument of a tool call: enough for a path or a command, too little for a whole file."""
MAX_TEXT_CHARS = 40_000
"""Of one message: a longer one is a pasted file."""
FILE_ARGUMENTS = (
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "filename",
    "target_file",
)
COMMAND_ARGUMENTS = ("command", "cmd", "script")
YEAR_10000 = 253_402_300_800


@dataclass(slots=True, kw_only=True)
class TranscriptSession:
    """A session with its entries: what the steps of a file add up to. The store of sessions does the same
    with rows."""

    facts: SessionFacts
    entries: dict[str, Entry] = field(default_factory=dict)
    side: set[str] = field(default_factory=set)
    """Entries that are of no branch that the session ended with."""
    calls: dict[str, set[str]] = field(default_factory=dict)
    """The entries that each action is in, by its id."""

    def turns(self) -> list[Entry]:
        """The entries of the last branch."""
        return [one for uid, one in self.entries.items() if uid not in self.side]


def conversations(steps: Iterable[Step]) -> dict[str, TranscriptSession]:
    """The sessions that these steps make."""
    made: dict[str, TranscriptSession] = {}
    titles: list[Titled] = []
    for step in steps:
        if isinstance(step, Titled):
            titles.append(step)
            continue
        name = step.id if isinstance(step, SessionFacts) else step.session
        one = made.setdefault(name, TranscriptSession(facts=SessionFacts(id=name)))
        _apply(one, step)
    for title in titles:
        for one in made.values():
            if title.leaf in one.entries:
                one.facts = merged(one.facts, SessionFacts(id=one.facts.id, title=title.title, title_rank=1))
    for one in made.values():
        one.side |= side_branches([(uid, entry.parent) for uid, entry in one.entries.items()])
    return made


def _apply(one: TranscriptSession, step: Step) -> None:
    match step:
        case SessionFacts():
            one.facts = merged(one.facts, step)
        case Entry():
            if step.uid not in one.entries or step.replaces:
                _end_actions(one, step)
                one.entries[step.uid] = step
                for action in step.actions:
                    one.calls.setdefault(action.id, set()).add(step.uid)
                one.side.discard(step.uid)
        case Rewound():
            order = list(one.entries)
            first = order.index(step.uid) if step.uid in one.entries else 0
            one.side.update(order[first:])
        case RolledBack():
            prompts = [uid for uid, entry in one.entries.items() if is_prompt(entry) and uid not in one.side]
            order = list(one.entries)
            if prompts and step.turns > 0:
                one.side.update(order[order.index(prompts[-min(step.turns, len(prompts))]) :])
        case Restarted():
            one.side.update(one.entries)


def _end_actions(one: TranscriptSession, step: Entry) -> None:
    """Let the results of an entry reach the actions that they end."""
    for result in filter(lambda result: result.id, step.results):
        for uid in one.calls.get(result.id, ()):
            entry = one.entries[uid]
            ended = tuple(replace(a, status=result.status) if a.id == result.id else a for a in entry.actions)
            one.entries[uid] = replace(entry, actions=ended)


def is_prompt(entry: Entry) -> bool:
    return entry.role == "user" and bool(entry.text)


# -- Values of records


def seconds(value: object) -> float | None:
    """A moment as seconds since 1970: ISO text, or a number of seconds or milliseconds. None for what is no
    time between 1970 and the year 9999."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if not 0 <= value < YEAR_10000 * 1000:
            return None
        return float(value) / 1000 if value > 1e11 else float(value)
    if isinstance(value, str) and value:
        try:
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
        found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        return found if 0 <= found < YEAR_10000 else None
    return None


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def mapping(value: object) -> Json:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Json]:
    """The objects in a JSON array; none where it is something else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def parsed(line: str | bytes) -> Json | None:
    """The object on a line; None for a broken line, which costs itself only."""
    try:
        value = orjson.loads(line)
    except ValueError:
        try:  # half of a surrogate pair, which orjson refuses
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def arguments_of(value: object) -> Json:
    """The arguments of a tool call, which some clients write as JSON in a text."""
    return (parsed(value) or {}) if isinstance(value, str) else mapping(value)


def action(id_: object, name: object, arguments: object, status: int | None = None) -> Action:
    """A call of a tool, from its arguments."""
    given = arguments_of(arguments)
    texts = list(_texts(given))
    if isinstance(arguments, str) and not given:
        texts = [arguments[:MAX_ARGUMENT_CHARS]]
    command = next((line for key in COMMAND_ARGUMENTS if (line := _command(given.get(key)))), None)
    files = [str(given[key]) for key in FILE_ARGUMENTS if isinstance(given.get(key), str) and given[key]]
    return Action(
        id=str(id_ or ""),
        name=str(name or ""),
        command=command,
        files=tuple(dict.fromkeys(files)),
        detail=" ".join(texts),
        status=status,
    )


def _texts(given: Mapping[str, object]) -> Iterator[str]:
    for value in given.values():
        if isinstance(value, str):
            yield value[:MAX_ARGUMENT_CHARS]
        elif isinstance(value, list):
            yield " ".join(one for one in value if isinstance(one, str))[:MAX_ARGUMENT_CHARS]


def _command(value: object) -> str | None:
    if isinstance(value, list):
        return " ".join(str(one) for one in value) or None
    return text_of(value)


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a patch in the form of `apply_patch` or `diff` names."""
    found = []
    for line in patch.splitlines():
        for mark in ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"):
            if line.startswith(mark):
                found.append(line[len(mark) :].strip())
    return tuple(dict.fromkeys(found))


def shortened(text: str, limit: int = MAX_OUTPUT_CHARS) -> str:
    """The beginning and the end of a long output: the end has the error or the total."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    # A mark in ASCII: texts with other characters take twice the time to search for secrets.
    return f"{text[:head]}\n[...]\n{text[-(limit - head) :]}"


def joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part.strip())

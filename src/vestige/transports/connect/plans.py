"""Plans the change that connecting a client makes: the new text of one file, or nothing."""

import difflib
import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from vestige.core.errors import InvalidInput
from vestige.transports.connect import files, jsonc, toml_text
from vestige.transports.connect.clients import (
    AgentClient,
    Entry,
    FormatName,
    Http,
    InlineKey,
    Json,
    Keys,
    Machine,
    Named,
    Scope,
    Server,
    Stdio,
)
from vestige.transports.connect.files import ConfigFile

# -- Masking of secrets of other servers in a settings file that is shown

# It errs on the safe side: hiding a harmless value costs little.

MASK = "********"

_STRING = r'(?:"""(?:[^\\]|\\.)*?"""+|\'\'\'.*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
_COMMENT = r"(?://[^\n]*|/\*.*?\*/|#[^\n]*)"
_TOKEN = re.compile(rf"(?P<comment>{_COMMENT})|{_STRING}(?=\s*[:=])|(?P<value>{_STRING})", re.DOTALL)
_PLACE = r"\b(?:env|environment|env_http_headers|http_headers|headers)[\"']?"
_SECTION = re.compile(
    rf"{_PLACE}\s*[:=]\s*\{{(?:{_STRING}|{_COMMENT}|[^{{}}\"])*+"  # in braces
    rf"|^[ \t]*\[[^\]\n]*{_PLACE}[ \t]*\][^\n]*(?:\n(?![ \t]*\[)[^\n]*)*"  # a table of TOML
    rf"|{_PLACE}\.[^=\n]{{1,200}}=[^\n]*",  # a dotted name of TOML
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_NAME = r"(?:key|token|secret|pass|pwd|auth|credential|cookie|bearer)[\w.-]{0,60}"
_NAMED = re.compile(rf"{_NAME}[\"']?\s*[:=,]\s*\[?\s*\Z", re.IGNORECASE)
_NAMED_CHARS = 100
"""Characters before a value in which its name is searched."""
_WITHIN = re.compile(
    rf"(?P<before>{_NAME}[\"']?\s*[:=]\s*|(?<![\w-])--[\w-]{{0,60}}{_NAME}\s+|\bBearer +)"
    r"(?:\"[^\"\n]*\"|'[^'\n]*'|(?:(?:Bearer|Basic) +)?[^\s&]+)"
    r"|(?<=://)[^/\s@]+(?=@)"
    r"|\b(?:vst_|sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|hf_)[\w-]{4,}",
    re.IGNORECASE,
)
"""A secret in a longer text: after its name or option, in a URL, or with a known prefix."""


def hidden(text: str, own: Collection[str] = ()) -> str:
    """JSON or TOML with the same lines, and values that may be secrets masked, except those in `own`, which
    are given as written, with quotes."""
    places = [(0, 0), *(found.span() for found in _SECTION.finditer(text))]

    def seen(token: re.Match[str]) -> str:
        shown, value = token.group(), token["value"]
        if value is None:
            return _WITHIN.sub(_masked, shown) if token["comment"] else shown
        if value in own:
            return shown
        start, end = places[bisect_right(places, (token.start(), len(text))) - 1]
        if start <= token.start() < end or _NAMED.search(
            text, max(0, token.start() - _NAMED_CHARS), token.start()
        ):
            return shown[0] + "\n".join([MASK] * (shown.count("\n") + 1)) + shown[0]
        return shown[0] + _WITHIN.sub(_masked, shown[1:-1]) + shown[0]

    return _TOKEN.sub(seen, text)


def _masked(found: re.Match[str]) -> str:
    return (found["before"] or "") + MASK


# -- Plans: the changes of a settings file, before they are made

LINE_CHARS = 200
"""Limit of a line in a diff: some clients write a whole file on one line."""

_HEADERS = ("headers", "http_headers")
_OF_PROCESSES = frozenset({"command", "args", "env", "env_vars", "cwd", "envFile", "environment"})
_OF_SERVERS = frozenset({"headers", "http_headers", "env_http_headers", "oauth", "oauth_resource", "auth"})
"""Fields that users add to one kind of server. Codex rejects its whole file if they are in the other kind."""
_PROGRAM = re.compile(r"\bvestige(?:-mcp)?(?:\.exe)?$|^https?://.*/mcp$")
"""The program that `connect` writes, as a path or after `python -m`, or the URL of a server."""
_SAMPLES: tuple[Server, ...] = (
    Stdio(command="x", args=("x",)),
    Http(url="x", key=InlineKey(text="x")),
    Http(url="x", key=Named(variable="x")),
)


class TextFormat(Protocol):
    """A file format that can be edited without changing the rest of the text."""

    def read(self, text: str) -> Entry:
        """The values, none for an empty text; ValueError states the error and its position."""

    def put(self, text: str, keys: Keys, value: Json) -> str:
        """The text with a value at `keys`; ValueError if its form cannot be edited."""

    def take(self, text: str, keys: Keys) -> str:
        """The text without the value at `keys`, which must exist."""


FORMATS: Mapping[FormatName, TextFormat] = {"json": jsonc, "toml": toml_text}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file and its new text; `after` is null if the file is removed. `spent` are copies to remove as well.
    `own` are the texts that it writes and may show, as in the file: never a key.

    `reverts` is an `undo` that leaves an entry: the one from before Vestige wrote its own. `foreign` is one
    that removes an entry that does not look like ours. Empty folders below `roots` are removed with the file.
    """

    client: AgentClient
    file: ConfigFile
    after: str | None
    private: bool = True
    secret: str | None = None
    own: frozenset[str] = frozenset()
    undoes: bool = False
    reverts: bool = False
    foreign: bool = False
    spent: tuple[Path, ...] = ()
    roots: tuple[Path, ...] = ()
    done: str = ""
    idle: str = ""
    """What to say when it is done, or when there is nothing to do, of a change that is not of an entry."""

    @property
    def nothing(self) -> bool:
        return self.after == self.file.text

    @property
    def outcome(self) -> str:
        if self.done:
            return self.done
        if self.reverts:
            return f"Restored the previous entry of {self.client.title}."
        return f"{self.client.title} is no longer connected." if self.undoes else "The entry is written."

    @property
    def warning(self) -> str:
        """What the user should know before the change; empty without anything."""
        return (
            "`vestige connect` did not write this entry, which refers to something else."
            if self.foreign
            else ""
        )

    @property
    def exposed(self) -> bool:
        """Whether a key would be in a file that other users of the machine can read."""
        return self.secret is not None and self.file.open_to_others

    def diff(self) -> str:
        """The difference like `diff -u`, with keys and secrets of others masked."""
        before, after = self.file.text, self.after
        seen: dict[str, str] = {}
        for text in (before or "", after or ""):
            for line, safe in zip(_lines(text), _lines(hidden(text, self.own)), strict=True):
                if safe != line or line not in seen:
                    seen[line] = safe
        lines = difflib.unified_diff(
            _lines(before),
            _lines(after),
            str(self.file.path) if before is not None else "/dev/null",
            str(self.file.path) if after is not None else "/dev/null",
            lineterm="",
        )
        # Masked line by line after the comparison: two different keys would look the same.
        return "\n".join(_cut(line[:1] + seen.get(line[1:], line[1:])) for line in lines)

    def apply(self, now: datetime) -> Path | None:
        """Apply the change; returns the copy of the previous file."""
        if self.nothing:
            return None
        if self.after is None or self.spent:
            files.restore(self.file, self.after, self.spent)
            if self.after is None:
                files.prune(self.file.target.parent, self.roots)
            return None
        return files.write(self.file, self.after, now=now, private=self.private)


def connect(client: AgentClient, machine: Machine, server: Server, *, name: str, scope: Scope) -> FileChange:
    """The change that adds a server to a client."""
    secret = server.key.text if isinstance(server, Http) and isinstance(server.key, InlineKey) else None
    if secret is not None and scope == "project":
        raise InvalidInput(
            "A key must not be in a file of a project, which is shared with everyone who has the project.",
            hint="Pass a variable that holds it with --key-env, or use --scope user.",
            details={"argument": "key"},
        )
    entry = client.entry(server)
    file = files.read(place(client, machine, scope))
    values = _values(client, file)
    keys = _entry_keys(client, values, name)
    wanted = _merged(client, _at(values, keys), entry)
    after = _checked(client, file, keys, wanted)
    texts = (text for text in _texts(entry) if secret is None or secret not in text)
    own = frozenset(json.dumps(text, ensure_ascii=False) for text in texts)
    return FileChange(client=client, file=file, after=after, secret=secret, own=own, private=scope == "user")


def undo(client: AgentClient, machine: Machine, *, name: str, scope: Scope) -> FileChange:
    """The change that removes a server from a client. A file that was not changed since becomes what it was,
    byte for byte; otherwise only the entry is removed."""
    file = files.read(place(client, machine, scope))
    values = _values(client, file)
    keys = _entry_keys(client, values, name)
    entry = _at(values, keys)
    if file.text is None or entry is None:
        return FileChange(client=client, file=file, after=file.text, undoes=True)
    same = [
        (path, text) for path, text in files.backups(file) if _written(client, text, name, entry) == file.text
    ]
    clean = [text for _, text in same if _at(_read(client, text), keys) is None]
    oldest = same[0][1] if same else file.text
    after: str | None
    if clean:
        after = clean[-1]
    elif _written(client, "", name, _at(_read(client, oldest), keys)) == oldest:
        after = None  # the file did not exist before
    else:
        after = oldest if same else _removed(client, file, keys)
    return FileChange(
        client=client,
        file=file,
        after=after,
        undoes=True,
        reverts=bool(same) and not clean and after is not None,
        foreign=not same and not _ours(entry),
        spent=tuple(path for path, _ in same),
        roots=machine.roots(),
    )


def connected(client: AgentClient, machine: Machine, *, name: str, scope: Scope) -> Entry | None:
    """The current entry of a client; InvalidInput if its file cannot be read."""
    values = _values(client, files.read(place(client, machine, scope)))
    entry = _at(values, _entry_keys(client, values, name))
    return entry if isinstance(entry, dict) else None


def own_names(client: AgentClient, machine: Machine, *, scope: Scope) -> list[str]:
    """The names of the entries of a client that refer to Vestige; InvalidInput if its file cannot be read."""
    values = _values(client, files.read(place(client, machine, scope)))
    entries = _at(values, _entry_keys(client, values, "")[:-1])
    return [name for name, entry in entries.items() if _ours(entry)] if isinstance(entries, dict) else []


def place(client: AgentClient, machine: Machine, scope: Scope) -> Path:
    """The settings file of a client, or InvalidInput if it has none for this scope."""
    templates = client.files(scope, machine.platform)
    if not templates:
        raise InvalidInput(
            f"{client.title} has no settings file for a project.",
            hint="Omit --scope.",
            details={"client": client.name, "argument": "scope"},
        )
    return machine.choose(templates)


def snippet(client: AgentClient, server: Server, name: str) -> str:
    """The text of a file with only this server in it."""
    return FORMATS[client.format].put("", (*client.containers[-1], name), client.entry(server))


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARS else line[:LINE_CHARS] + "…"


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _merged(client: AgentClient, found: Json, entry: Entry) -> Entry:
    """The entry with what users added to the existing one, which is kept."""
    if not isinstance(found, dict):
        return entry
    ours = {key for sample in _SAMPLES if _takes(client, sample) for key in client.entry(sample)}
    alien = _OF_SERVERS if "command" in entry else _OF_PROCESSES
    kept = {
        key: value
        for key, value in found.items()
        if key in entry or (key not in alien and (key not in ours or value in ([], {})))
    }
    merged: Entry = {**kept, **entry}
    for key in _HEADERS:
        old, new = found.get(key), entry.get(key)
        if isinstance(old, dict) and key in ours and "command" not in entry:
            others = {name: value for name, value in old.items() if name.lower() != "authorization"}
            both = {**others, **(new if isinstance(new, dict) else {})}
            merged = {**merged, key: both} if both else {k: v for k, v in merged.items() if k != key}
    return merged


def _ours(entry: Json) -> bool:
    """Whether an entry seems to refer to Vestige."""
    if isinstance(entry, dict):
        return any(_ours(value) for value in entry.values())
    if isinstance(entry, list):
        return any(_ours(value) for value in entry)
    return isinstance(entry, str) and bool(_PROGRAM.search(entry))


def _takes(client: AgentClient, server: Server) -> bool:
    if isinstance(server, Stdio):
        return True
    return bool(client.http) and (client.reference is not None or not isinstance(server.key, Named))


def _checked(client: AgentClient, file: ConfigFile, keys: Keys, wanted: Entry) -> str:
    """The text with the entry. It is parsed again, and an edit that changes more is rejected."""
    before = _read(client, file.text or "")
    if _at(before, keys) == wanted and file.text is not None:
        return file.text
    expected = deepcopy(before)
    inner = expected
    for key in keys[:-1]:
        below = inner.setdefault(key, {})
        if not isinstance(below, dict):
            raise files.unusable(file.path, f"has another value at `{key}`")
        inner = below
    inner[keys[-1]] = wanted
    try:
        after = _put(FORMATS[client.format], file.text or "", keys, wanted)
        right = _read(client, after) == expected
    except ValueError as exc:
        raise files.unusable(file.path, f"cannot be edited: {exc}") from exc
    if not right:
        raise files.unusable(file.path, "cannot be edited without changing more than the entry")
    return after


def _removed(client: AgentClient, file: ConfigFile, keys: Keys) -> str:
    text = file.text or ""
    expected = deepcopy(_read(client, text))
    inner = _at(expected, keys[:-1])
    if isinstance(inner, dict):
        del inner[keys[-1]]
    try:
        after = FORMATS[client.format].take(text, keys)
        right = _pruned(_read(client, after), keys) == _pruned(expected, keys)
    except (ValueError, KeyError) as exc:
        raise files.unusable(file.path, f"cannot be edited: {exc}") from exc
    if not right:
        raise files.unusable(file.path, "cannot be edited without changing more than the entry")
    return after


def _pruned(values: Entry, keys: Keys) -> Entry:
    """The values without empty containers, which some formats cannot write."""
    if len(keys) < 2 or not isinstance(inner := values.get(keys[0]), dict):
        return values
    below = _pruned(inner, keys[1:])
    rest = {key: value for key, value in values.items() if key != keys[0]}
    return {**rest, keys[0]: below} if below else rest


def _put(form: TextFormat, text: str, keys: Keys, wanted: Entry) -> str:
    """The text with the entry: only differences are written, so that comments in it stay."""
    found = _at(form.read(text), keys)
    if not isinstance(found, dict):
        return form.put(text, keys, wanted)
    try:
        after = text
        for key in (key for key in found if key not in wanted):
            after = form.take(after, (*keys, key))
        for key, value in wanted.items():
            if key not in found or found[key] != value:
                after = form.put(after, (*keys, key), value)
    except (ValueError, KeyError):
        return form.put(text, keys, wanted)
    return after


def _written(client: AgentClient, text: str, name: str, entry: Json) -> str | None:
    """A text with an entry as `connect` would write it, or None if it cannot."""
    try:
        keys = _entry_keys(client, _read(client, text), name)
        return _put(FORMATS[client.format], text, keys, entry) if isinstance(entry, dict) else None
    except (ValueError, KeyError):
        return None


def _read(client: AgentClient, text: str) -> Entry:
    return FORMATS[client.format].read(text)


def _values(client: AgentClient, file: ConfigFile) -> Entry:
    try:
        return _read(client, file.text or "")
    except ValueError as exc:
        raise files.unusable(file.path, f"cannot be read as {client.format.upper()}: {exc}") from exc


def _entry_keys(client: AgentClient, values: Entry, name: str) -> Keys:
    there = (keys for keys in client.containers if isinstance(_at(values, keys), dict))
    return (*next(there, client.containers[-1]), name)


def _at(values: Json, keys: Keys) -> Json:
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            return None
        values = values[key]
    return values


def _lines(text: str | None) -> list[str]:
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")] if text else []

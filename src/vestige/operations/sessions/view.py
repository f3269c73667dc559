"""Sessions of coding agents as answers and as text."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import Field

from vestige.core.timezone import time_text
from vestige.engine.recall.sessions.recall import FoundPassage, FoundSession
from vestige.exchange.transcripts.shape import YEAR_10000
from vestige.exchange.transcripts.sources import resume_command
from vestige.operations.registry.arguments import Wire
from vestige.operations.shared.text import advice, clip, count, facts_lines, one_line, size, styled, warning
from vestige.store.contract.sessions import StoredEntry, StoredSession


class CommandView(Wire):
    """A command that was run; `status` is its exit status, or 0 and 1 where only success is known."""

    command: str
    status: int | None = None


class SessionPassage(Wire):
    """A passage that matches. `entry` is its number in the session, for `read_session`."""

    role: str
    text: str
    at: str | None = None
    side: bool | None = Field(None, description="Of a branch that was taken back.")
    files: list[str] | None = None
    commands: list[CommandView] | None = None


class SessionView(Wire):
    """A session of a coding agent."""

    session_id: str
    client: str
    title: str | None = None
    cwd: str | None = None
    repository: str | None = None
    branch: str | None = None
    started: str | None = None
    ended: str | None = None
    prompts: int
    entries: int
    subagent: bool | None = None
    parent: str | None = None
    resume_command: str | None = None
    score: float | None = None
    passages: list[SessionPassage] | None = None


class SessionEntryView(Wire):
    """A message of a session, with what was done in it."""

    role: str
    at: str | None = None
    text: str | None = None
    thought: str | None = None
    output: str | None = None
    side: bool | None = None
    files: list[str] | None = None
    commands: list[CommandView] | None = None


class SessionsFound(Wire):
    """Sessions, the best first. `window` is the time that the query asks about, as it was read."""

    query: str
    sessions: list[SessionView]
    window_start: str | None = None
    window_end: str | None = None
    message: str


class SessionsListed(Wire):
    """Sessions, the last used first."""

    total: int
    sessions: list[SessionView]
    message: str


class SessionRead(Wire):
    """A session with its entries, from number `first` on."""

    session: SessionView
    first: int
    entries: list[SessionEntryView]
    more: bool


class SessionsIndexed(Wire):
    """What a run read. `unread` are files that could not be read, with the reason."""

    files: int
    changed: int
    bytes_read: int
    entries: int
    broken_lines: int
    sessions: int
    size_bytes: int
    clients: dict[str, int]
    unread: dict[str, str]
    message: str


class SessionsArchived(Wire):
    """What was copied to the archive. `same` files were in it already."""

    files: int
    copied: int
    same: int
    bytes: int
    stored_bytes: int
    folder: str
    unread: dict[str, str]
    message: str


class ExpiringView(Wire):
    """A file that its client will delete."""

    path: str
    client: str
    expires: str
    archived: bool


class SessionsDiagnosis(Wire):
    """The state of index and archive, and what will vanish when. `lost`: gone, indexed, without a copy."""

    files: int
    indexed_sessions: int
    unindexed: int
    expiring: list[ExpiringView]
    unarchived: int = Field(description="Expiring files that the archive does not have as they are now.")
    gone_archived: int
    lost: int
    damaged: list[str]
    copies: int
    copy_bytes: int
    skipped: int = Field(description="Files that are never read: links, pipes and folders.")
    skipped_files: dict[str, str] = Field(description="The first of them, with the reason.")
    index_bytes: int
    message: str


class ResumeView(Wire):
    """How to take a session up again. Some clients must be started in the session's folder."""

    session_id: str
    client: str
    cwd: str | None = None
    command: list[str]
    message: str


def iso(seconds: float | None) -> str | None:
    """None for what no calendar has, too: an older version stored times as a client wrote them."""
    if seconds is None or not 0 <= seconds < YEAR_10000:
        return None
    return moment(seconds).isoformat()


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def session_view(one: StoredSession, found: FoundSession | None = None) -> SessionView:
    command = resume_command(one.client, one.resume or one.id) if not one.subagent else None
    return SessionView(
        session_id=one.id,
        client=one.client,
        title=one.title,
        cwd=one.cwd,
        repository=one.repository,
        branch=one.branch,
        started=iso(one.started),
        ended=iso(one.ended),
        prompts=one.prompts,
        entries=one.entries,
        subagent=one.subagent or None,
        parent=one.parent,
        resume_command=shlex.join(command) if command else None,
        score=found.score if found and found.passages else None,
        passages=[passage_view(passage) for passage in found.passages] if found and found.passages else None,
    )


def passage_view(one: FoundPassage) -> SessionPassage:
    return SessionPassage(
        role=one.entry.role,
        text=one.excerpt,
        at=iso(one.entry.at),
        side=one.entry.side or None,
        files=list(one.files) or None,
        commands=[CommandView(command=clip(command, 300), status=status) for command, status in one.commands]
        or None,
    )


def entry_view(one: StoredEntry, *, outputs: bool) -> SessionEntryView:
    files = list(dict.fromkeys(file for action in one.actions for file in action.files))
    commands = [
        CommandView(command=action.command, status=action.status) for action in one.actions if action.command
    ]
    return SessionEntryView(
        role=one.role,
        at=iso(one.at),
        text=one.text or None,
        thought=(one.thought or None) if outputs else None,
        output=(one.output or None) if outputs else None,
        side=one.side or None,
        files=files or None,
        commands=commands or None,
    )


# -- Text


def _when(one: SessionView) -> str | None:
    last = one.ended or one.started
    return time_text(datetime.fromisoformat(last)) if last else None


def session_lines(one: SessionView) -> list[str]:
    head = styled("strong", clip(one_line(one.title or "(no title)")))
    kind = f"{one.client}, subagent" if one.subagent else one.client
    lines = [head, *facts_lines([styled("id", one.session_id), kind, _when(one), one.cwd])]
    for passage in one.passages or ():
        side = ", taken back" if passage.side else ""
        lines.append(f"    {styled('quiet', f'{passage.role}{side}:')} {one_line(passage.text)}")
        for command in (passage.commands or ())[:2]:
            status = "" if command.status is None else f" → {command.status}"
            lines.append(f"    {styled('quiet', '$')} {clip(one_line(command.command))}{status}")
    return lines


def session_list(sessions: Sequence[SessionView], message: str) -> str:
    parts = ["\n".join(session_lines(one)) for one in sessions]
    return "\n\n".join([*parts, message])


def render_found(answer: SessionsFound) -> str:
    return session_list(answer.sessions, answer.message)


def render_listed(answer: SessionsListed) -> str:
    return session_list(answer.sessions, answer.message)


def render_read(answer: SessionRead) -> str:
    parts = ["\n".join(session_lines(answer.session))]
    for entry in answer.entries:
        lines = []
        if entry.text:
            lines.append(entry.text)
        lines += [
            f"$ {clip(one_line(command.command))}"
            + ("" if command.status is None else f" → {command.status}")
            for command in entry.commands or ()
        ]
        if entry.files and not entry.commands:
            lines.append(styled("quiet", ", ".join(entry.files)))
        if entry.output:
            lines.append(styled("quiet", entry.output))
        if lines:
            side = " (taken back)" if entry.side else ""
            parts.append("\n".join([styled("strong", f"{entry.role}{side}"), *lines]))
    if answer.more:
        following = answer.first + len(answer.entries)
        parts.append(
            advice(f"More: `vestige sessions read {answer.session.session_id} --first {following}`.")
        )
    return "\n\n".join(parts)


def render_indexed(answer: SessionsIndexed) -> str:
    notes = [warning(f"{path} was not read: {reason}") for path, reason in sorted(answer.unread.items())[:10]]
    return "\n".join([answer.message, *notes])


def render_archived(answer: SessionsArchived) -> str:
    notes = [
        warning(f"{path} was not copied: {reason}") for path, reason in sorted(answer.unread.items())[:10]
    ]
    return "\n".join(
        [answer.message, f"{size(answer.stored_bytes)} in {styled('link', answer.folder)}", *notes]
    )


def render_diagnosis(answer: SessionsDiagnosis) -> str:
    lines = [answer.message]
    soon = [one for one in answer.expiring if not one.archived][:10]
    if soon:
        lines.append(warning(f"{count(answer.unarchived, 'file')} will vanish without a copy; the first:"))
        lines += [f"  {one.expires[:10]}  {one.client}  {one.path}" for one in soon]
        lines.append(advice("`vestige sessions archive` copies them."))
    if answer.lost:
        lines.append(
            f"{count(answer.lost, 'file')} vanished without a copy; what was indexed of them is kept."
        )
    if answer.skipped:
        lines.append(warning(f"{count(answer.skipped, 'file')} in the clients' folders not read; the first:"))
        lines += [f"  {path}: {reason}" for path, reason in list(answer.skipped_files.items())[:10]]
    lines += [warning(f"The copy {name} is damaged or missing.") for name in answer.damaged]
    return "\n".join(lines)

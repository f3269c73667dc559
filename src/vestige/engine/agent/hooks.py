"""What happens at each hook: the pack at a start, recall at a prompt, and a log of what the session did."""

import os
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from vestige.cognition.evidence.capture.turns import ProposalKind
from vestige.core.errors import ConfigError, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.agent import receipts
from vestige.engine.agent.files import AgentFiles
from vestige.engine.agent.hook_events import HookEvent, HookKind
from vestige.engine.agent.hook_log import note_failure
from vestige.engine.agent.journal import log_session
from vestige.engine.agent.layers import SessionEntry
from vestige.engine.agent.pack import build_pack
from vestige.engine.agent.session_state import (
    AgentSession,
    SessionWork,
    changing,
    forget_old_sessions,
    load_session,
    quiet_sessions,
)
from vestige.engine.agent.tail import recollect
from vestige.engine.agent.transcript import pending_tasks, read_part, work_of
from vestige.engine.context import Call
from vestige.engine.memory.capture import propose, propose_from_file
from vestige.engine.recall.sessions.folders import client_folders
from vestige.exchange.transcripts.clean import without_secrets
from vestige.exchange.transcripts.folders import own_transcript

TITLE_CHARS, SUMMARY_CHARS = 80, 400
STOP_BYTES, CAPTURE_BYTES = 500_000, 20_000_000
"""The longest transcript from which rules propose memories after an answer, and at the end."""
MOST_LOGGED = 3
"""The most earlier sessions that the start of one logs."""
TRANSCRIPTS = {
    "claude-code": "claude", "gemini-cli": "gemini", "copilot-cli": "copilot", "cursor": "cursor-cli",
}  # fmt: skip
"""The names that readers of transcripts have for clients of hooks, where they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What a hook puts into the context, and its receipt; `kept` if the session gets the same text again."""

    text: str = ""
    kept: bool = True
    receipt: str = ""
    memories: tuple[str, ...] = ()
    why: str = ""


def answer_hook(call: Call, files: AgentFiles, event: HookEvent) -> HookContext:
    """Do what a hook asks for; on any trouble say nothing, and note it for `agent doctor`."""
    try:
        return run_hook(call, files, _with_own_transcript(call, files, event))
    except VestigeError as exc:
        _note(call, files, event, f"{exc.code}: {exc.message}")
        return HookContext(why=exc.code)


def _note(call: Call, files: AgentFiles, event: HookEvent, why: str) -> None:
    at = call.engine.now().isoformat(timespec="seconds")
    note_failure(files.state, f"{at} {event.client} {event.name}: {why}")


def run_hook(call: Call, files: AgentFiles, event: HookEvent) -> HookContext:
    match event.kind:
        case HookKind.START:
            return session_pack(call, files, event)
        case HookKind.PROMPT:
            return prompt_tail(call, files, event)
        case HookKind.COMPACT | HookKind.STOP:
            _follow(call, files, event)
            _propose(call, files, event)
        case HookKind.END:
            _follow(call, files, event)
            short = event.transcript is None or event.transcript.stat().st_size <= STOP_BYTES
            if short:  # its decisions belong into the log; a long transcript may take all the time there is
                _propose(call, files, event)
            log_ended(call, files, event.session)
            if not short:
                _propose(call, files, event)
    return HookContext()


def _with_own_transcript(call: Call, files: AgentFiles, event: HookEvent) -> HookEvent:
    """The event with a transcript only if it may be read: only the user of this machine can name a file, and
    only one in the folders of the client. Without a transcript a hook does what it can."""
    if event.transcript is None:
        return event
    roots = client_folders(call.engine.settings).of_hook(event.client) if call.on_this_machine else ()
    found = own_transcript(event.transcript, roots)
    if found is None and call.on_this_machine and os.path.lexists(event.transcript):
        why = f"{event.transcript} was not read: no transcript in the folders of the client"
        _note(call, files, event, why)
    return replace(event, transcript=found)


def session_pack(call: Call, files: AgentFiles, event: HookEvent) -> HookContext:
    """The pack of a session: the one it has, unless a clear or a compaction renews it. Where nothing can be
    written, it is made and given without being kept."""
    try:
        return _kept_pack(call, files, event)
    except ConfigError as exc:  # a home that is read-only, or a full disk
        _note(call, files, event, f"{exc.code}: {exc.message}")
        held = load_session(files.state, event.session)
        if held.pack is not None and not event.renews:
            return HookContext(text=held.pack, receipt=held.pack_id)
        pack = build_pack(call, files, pack_id=_receipt(event.session))
        return HookContext(text=pack.text, receipt=pack.id, memories=pack.memories, kept=False)


def _kept_pack(call: Call, files: AgentFiles, event: HookEvent) -> HookContext:
    now = call.engine.now()
    if load_session(files.state, event.session).pack is None:
        _log_left(call, files)
    with changing(files.state, event.session, now) as save:
        session = load_session(files.state, event.session)
        if session.pack is not None and not event.renews:
            return HookContext(text=session.pack, receipt=session.pack_id)
        if session.pack is None:
            forget_old_sessions(files.state, now)
        receipt = new_receipt(call)
        pack = build_pack(call, files, pack_id=receipt, work=session.work if event.compacted else None)
        # What the model was shown before is gone from its context.
        shown = () if event.renews else session.shown
        work = session.work.then(_asked(event))
        session = replace(
            session, client=event.client, pack=pack.text, pack_id=receipt, shown=shown, work=work
        )
        save(session.with_shown(pack.memories))
    if pack.text:
        _record(call, files, receipts.PACK, event, receipt, pack.memories, pack.text)
    return HookContext(text=pack.text, receipt=receipt, memories=pack.memories)


def prompt_tail(call: Call, files: AgentFiles, event: HookEvent) -> HookContext:
    """What is recalled for a prompt; it is remembered, so that the session never sees it twice."""
    now = call.engine.now()
    with changing(files.state, event.session, now) as save:
        session = load_session(files.state, event.session)
        work = session.work.then(_asked(event))
        session = replace(session, client=event.client, prompts=session.prompts + 1, work=work)
        session = _corrected(call, files, session, event)
        if not call.engine.settings.agent.recall:
            save(session)
            return HookContext(why="recall is switched off")
        receipt = new_receipt(call)
        found = recollect(
            call, event.prompt, receipt=receipt, session_id=event.session_id, shown=session.shown
        )
        ids = tuple(one.id for one in found.memories)
        pending = session.pending
        if ids:
            pending = (*pending, receipts.open_receipt(receipt, found.memories, event.prompt))
        save(replace(session, pending=pending[-receipts.MOST_PENDING :]).with_shown(ids))
    kind = receipts.TAIL if ids else receipts.SILENT
    _record(call, files, kind, event, receipt if ids else "", ids, found.text)
    return HookContext(text=found.text, receipt=receipt if ids else "", memories=ids, why=found.why)


def _asked(event: HookEvent) -> SessionWork:
    """What the user asked, without secrets; some clients say it at the start of a session only."""
    asked = without_secrets(event.prompt[:SUMMARY_CHARS])
    return SessionWork(first_prompt=asked, last_prompt=asked)


def new_receipt(call: Call) -> str:
    return _receipt(call.engine.new_id())


def _receipt(name: str) -> str:
    return f"r-{blake2b(name.encode(), digest_size=6).hexdigest()}"


def _corrected(call: Call, files: AgentFiles, session: AgentSession, event: HookEvent) -> AgentSession:
    """Note that the user rejected what followed an injection: the memories that the last answer used, or if
    it used none, those of the last injection. Any other prompt lets the answer stand."""
    if not receipts.is_correction(event.prompt):
        stands = (replace(one, used=()) for one in session.pending)
        return replace(session, pending=tuple(one for one in stands if one.signs))
    last = next((one for one in reversed(session.pending) if one.used), None)
    last = last or next(reversed(session.pending), None)
    if last is None:
        return session
    for memory_id in last.used or last.signs:
        fields = {"session": event.session, "receipt": last.id, "memory": memory_id}
        receipts.record(call, files.state, receipts.MISLED, **fields)
    return replace(session, pending=tuple(one for one in session.pending if one is not last))


def _follow(call: Call, files: AgentFiles, event: HookEvent) -> None:
    """Read what the session did since the last hook, and which of the memories shown it used."""
    with changing(files.state, event.session, call.engine.now()) as save:
        session = load_session(files.state, event.session)
        part = read_part(event.transcript, session.read_to)
        said = SessionWork(last_message=without_secrets((event.message or part.last)[:SUMMARY_CHARS]))
        done = part.work.then(work_of(event.calls))
        work = session.work.then(_clean(done)).then(said)
        if work.open_threads is None:  # the agent keeps no list of tasks
            work = work.then(_clean(SessionWork(open_threads=pending_tasks(event.summary))))
        logged = session.logged and not (done.files or done.commands)  # it goes on after its end
        used = receipts.used_memories(session.pending, f"{part.text}\n{event.message}")
        pending = tuple(
            replace(
                one,
                signs={name: signs for name, signs in one.signs.items() if name not in used},
                used=(*one.used, *(name for name in one.signs if name in used)),
            )
            for one in session.pending
        )
        session = replace(session, client=event.client, work=work, pending=pending, read_to=part.end)
        save(replace(session, logged=logged).with_shown(part.memories))
    if used:
        receipts.note_use(call, files.state, event.session, used)


def _clean(work: SessionWork) -> SessionWork:
    """The work without secrets: it is kept in a file, and shown."""
    return replace(
        work,
        commands=tuple(map(without_secrets, work.commands)),
        open_threads=None if work.open_threads is None else tuple(map(without_secrets, work.open_threads)),
    )


def _propose(call: Call, files: AgentFiles, event: HookEvent) -> None:
    """Let what mattered in the session wait in the review inbox, by rules, and keep its decisions for its
    log and for the pack after a compaction. After each answer only while the transcript is short: the end or
    a compaction reads all of it."""
    client, dry_run = TRANSCRIPTS.get(event.client, event.client), not call.engine.settings.agent.capture
    path, most = event.transcript, STOP_BYTES if event.kind is HookKind.STOP else CAPTURE_BYTES
    if event.turns:
        found = propose(call, event.turns, session_id=event.session_id, source=client, dry_run=dry_run)
    elif path is not None and path.is_file() and path.stat().st_size <= most:
        found = propose_from_file(call, path, client, event.session_id, dry_run=dry_run)
    else:
        return
    decided = [one.proposal.content for one in found if one.proposal.kind is ProposalKind.DECISION]
    if decided:
        made = SessionWork(decisions=tuple(without_secrets(one[:SUMMARY_CHARS]) for one in decided))
        with changing(files.state, event.session, call.engine.now()) as save:
            session = load_session(files.state, event.session)
            save(replace(session, work=session.work.then(made)))


def _log_left(call: Call, files: AgentFiles) -> None:
    """Log the sessions whose client never said that they ended: it was killed, or it has no such hook."""
    now = call.engine.now()
    try:
        for name in quiet_sessions(files.state, now)[:MOST_LOGGED]:
            log_ended(call, files, name)
    except VestigeError as exc:  # the new session begins anyway
        note_failure(
            files.state, f"{now.isoformat(timespec='seconds')} session log: {exc.code}: {exc.message}"
        )


def log_ended(call: Call, files: AgentFiles, name: str) -> None:
    """Write the line of a session that did something, once; another one if it did more since."""
    with changing(files.state, name, call.engine.now()) as save:
        session = load_session(files.state, name)
        if session.logged or not session.work.is_meaningful or not files.folder.is_dir():
            return
        save(replace(session, logged=True))
    at = (session.changed or call.engine.now()).astimezone(call.zone)
    line = log_session(call, files, _entry(session, f"{at:%Y-%m-%d}", f"{at:%H:%M}"), secrets="redact")
    with changing(files.state, name, session.changed or call.engine.now()) as save:
        save(load_session(files.state, name).with_shown(line.memories))


def _entry(session: AgentSession, date: str, time: str) -> SessionEntry:
    work = session.work
    title = " ".join(work.first_prompt.split())[:TITLE_CHARS] or session.client
    return SessionEntry(
        date=date,
        time=time,
        session=title,
        summary=" ".join(work.last_message.split())[:SUMMARY_CHARS],
        decisions=work.decisions,
        artifacts=work.files,
        open_threads=work.open_threads or (),
    )


def _record(
    call: Call, files: AgentFiles, kind: str, event: HookEvent, receipt: str, ids: tuple[str, ...], text: str
) -> None:
    fields: dict[str, Any] = {"session": event.session, "client": event.client}
    if receipt:
        fields |= {"receipt": receipt, "ids": list(ids), "chars": len(text)}
    receipts.record(call, files.state, kind, **fields)

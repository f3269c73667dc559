"""A persistent agent: its files, its context at the start of a session, and hooks: the tool `agent`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from vestige.core.errors import InvalidInput
from vestige.core.timezone import time_text
from vestige.engine.agent import receipts
from vestige.engine.agent.checkup import check_agent, client_hooks, forget_state
from vestige.engine.agent.files import AgentFiles, agent_files
from vestige.engine.agent.hook_events import CLIENTS, HookEvent, HookKind, hook_output, read_event
from vestige.engine.agent.hooks import answer_hook, new_receipt, prompt_tail, session_pack
from vestige.engine.agent.journal import (
    SECTIONS,
    FileLine,
    add_fact,
    add_reflection,
    create_files,
    log_session,
)
from vestige.engine.agent.layers import SessionEntry, import_files
from vestige.engine.agent.pack import build_pack
from vestige.engine.agent.tail import recollect
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Arguments, Moment, Switch, Whole, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import count, fields, table, warning

Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Texts = Annotated[list[Text], Field(max_length=100)]
Sentences = Annotated[Texts, Whole()]
SessionName = Annotated[
    str | None, Field(min_length=1, max_length=1_000, description="The client's id of the session.")
]


OWN_CLIENT = "call"
"""The client of a session whose id is given by the caller of an operation."""


def _files(call: Call) -> AgentFiles:
    return agent_files(call.engine.settings)


# -- Files


class AgentCreated(Wire):
    """The files of the agent; `created` are the new ones."""

    folder: str
    knowledge: str
    created: list[str]
    message: str


@registry.operation("agent.init", permission="admin", example={}, title="Set an agent up")
def init(
    call: Call,
    on_demand: Annotated[
        Switch, Field(description="Also `setup.md` and `credentials.md`, which Vestige never reads.")
    ] = False,
) -> AgentCreated:
    """Create the files of a persistent agent that are missing; existing ones stay as they are.

    They are MEMORY.md, sessions/, reflections.jsonl and the folder of the knowledge base.
    """
    files = _files(call)
    made = create_files(files, on_demand=on_demand)
    shown = call.engine.settings.shown_path
    message = f"Created: {', '.join(map(shown, made))}."
    return AgentCreated(
        folder=shown(files.folder),
        knowledge=shown(files.knowledge),
        created=list(map(shown, made)),
        message=message if made else "Everything is there.",
    )


class AgentWritten(Wire):
    """A line in a file; it is in the store too, unless `note` says why not."""

    path: str
    stored: bool
    note: str | None = None
    message: str


def _written(call: Call, done: FileLine, what: str) -> AgentWritten:
    path = done.path.relative_to(_files(call).folder).as_posix()
    message = f"{path} has this line already." if done.known else f"{what} added to {path}."
    message += "" if done.stored else " It is not in the store yet."
    return AgentWritten(path=path, stored=done.stored, note=done.why_not, message=message)


class SessionLogArguments(Arguments):
    """A line of the session log."""

    session: str = Field(min_length=1, max_length=500, description="A short title.")
    summary: Text = Field(description="What happened, in a few sentences.")
    decisions: Sentences = Field([], description="What was decided, and why.")
    artifacts: Texts = Field([], description="Files that were made or changed.")
    open_threads: Sentences = Field([], description="What is unfinished.")


@registry.operation(
    "agent.log",
    permission="write",
    example={"session": "Parser", "summary": "Wrote the parser.", "open_threads": ["error messages"]},
    positional=("session", "summary"),
    title="Log a session",
)
def log(call: Call, said: SessionLogArguments) -> AgentWritten:
    """Add a line about this session to the log of the day (`sessions/YYYY-MM-DD.jsonl`), and to the store.

    Log what mattered, once, at the end; decisions say why. Nothing meaningful: no line.
    """
    now = call.local_now()
    entry = SessionEntry(
        date=f"{now:%Y-%m-%d}",
        time=f"{now:%H:%M}",
        session=said.session,
        summary=said.summary,
        decisions=tuple(said.decisions),
        artifacts=tuple(said.artifacts),
        open_threads=tuple(said.open_threads),
    )
    return _written(call, log_session(call, _files(call), entry), "A session was")


@registry.operation(
    "agent.reflect",
    permission="write",
    example={"content": "Run the fast tests first.", "type": "pattern"},
    positional=("content",),
    title="Add a reflection",
)
def reflect(
    call: Call,
    content: Annotated[Text, Field(description="The insight, and when it applies.")],
    type: Annotated[
        Literal["pattern", "reflection", "idea"],
        Field(description="pattern: a rule to reuse; reflection: an insight; idea: for later."),
    ] = "reflection",
) -> AgentWritten:
    """Add a reflection to `reflections.jsonl`, and to the store. The last 30 are read at every start."""
    return _written(call, add_reflection(call, _files(call), type, content), "A reflection was")


@registry.operation(
    "agent.remember",
    permission="write",
    example={"text": "Prefers short answers.", "section": "Working Patterns"},
    positional=("text",),
    title="Add to MEMORY.md",
)
def remember(
    call: Call,
    text: Annotated[str, Field(min_length=1, max_length=2_000, description="A fact about the user.")],
    section: Annotated[
        str, Field(min_length=1, max_length=100, description="The heading it belongs under.")
    ] = SECTIONS[0],
) -> AgentWritten:
    """Add a line to a section of MEMORY.md, which every session begins with; only what the user asked for."""
    return _written(call, add_fact(call, _files(call), text, section), "A line was")


class AgentRebuilt(Wire):
    """What the files brought into the store."""

    read: int
    imported: int
    present: int
    left: int
    links: int
    retired: int = Field(description="Sections that are no longer in their file, and ended in the store.")
    revived: int
    future: int = Field(description="Links to notes that do not exist yet.")
    broken: dict[str, list[int]]
    problems: list[str]
    embedded: int
    note: str | None = None
    message: str


@registry.operation(
    "agent.rebuild", permission="admin", example={}, long=True, title="Read the agent's files"
)
def rebuild(call: Call) -> AgentRebuilt:
    """Bring everything in the agent's files and the knowledge base into the store; a second run adds nothing.

    The files are the source of truth: after a lost database this brings back everything they hold. What was
    taken out of MEMORY.md or a note ends in the store. setup.md and credentials.md are never read.
    """
    done = import_files(call, _files(call))
    one = done.memories
    message = (
        f"{count(one.read, 'record')} read: {one.imported} new, {one.present} known, {one.left} left; "
        f"{count(done.links, 'link')}, {done.retired} ended."
    )
    problems = [f"{name}: {what}" for name, what in done.problems.items()] + list(done.left)
    return AgentRebuilt(
        **{name: getattr(one, name) for name in ("read", "imported", "present", "left")},
        **{
            name: getattr(done, name)
            for name in ("links", "retired", "revived", "future", "embedded", "note")
        },
        broken={name: list(lines) for name, lines in done.broken.items()},
        problems=problems,
        message=message,
    )


class LayerView(Wire):
    name: str
    path: str
    exists: bool
    records: int
    stored: int


class ClientHooksView(Wire):
    """The hooks of a client; without `last_run` none has run in a session that is kept."""

    client: str
    path: str | None = None
    installed: bool
    last_run: datetime | None = None


class AgentState(Wire):
    """The state of the agent's files and hooks."""

    layers: list[LayerView]
    problems: list[str]
    future_notes: list[str]
    hooks: list[ClientHooksView]
    hook_log: list[str]
    servers: int = Field(description="Running servers that hooks can ask.")
    sessions: int


def _render_state(state: AgentState) -> str:
    rows = [
        (one.name, one.path, "yes" if one.exists else "no", one.records or "", one.stored or "")
        for one in state.layers
    ]
    parts = [table(("layer", "file", "there", "records", "stored"), rows)]
    if state.hooks:
        ran = [
            (
                one.client,
                "yes" if one.installed else "no",
                time_text(one.last_run) if one.last_run else "never",
            )
            for one in state.hooks
        ]
        parts.append(table(("hooks of", "installed", "last ran"), ran))
    parts += [warning(one) for one in state.problems]
    if state.future_notes:
        parts.append(f"Notes to write: {', '.join(state.future_notes)}")
    facts = {"servers for hooks": state.servers, "sessions kept": state.sessions}
    parts.append(fields((name, str(value)) for name, value in facts.items()))
    if state.hook_log:
        parts.append("\n".join(["Hooks that failed:", *(f"  {line}" for line in state.hook_log)]))
    return "\n\n".join(parts)


@registry.operation(
    "agent.doctor",
    permission="admin",
    effect="none",
    example={},
    title="Check the agent",
    render=_render_state,
)
def doctor(call: Call) -> AgentState:
    """Check the agent's files and hooks: what is missing or broken, what is not in the store, which notes are
    still to be written, which hooks failed, and when those of each client last ran."""
    found, shown = check_agent(call), call.engine.settings.shown_path
    return AgentState(
        layers=[
            LayerView(
                name=one.name, path=shown(one.path), exists=one.exists, records=one.records, stored=one.stored
            )
            for one in found.layers
        ],
        problems=list(found.problems),
        future_notes=list(found.future),
        hooks=[
            ClientHooksView(
                client=one.client,
                path=None if one.path is None else shown(one.path),
                installed=one.installed,
                last_run=one.last_run,
            )
            for one in found.hooks
        ],
        hook_log=list(found.hook_log),
        servers=found.servers,
        sessions=found.sessions,
    )


class AgentRemoved(Wire):
    removed: bool
    kept: list[str]
    message: str


@registry.operation(
    "agent.uninstall", permission="admin", effect="delete", example={}, title="Remove the agent's state"
)
def uninstall(call: Call) -> AgentRemoved:
    """Remove what is kept for hooks: packs of sessions, receipts, the log. The agent's files and the memories
    stay. `vestige connect CLIENT --hooks --undo` removes the hooks themselves."""
    files = _files(call)
    installed = [one.client for one in client_hooks(call, files) if one.installed]
    removed = forget_state(files)
    shown = call.engine.settings.shown_path
    kept = [shown(one) for one in (files.folder, files.knowledge) if one.exists()]
    message = "The state of hooks was removed." if removed else "There was no state of hooks."
    message += " Your files and memories stay."
    left = " and ".join(f"`vestige connect {client} --hooks --undo`" for client in installed)
    if left:
        message += f" Hooks are still installed and write it again: {left} removes them."
    return AgentRemoved(removed=removed, kept=kept, message=message)


# -- Context and recall


class AgentContext(Wire):
    """The context of a session. `id` is its receipt; `kept` says whether the session gets the same again."""

    context: str
    id: str
    characters: int
    kept: bool


@registry.operation(
    "agent.context",
    permission="read",
    effect="touch",
    example={"session_id": "example"},
    positional=(),
    title="The agent's context",
    render=lambda answer: answer.context or "There is nothing to say yet.",
)
def context(
    call: Call,
    session_id: SessionName = None,
    renew: Annotated[
        Switch, Field(description="Make a new one, after the session's context was cleared or compacted.")
    ] = False,
) -> AgentContext:
    """Get what an agent begins a session with: MEMORY.md, the last three days of sessions, the last 30
    reflections, due reminders and memories of the project; at most 8,000 characters, as data in a fence.

    With `session_id` the same session gets the same bytes again, whatever is written meanwhile.
    """
    if session_id is None:
        pack = build_pack(call, _files(call), pack_id=new_receipt(call))
        return AgentContext(context=pack.text, id=pack.id, characters=len(pack.text), kept=False)
    event = HookEvent(
        kind=HookKind.START, name="SessionStart", client=OWN_CLIENT, session_id=session_id, renews=renew
    )
    found = session_pack(call, _files(call), event)
    return AgentContext(context=found.text, id=found.receipt, characters=len(found.text), kept=found.kept)


class AgentRecalled(Wire):
    """What a prompt was answered with; usually nothing, and `why` says why."""

    context: str
    id: str | None = None
    memories: list[str]
    why: str | None = None


@registry.operation(
    "agent.recall",
    permission="read",
    effect="touch",
    example={"prompt": "Which language does Ada prefer, TypeScript or JavaScript?", "session_id": "example"},
    positional=("prompt",),
    title="Recall for a prompt",
    render=lambda answer: answer.context or f"Silent: {answer.why}.",
)
def recall_for_prompt(
    call: Call,
    prompt: Annotated[str, Field(min_length=1, max_length=200_000, description="The user's prompt.")],
    session_id: SessionName = None,
) -> AgentRecalled:
    """Get the memories that a prompt needs, if the search is sure of them; otherwise nothing.

    A session is never shown a memory twice, nor one of its own or of the last half hour. At most 1,000
    characters, as data in a fence. Use `search` to look for something.
    """
    if session_id is None:
        receipt = new_receipt(call)
        once = recollect(call, prompt, receipt=receipt, session_id="")
        ids = [one.id for one in once.memories]
        return AgentRecalled(
            context=once.text, id=receipt if ids else None, memories=ids, why=once.why or None
        )
    event = HookEvent(
        kind=HookKind.PROMPT, name="UserPromptSubmit", client=OWN_CLIENT, session_id=session_id, prompt=prompt
    )
    found = prompt_tail(call, _files(call), event)
    return AgentRecalled(
        context=found.text, id=found.receipt or None, memories=list(found.memories), why=found.why or None
    )


class HookSpecific(Wire):
    hook_event_name: str
    additional_context: str


class HookOutput(Wire):
    """The output of a hook as Claude Code and Codex read it; empty when there is nothing to say."""

    hook_specific_output: HookSpecific | None = None


def _render_output(output: HookOutput) -> str:
    return output.hook_specific_output.additional_context if output.hook_specific_output else "Silent."


@registry.operation(
    "agent.hook",
    permission="write",
    example={
        "client": "claude-code",
        "payload": {"hook_event_name": "SessionStart", "session_id": "example", "source": "startup"},
    },
    positional=("client",),
    title="Answer a hook",
    render=_render_output,
)
def hook(
    call: Call,
    client: Annotated[str, Field(max_length=50, description="The client, as in `vestige connect`.")],
    payload: Annotated[dict[str, Any], Field(description="What the client gave to the hook.")],
) -> HookOutput:
    """Answer a hook of a client: context at a start, recall at a prompt, a log of the session at its end.

    The answer is the hook's output, empty when there is nothing to say. Hooks of subagents are left alone.
    """
    if client not in CLIENTS:
        raise InvalidInput(
            f"Vestige knows no hooks of {client!r}.",
            hint=f"One of: {', '.join(CLIENTS)}.",
            details={"argument": "client", "allowed": list(CLIENTS)},
        )
    event = read_event(client, payload)
    if event is None:
        return HookOutput()
    output = hook_output(event, answer_hook(call, _files(call), event).text)
    return HookOutput.model_validate(output)


# -- Receipts


class ShownOften(Wire):
    id: str
    shown: int


class AgentImpact(Wire):
    """What hooks did. `silence` is the share of prompts that got nothing; a repeat is a memory that one
    session was shown twice."""

    sessions: int
    prompts: int
    injections: int
    packs: int
    memories: int
    repeats: int
    used: int
    helped: int
    misled: int
    tokens: int
    silence: float | None = None
    never_used: list[ShownOften]


def _render_impact(view: AgentImpact) -> str:
    silence = "" if view.silence is None else f"{100 * view.silence:.0f} %"
    facts = {
        "sessions": view.sessions, "prompts": view.prompts, "silent": silence, "injections": view.injections,
        "contexts": view.packs, "memories shown": view.memories, "repeats": view.repeats, "used": view.used,
        "helped": view.helped, "misled": view.misled, "tokens": view.tokens,
    }  # fmt: skip
    text = fields((name, str(value)) for name, value in facts.items())
    if not view.never_used:
        return text
    rows = [(one.id, one.shown) for one in view.never_used]
    return f"{text}\n\nShown several times and never used:\n{table(('memory', 'shown'), rows)}"


@registry.operation(
    "agent.impact",
    permission="read",
    example={},
    command="impact",
    title="What hooks did",
    render=_render_impact,
)
def impact(
    call: Call, since: Annotated[Moment | None, Field(description="Count from this time on.")] = None
) -> AgentImpact:
    """Count what hooks put into contexts: injections, silence, repeats, tokens, and what was used later.

    Use is read from transcripts: the id, a file or distinctive words of a memory in a later answer. A memory
    helped if it was promoted or marked as useful in the session that was shown it; it misled if it was
    demoted there, or if the user corrected what the agent said after it.
    """
    found = receipts.impact(call, _files(call).state, since.isoformat() if since else None)
    counted = {name: getattr(found, name) for name in AgentImpact.model_fields if name != "never_used"}
    counted["silence"] = None if found.silence is None else round(found.silence, 4)
    return AgentImpact(**counted, never_used=[ShownOften(id=one, shown=n) for one, n in found.never_used])

"""Status of the store and rebuilding derived data: `system_status`, `rebuild`."""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige import __version__
from vestige.cognition.fsrs.strength import NEW
from vestige.cognition.native import kernel
from vestige.embed.background import EmbedderStatus
from vestige.engine.care.backup import last_backup
from vestige.engine.care.health import file_bytes, health, waiting_texts
from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import (
    Role,
    advice,
    bar,
    count,
    day,
    fields,
    percent,
    size,
    strength,
    styled,
    warning,
)

MOST_NAMED = 3
"""Scopes and processes that the text for people names."""


class ModelView(Wire):
    """The embedding model. `pair_model` is the state of the pair model, which judges whether a new note
    corrects an older one; `unsupported` for a model that has none.
    """

    state: str
    detail: str | None = None
    name: str | None = None
    dimension: int | None = None
    progress: float | None = None
    pair_model: str | None = None


class AutopilotView(Wire):
    """The autopilot of this process: its counts, and whether this process is the `leader`, which also runs
    the periodic tasks.
    """

    running: bool
    leader: bool
    waiting: int
    handled: int
    failed: int
    dropped: int
    restarts: int
    last_error: str | None = None


class ProcessView(Wire):
    """A process that has the store open, and whether it is a server."""

    pid: int
    command: str
    since: datetime
    server: bool


class Status(Wire):
    """The status of the memory."""

    status: str
    version: str
    node: str | None = None
    data_dir: str | None = None
    store: str | None = None
    size_bytes: int | None = None
    read_only: bool
    total_memories: int
    average_retention: float
    state_distribution: dict[str, int]
    due_for_review: int
    waiting_for_review: int
    pinned: int
    suppressed: int
    superseded: int
    archived: int
    connections: int
    with_embeddings: int
    embedding_coverage: float
    embedding_model: ModelView
    by_type: dict[str, int]
    by_scope: dict[str, int]
    oldest: datetime | None = None
    newest: datetime | None = None
    last_backup: datetime | None = None
    kernel: str | None = None
    autopilot: AutopilotView | None = None
    processes: list[ProcessView] = []
    warnings: list[str]
    recommendations: list[str]


class RebuiltView(Wire):
    """What was rebuilt; the note states what was left out, and why."""

    success: bool = True
    strengths: int
    drifted: int
    words: int
    vectors: int
    note: str | None = None


def render_status(status: Status) -> str:
    """One screen: what is stored, how well, where, and what to do next."""
    role: Role = "good" if status.status == "healthy" else "warning"
    states = ", ".join(f"{name} {n:,}" for name, n in status.state_distribution.items() if n)
    marked = ", ".join(
        f"{n:,} {what}"
        for what, n in (
            ("due for review", status.due_for_review),
            ("pinned", status.pinned),
            ("suppressed", status.suppressed),
            ("archived", status.archived),
        )
        if n
    )
    model = status.embedding_model
    text = fields(
        (
            ("status", styled(role, status.status)),
            ("memories", f"{status.total_memories:,}{f' ({states})' if states else ''}"),
            ("of these", marked),
            ("strength", _average(status)),
            ("waiting", _waiting(status.waiting_for_review)),
            ("connections", f"{status.connections:,}" if status.connections else None),
            ("scopes", _most(status.by_scope)),
            ("newest", day(status.newest)),
            ("model", f"{model.name or 'none'} ({model.state}){_embedded(status)}"),
            ("kernel", status.kernel),
            ("last backup", day(status.last_backup) or styled("warning", "none yet")),
            ("autopilot", _autopilot(status.autopilot) if status.autopilot else None),
            ("used by", _most({f"{one.command} ({one.pid})": 0 for one in _others(status.processes)})),
            ("store", styled("link", status.store or "")),
            ("size", size(status.size_bytes) if status.size_bytes else None),
            ("version", status.version),
        )
    )
    notes = [*map(warning, status.warnings), *map(advice, _next_steps(status))]
    return "\n".join([text, *([""] if notes else []), *notes])


def _embedded(status: Status) -> str:
    return f", {percent(status.embedding_coverage)} embedded" if status.total_memories else ""


def _others(processes: Sequence[ProcessView]) -> list[ProcessView]:
    """The processes that use the store, without the command that asks."""
    return [one for one in processes if one.server or one.pid != os.getpid()]


def _waiting(texts: int) -> str | None:
    return styled("warning", f"{count(texts, 'text')} (`vestige review list`)") if texts else None


def _average(status: Status) -> str | None:
    if not status.total_memories:
        return None
    return f"{bar(min(1.0, status.average_retention / NEW))} {strength(status.average_retention)} on average"


def _most(counted: Mapping[str, int]) -> str:
    """The largest ones by name, and how many others there are."""
    largest = sorted(counted.items(), key=lambda one: -one[1])
    shown = ", ".join(f"{name} {n:,}" if n else name for name, n in largest[:MOST_NAMED])
    return f"{shown} and {len(largest) - MOST_NAMED} more" if len(largest) > MOST_NAMED else shown


def _next_steps(status: Status) -> list[str]:
    """What to do next: the advice of the engine, or the first steps with an empty store."""
    if not status.total_memories:
        return [
            'Store something: `vestige add "Ada prefers tea."`',
            "Give it to your agent: `vestige connect`",
        ]
    if status.recommendations:
        return status.recommendations
    return ["Nothing needs attention. Find something: `vestige search QUESTION`"]


def _autopilot(seen: AutopilotView) -> str:
    state = "leading" if seen.leader else "running" if seen.running else "between calls"
    done = f"{state}, {count(seen.handled, 'reaction')}"
    trouble = [f"{n} {what}" for n, what in ((seen.failed, "failed"), (seen.dropped, "dropped")) if n]
    return ", ".join([done, *trouble])


@registry.operation(
    "system_status",
    permission="read",
    example={},
    command="status",
    title="Memory status",
    render=render_status,
)
def system_status(call: Call) -> Status:
    """Show the status of the memory: counts, retention, the model, and recommendations.

    Counts cover the memories that the caller has access to. Only callers with full access see details of the
    installation.
    """
    seen = health(call)
    stats = seen.stats
    return Status(
        status=seen.status,
        version=__version__,
        read_only=call.engine.store.read_only,
        total_memories=stats.memories,
        average_retention=round(seen.average_retention, 4),
        state_distribution={name.value: n for name, n in seen.states.items()},
        due_for_review=stats.due,
        waiting_for_review=waiting_texts(call),
        pinned=stats.pinned,
        suppressed=stats.suppressed,
        superseded=stats.superseded,
        archived=stats.archived,
        connections=stats.edges,
        with_embeddings=stats.embedded,
        embedding_coverage=round(stats.embedded / stats.memories, 4) if stats.memories else 1.0,
        embedding_model=_model(seen.embedder),
        by_type=dict(stats.by_type),
        by_scope=dict(stats.by_scope),
        oldest=stats.oldest,
        newest=stats.newest,
        warnings=list(seen.warnings),
        recommendations=list(seen.advice),
        **(_installation(call) if call.sees_installation else {}),
    )


def _installation(call: Call) -> dict[str, Any]:  # fields of Status, which checks them
    engine, backed_up = call.engine, last_backup(call)
    return {
        "node": engine.store.node,
        "data_dir": str(engine.settings.data_dir),
        "store": engine.settings.place,
        "size_bytes": file_bytes(engine.settings),
        "last_backup": backed_up.at if backed_up else None,
        "kernel": kernel.description(),
        "autopilot": AutopilotView.of(engine.background()),
        "processes": [ProcessView.of(one) for one in engine.store.processes()],
    }


def _model(seen: EmbedderStatus) -> ModelView:
    signature = seen.signature
    return ModelView.of(
        seen, name=signature.name if signature else None, dimension=signature.dimension if signature else None
    )


def render_rebuilt(done: RebuiltView) -> str:
    text = (
        f"{count(done.strengths, 'strength')} replayed from the log ({done.drifted} had drifted), "
        f"{count(done.words, 'memory')} reindexed, {count(done.vectors, 'memory')} embedded."
    )
    return f"{text}\n{warning(done.note)}" if done.note else text


@registry.operation(
    "rebuild",
    permission="admin",
    example={"strengths": True, "words": True},
    long=True,
    command_only=True,
    render=render_rebuilt,
)
def rebuild_derived(
    call: Call,
    strengths: Annotated[bool, Field(description="Replay strengths from the event log.")] = False,
    words: Annotated[bool, Field(description="Rebuild the lexical index from the texts.")] = False,
    vectors: Annotated[
        bool, Field(description="Embed memories without vectors of the configured model.")
    ] = False,
) -> RebuiltView:
    """Rebuild data derived from the log and the texts; without options, all of it.

    Memories themselves are only read. After a change of embedding model, `vectors` moves the store over to
    the new one. Without options and without a model, vectors are left out.
    """
    from vestige.engine.care.rebuild import rebuild  # brings most of the engine; `system_status` needs little

    return RebuiltView.of(rebuild(call, strengths=strengths, words=words, vectors=vectors), success=True)

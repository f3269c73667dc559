"""Operations that read memories: the reading actions of the tool `memory`."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from vestige.cognition.fsrs import strength
from vestige.core.models import Filter, MemoryState, Order, Strength, check_label
from vestige.engine.context import Call
from vestige.engine.revise import load
from vestige.operations.registry.arguments import DetailLevel, IdOf, MemoryId, Moment, Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import FilterArguments, searched_scope
from vestige.operations.shared.memory_view import (
    EdgeView,
    MemoryView,
    edge_view,
    memory_card,
    memory_lines,
    view,
)
from vestige.operations.shared.text import (
    bar,
    clip,
    count,
    day,
    fields,
    percent,
    row_number,
    short_id,
    strength_share,
    styled,
    table,
)

EXAMPLE_ID = "01890000-0000-7000-8000-000000000001"
"""Id of the memory that examples use; the parity tests create it."""

CURVE_POINTS, CURVE_LEAST = 61, timedelta(days=30)
MOST_TRANSITIONS = 50
"""Maximum number of state changes in an answer, latest first."""

DESCRIPTIONS = {
    MemoryState.ACTIVE: "Recalled immediately.",
    MemoryState.DORMANT: "Known; a fitting cue recalls it.",
    MemoryState.SILENT: "Fading; only a strong cue recalls it.",
    MemoryState.UNAVAILABLE: "Practically forgotten; readable by its id.",
}


_PLAIN = ("evidence", "reason", "fields", "kind")
"""Event details that fit in a table."""


class EncodedView(Wire):
    """Importance of a memory when it was encoded; unremarkable ones have none."""

    composite: float
    novelty: float
    arousal: float
    reward: float
    attention: float
    boost: float
    valence: float | None = None
    category: str | None = None
    flashbulb: bool = False


class Got(Wire):
    action: str = "get"
    found: bool = True
    node: MemoryView
    edges: list[EdgeView]
    importance: EncodedView | None = None


class GotBatch(Wire):
    action: str = "get_batch"
    requested: int
    found: int
    missing: list[str]
    results: list[MemoryView]


class Listed(Wire):
    action: str = "list"
    scope: str
    total: int
    offset: int
    results: list[MemoryView]


class TransitionView(Wire):
    """A change of a memory's state, with its reason."""

    at: datetime
    before: str
    after: str
    reason: str


class CurvePoint(Wire):
    """The chance that a memory is recalled, and its retention, at a time."""

    at: datetime
    retrieval: float
    retention: float


class StateView(Wire):
    """How accessible a memory is. `curve` is the forgetting curve from its last review on."""

    action: str = "state"
    id: str
    state: str
    accessibility: float
    description: str
    components: dict[str, float]
    thresholds: dict[str, float]
    transitions: list[TransitionView]
    curve: list[CurvePoint] | None = None


class RevisionView(Wire):
    revision: int
    content: str
    tags: list[str]
    scope: str
    recorded_at: datetime
    ended_at: datetime
    ended_by: str
    valid_from: datetime | None = None
    valid_until: datetime | None = None


class EventView(Wire):
    """A logged event of a memory."""

    at: datetime
    kind: str
    details: dict[str, Any]


class History(Wire):
    """A memory's earlier revisions and its latest logged events, oldest first."""

    action: str = "history"
    id: str
    current_revision: int
    total_events: int
    revisions: list[RevisionView]
    events: list[EventView]


def _render_got(result: Got) -> str:
    links = [
        (row_number(one), e.type, short_id(one), f"{e.weight:.2f}")
        for e in result.edges
        for one in [e.target if e.source == result.node.id else e.source]
    ]
    text = memory_card(result.node)
    return f"{text}\n\n{table(('#', 'link', 'memory', 'weight'), links)}" if links else text


_PARTS_OF_STRENGTH = {"retention": "strength", "retrieval": "recall probability", "storage": "learned so far"}
"""The parts of a state in the words of lists and of `health`."""


def _render_state(result: StateView) -> str:
    of_new = ("accessibility", "retention")
    parts = {"accessibility": result.accessibility, **result.components}
    shares = {name: strength_share(value) if name in of_new else value for name, value in parts.items()}
    shares = {_PARTS_OF_STRENGTH.get(name, name): value for name, value in shares.items()}
    numbers = fields((name, f"{bar(value)} {percent(value)}") for name, value in shares.items())
    return f"{styled('strong', result.state)}: {result.description}\n\n{numbers}"


def _render_history(result: History) -> str:
    earlier = table(
        ("revision", "from", "until", "ended by", "content"),
        (
            (r.revision, day(r.recorded_at), day(r.ended_at), r.ended_by, clip(r.content))
            for r in result.revisions
        ),
    )
    revisions = earlier if result.revisions else "It was never revised."
    events = table(
        ("at", "what", "details"),
        (
            (
                day(e.at),
                e.kind,
                ", ".join(f"{k}={v}" for k, v in e.details.items() if not isinstance(v, dict)),
            )
            for e in result.events
        ),
    )
    return f"{revisions}\n\n{events}"


def _render_listed(result: Listed) -> str:
    if not result.total:
        return f"No memories in {result.scope}. Store one: `vestige add TEXT`"
    shown = f"{len(result.results)} of {count(result.total, 'memory')} in {result.scope}."
    return f"{memory_lines(result.results)}\n\n{shown}"


@registry.operation("memory.get", permission="read", example={"id": EXAMPLE_ID}, render=_render_got)
def memory_get(call: Call, id: MemoryId) -> Got:
    """Show one memory in full, with its links."""
    # Imported here, as below: a list of memories needs none of the write path and of recall.
    from vestige.engine.ingest.importance import encodings

    record = load(call, id)
    edges = call.engine.store.edges([id], access=call.access)
    judged = encodings(call, [id]).get(id)
    return Got(
        node=view(record, call.engine.now()),
        edges=[edge_view(edge) for edge in edges],
        importance=EncodedView.of(judged) if judged else None,
    )


@registry.operation(
    "memory.get_batch",
    permission="read",
    example={"ids": [EXAMPLE_ID]},
    render=lambda result: memory_lines(result.results) or "None of these memories exists.",
)
def memory_get_batch(
    call: Call,
    ids: Annotated[
        list[str], Field(min_length=1, max_length=100, description="Ids of the memories."), IdOf("memory")
    ],
) -> GotBatch:
    """Show several memories in full; unknown ids are listed as missing."""
    records = call.engine.store.get_many(ids, access=call.access)
    have = {record.memory.id for record in records}
    return GotBatch(
        requested=len(ids),
        found=len(records),
        missing=[one for one in dict.fromkeys(ids) if one not in have],
        results=[view(record, call.engine.now()) for record in records],
    )


class SelectionArguments(FilterArguments):
    """Which memories a list shows, or a change of many is for."""

    as_of: Moment | None = Field(None, description="Only memories that were true at this time.")
    session_id: str | None = Field(None, description="Only memories from this session.")
    pinned: bool | None = Field(None, description="true: only pinned memories; false: only others.")
    max_retention: float | None = Field(None, ge=0, le=1, description="Maximum retention.")
    due: bool = Field(False, description="Only memories that are true now and due for review.")
    current: bool = Field(False, description="Only memories that are true now.")
    include_suppressed: bool = Field(False, description="Also list suppressed memories.")
    suppressed: bool = Field(False, description="Only suppressed memories.")
    recalled: bool | None = Field(
        None,
        description="false: only memories that were never recalled. Since they were written, none was shown "
        "in an answer, used after a hook brought it, reviewed, rated, corrected or stored again; reading by "
        "id and `record: false` do not count. true: only others.",
    )

    def where(self, call: Call) -> Filter:
        """The filter of these arguments."""
        now = call.engine.now()
        if self.session_id is not None:
            check_label("session_id", self.session_id)
        return self.narrow(
            call,
            Filter(
                session_id=self.session_id,
                valid_at=self.as_of or (now if self.due or self.current else None),
                pinned=self.pinned,
                include_suppressed=self.include_suppressed or self.suppressed,
                suppressed_by=now if self.suppressed else None,
                max_retention=self.max_retention,
                due_by=now if self.due else None,
                recalled=self.recalled,
            ),
        )


class ListArguments(SelectionArguments):
    """Filter, order and page."""

    limit: int = Field(20, ge=1, le=200, description="Maximum number of memories.")
    offset: int = Field(0, ge=0, le=10_000_000, description="How many to skip.")
    order: Order = Field(
        Order.NEWEST, description="newest, oldest, due (next review first) or retention (weakest first)."
    )
    detail_level: DetailLevel = Field("summary", description="How much of each memory to show.")


@registry.operation(
    "memory.list", permission="read", example={"limit": 5, "order": "newest"}, render=_render_listed
)
def memory_list(call: Call, asked: ListArguments) -> Listed:
    """List memories without searching: newest, oldest, due or fading.

    Superseded and expired memories are included; `current` leaves them out, and `as_of` leaves out what was
    not true then. Suppressed ones are listed only with `include_suppressed` or `suppressed`, archived ones
    never.
    """
    now, store, where = call.engine.now(), call.engine.store, asked.where(call)
    records = store.find(where, access=call.access, order=asked.order, limit=asked.limit, offset=asked.offset)
    return Listed(
        scope=searched_scope(call, asked.scope),
        total=store.count(where, access=call.access),
        offset=asked.offset,
        results=[view(record, now, asked.detail_level) for record in records],
    )


@registry.operation("memory.state", permission="read", example={"id": EXAMPLE_ID}, render=_render_state)
def memory_state(
    call: Call,
    id: MemoryId,
    curve: Annotated[bool, Field(description="Include its forgetting curve.")] = False,
) -> StateView:
    """Show how accessible a memory is, and why."""
    from vestige.engine.memory.states import transitions

    record, now = load(call, id), call.engine.now()
    kept = strength.retention_of(record.strength, now)
    accessible = float(strength.accessibility(kept, record.memory.suppression_count))
    state = strength.state(accessible)
    return StateView(
        id=id,
        state=state.value,
        accessibility=round(accessible, 4),
        description=DESCRIPTIONS[state],
        components={
            "retention": round(kept, 4),
            "retrieval": round(strength.retrieval_of(record.strength, now), 4),
            "storage": round(min(1.0, record.strength.storage / 10), 4),
        },
        thresholds={
            "active": strength.ACTIVE_FROM,
            "dormant": strength.DORMANT_FROM,
            "silent": strength.SILENT_FROM,
        },
        transitions=[TransitionView.of(one) for one in transitions(call, id)[-MOST_TRANSITIONS:]],
        curve=_curve(record.strength, now) if curve else None,
    )


def _curve(kept: Strength, now: datetime) -> list[CurvePoint]:
    """The curve as the memory has faded and will fade without recall: from where it began to twice its age,
    and at least a month from now."""
    begin = min(kept.decay_from, now)
    step = (max(now - begin, CURVE_LEAST) + (now - begin)) / (CURVE_POINTS - 1)
    return [
        CurvePoint(
            at=at,
            retrieval=round(strength.retrieval_of(kept, at), 4),
            retention=round(strength.retention_of(kept, at), 4),
        )
        for at in (begin + number * step for number in range(CURVE_POINTS))
    ]


@registry.operation("memory.history", permission="read", example={"id": EXAMPLE_ID}, render=_render_history)
def memory_history(
    call: Call,
    id: MemoryId,
    limit: Annotated[
        int, Field(ge=1, le=1000, description="Maximum number of events, the latest ones.")
    ] = 200,
) -> History:
    """Show a memory's earlier revisions and its logged events."""
    from vestige.engine.recall.as_known import events_of

    record = load(call, id)
    log = events_of(call, id)
    return History(
        id=id,
        current_revision=record.memory.revision,
        total_events=len(log),
        revisions=[
            RevisionView.of(
                one.memory, recorded_at=one.recorded_at, ended_at=one.ended_at, ended_by=one.reason
            )
            for one in call.engine.store.history(id, access=call.access)
        ],
        events=[EventView(at=e.at, kind=e.kind, details=dict(e.payload)) for e in log[-limit:]],
    )

"""Memories by day: `memory_timeline`."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import Field

from vestige.core.errors import InvalidInput
from vestige.core.models import Filter, moved
from vestige.core.timezone import at_clock, local, zone_name
from vestige.engine.context import Call
from vestige.engine.recall.as_known import as_known
from vestige.operations.registry.arguments import (
    DetailLevel,
    DomainNames,
    EndMoment,
    Moment,
    SearchedScope,
    Tags,
    Wire,
    ZonedArguments,
)
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import domains_named, searched, searched_scope
from vestige.operations.shared.memory_view import MemoryView, memory_lines, view
from vestige.operations.shared.text import count

TICK = timedelta(microseconds=1)
WEEK = 7
MOST_COUNTED = 120
"""Days that are counted one by one."""


class Day(Wire):
    """The memories of one day in the zone of the answer."""

    date: str
    count: int
    memories: list[MemoryView]


class DayCount(Wire):
    """How many memories `days` days have, from `date` on."""

    date: str
    days: int
    count: int


class Timeline(Wire):
    """Days, newest first, with the memories that are shown. `counts` has every day, oldest first."""

    start: str
    end: str
    total: int
    shown: int
    scope: str
    timezone: str
    days: list[Day]
    counts: list[DayCount] | None = None


class TimelineArguments(ZonedArguments):
    """Time range and filter."""

    start: Moment | None = Field(None, description="Start of the range. Default: a week ago.")
    end: EndMoment | None = Field(
        None, description="End of the range; a bare date includes that day. Default: now."
    )
    node_type: str | None = Field(None, min_length=1, description="Only this node type.")
    tags: Tags = Field([], description="Only memories with any of these tags.")
    domains: DomainNames = Field([], description="Only memories of these domains.")
    scope: SearchedScope = None
    as_of: Moment | None = Field(None, description="Only memories that were true at this time.")
    known_at: Moment | None = Field(None, description="As stored at this time; also the default of `end`.")
    limit: int = Field(50, ge=1, le=200, description="Maximum number of memories.")
    detail_level: DetailLevel = Field("summary", description="How much of each memory to show.")
    counts: bool = Field(
        False, description="Include how many there are on each day, or in each week of a long range."
    )


def render_timeline(timeline: Timeline) -> str:
    parts = [
        f"{day.date} ({count(day.count, 'memory')})\n{memory_lines(day.memories)}" for day in timeline.days
    ]
    found = f"{timeline.shown} of {count(timeline.total, 'memory')} in {timeline.scope}"
    parts.append(f"{found}. Days in {timeline.timezone}.")
    return "\n\n".join(parts)


@registry.operation(
    "memory_timeline",
    permission="read",
    example={"start": "2020-01-01", "limit": 10},
    command="timeline",
    render=render_timeline,
)
def memory_timeline(call: Call, asked: TimelineArguments) -> Timeline:
    """Show memories day by day, newest first.

    Superseded and expired memories are included; `as_of` leaves out what was not true then. Suppressed and
    archived memories are not shown.
    """
    now = call.engine.now()
    # "Until now" includes writes at this very moment.
    end = asked.end or moved(asked.known_at or now, TICK)
    start = asked.start or moved(end, -timedelta(days=7))
    if start >= end:
        raise _empty(asked)
    where = Filter(
        created_from=start,
        created_to=end,
        node_types=(asked.node_type,) if asked.node_type else (),
        tags_any=tuple(asked.tags),
        valid_at=asked.as_of,
        known_at=asked.known_at,
        domains=domains_named(call, asked.domains),
        include_suppressed=False,
    )
    where = searched(call, where, asked.scope)
    records = call.engine.store.find(where, access=call.access, limit=asked.limit)
    days: dict[str, list[MemoryView]] = defaultdict(list)
    for known in as_known(call, records, asked.known_at):
        days[f"{local(known.memory.created_at, call.zone):%Y-%m-%d}"].append(
            view(known, now, asked.detail_level)
        )
    return Timeline(
        start=start.isoformat(),
        end=end.isoformat(),
        total=call.engine.store.count(where, access=call.access),
        shown=len(records),
        scope=searched_scope(call, asked.scope),
        timezone=zone_name(call.zone),
        days=[Day(date=date, count=len(memories), memories=memories) for date, memories in days.items()],
        counts=list(_counts(call, where, start, end)) if asked.counts else None,
    )


def _counts(call: Call, where: Filter, start: datetime, end: datetime) -> Iterator[DayCount]:
    first, last = local(start, call.zone).date(), local(end - TICK, call.zone).date()
    number = (last - first).days + 1
    step = 1 if number <= MOST_COUNTED else max(WEEK, -(-number // MOST_COUNTED))
    for at in range(0, number, step):
        days = min(step, number - at)
        begin, until = (first + timedelta(days=edge) for edge in (at, at + days - 1))
        part = replace(
            where,
            created_from=at_clock(begin, 0, call.zone) if at else start,
            created_to=end if until == last else at_clock(until + timedelta(days=1), 0, call.zone),
        )
        written = call.engine.store.count(part, access=call.access)
        yield DayCount(date=begin.isoformat(), days=days, count=written)


def _empty(asked: TimelineArguments) -> InvalidInput:
    """The error for an empty time range, naming the arguments given."""
    name = "end" if asked.end else "known_at" if asked.known_at else None
    future = "`start` is in the future, where there are no memories."
    said = f"`start` is not before `{name}`." if name else future
    return InvalidInput(said, hint="Give an earlier `start`.", details={"argument": "start"})

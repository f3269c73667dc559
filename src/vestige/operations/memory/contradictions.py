"""Finds contradicting memories: `contradictions`."""

import re

from pydantic import Field

from vestige.cognition.evidence.evidence import settled_by, weight
from vestige.core.models import Filter
from vestige.core.timezone import date_text
from vestige.engine.context import Call, require_scope
from vestige.engine.memory.contradictions import Contradiction, contradictions
from vestige.operations.reasoning.reference_view import quoted
from vestige.operations.registry.arguments import Moment, SearchedScope, Wire, ZonedArguments
from vestige.operations.registry.registry import registry
from vestige.operations.shared.filters import MAX_QUERY_CHARS, check_query, searched, searched_scope
from vestige.operations.shared.memory_view import ContradictionView, ExhibitView, exhibit_fields
from vestige.operations.shared.text import count, percent, short_id, styled, with_short_ids

_SET_VALIDITY = re.compile(r"memory set_validity id=(\S+) with valid_until")
_DEMOTE = re.compile(r"memory demote id=([\w-]+)")


class SettledView(ContradictionView):
    """A contradiction and how to settle it."""

    settle: str


class Contradictions(Wire):
    """Pairs of contradicting memories, newest first, and how much was compared.

    `total` counts all pairs found; `left_out` counts memories not compared because they are too long or too
    many.
    """

    topic: str | None = None
    scope: str
    total: int
    offset: int
    shown: int
    contradictions: list[SettledView]
    memories_analyzed: int
    pairs_checked: int
    left_out: int | None = None


class ContradictionsArguments(ZonedArguments):
    """Topic, scope and time to check."""

    topic: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_QUERY_CHARS,
        description="Only memories about this topic. Default: all.",
    )
    scope: SearchedScope = None
    as_of: Moment | None = Field(
        None, description="Check memories that were true at this time. Default: now."
    )
    limit: int = Field(20, ge=1, le=1000, description="Maximum number of pairs.")
    offset: int = Field(0, ge=0, le=1_000_000, description="Pairs to skip.")


def _for_people(one: SettledView) -> str:
    """How to settle a contradiction, in commands."""
    said = _SET_VALIDITY.sub(r"`vestige memory set-validity \1 --valid-until now`", one.settle)
    return with_short_ids(_DEMOTE.sub(r"`vestige memory demote \1`", said))


def render_contradictions(answer: Contradictions) -> str:
    lines = []
    for one in answer.contradictions:
        lines.append(styled("strong", f"{one.kind}: {one.detail}"))
        lines += [_line(one.stronger, "stronger"), _line(one.weaker, "weaker"), f"  {_for_people(one)}", ""]
    about = f" about {quoted(answer.topic)}" if answer.topic else ""
    lines.append(f"{answer.shown} of {count(answer.total, 'contradiction')}{about} in {answer.scope}.")
    looked = f"{count(answer.memories_analyzed, 'memory')} and {count(answer.pairs_checked, 'pair')} checked"
    left_out = f"; {answer.left_out:,} not compared" if answer.left_out else ""
    lines.append(f"{looked}{left_out}.")
    return "\n".join(lines)


def _line(side: ExhibitView, which: str) -> str:
    origin = "".join(f", {name}" for name in (side.source, side.author) if name)
    facts = f"{date_text(side.date)}, {side.scope}, trust {percent(side.trust)}{origin}"
    return f"  {which}: {quoted(side.preview)} [{short_id(side.id)}] ({facts})"


@registry.operation(
    "contradictions",
    permission="read",
    long=True,
    example={"limit": 5},
    positional=("topic",),
    title="Find contradictions",
    render=render_contradictions,
)
def find_contradictions(call: Call, asked: ContradictionsArguments) -> Contradictions:
    """List pairs of memories that contradict each other and are both considered true.

    Checks the memories that are true now, about a `topic` or in the whole scope. For each pair it states how
    the two differ, which is newer, which is stronger, and how to settle it. Changes nothing.
    """
    if asked.topic is not None:
        check_query("topic", asked.topic)
    now = call.engine.now()
    moment = asked.as_of or now
    where = searched(call, Filter(valid_at=moment, include_suppressed=False, now=now), asked.scope)
    found = contradictions(call, where, asked.topic, moment)
    if not found.memories:
        require_scope(call, asked.scope)
    shown = [_view(one) for one in found.contradictions[asked.offset : asked.offset + asked.limit]]
    return Contradictions(
        topic=asked.topic,
        scope=searched_scope(call, asked.scope),
        total=len(found.contradictions),
        offset=asked.offset,
        shown=len(shown),
        contradictions=shown,
        memories_analyzed=found.memories,
        pairs_checked=found.pairs,
        left_out=found.left_out or None,
    )


def _view(one: Contradiction) -> SettledView:
    sides = [(one.newer.memory, one.newer_trust), (one.older.memory, one.older_trust)]
    weaker, stronger = sorted(sides, key=lambda side: weight(*side))
    return SettledView(
        stronger=ExhibitView(**exhibit_fields(*stronger)),
        weaker=ExhibitView(**exhibit_fields(*weaker)),
        newer=one.newer.memory.id,
        kind=one.clash.kind,
        detail=one.clash.detail,
        settled_by=settled_by(one.newer_trust, one.older_trust),
        topic_overlap=round(one.clash.overlap, 4),
        settle=_settle(one, stronger[0].id, weaker[0].id),
    )


def _settle(one: Contradiction, stronger: str, weaker: str) -> str:
    """What to do about a contradiction."""
    if one.older.memory.pinned:
        return f"{one.older.memory.id} is pinned: check whether it is still true, and unpin it if not."
    newer, older = one.newer.memory.id, one.older.memory.id
    if one.clash.corrects or stronger == newer:
        return (
            f"If {newer} is right, end the older one: memory set_validity id={older} with valid_until; if "
            f"the older one was never true: memory demote id={older}."
        )
    return (
        f"The older one is better supported. If it is right: memory demote id={weaker}; if things have "
        f"changed: memory set_validity id={stronger} with valid_until."
    )

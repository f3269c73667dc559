"""How something came to be as it is: every text it has had, in the order of time, with what changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from vestige.cognition.evidence import Exhibit, Findings, Role, Superseded
from vestige.cognition.relation import told_at
from vestige.models import Memory, Revision

MOST_STEPS = 15
_ORDER = (Role.PRIMARY, Role.SUPERSEDED, Role.CONTRADICTING, Role.SUPPORTING, Role.RELATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a memory said from `at` on, and how that came about."""

    at: datetime
    memory: Memory
    change: str


def evolution(
    exhibits: Sequence[Exhibit],
    findings: Findings,
    revisions: Mapping[str, Sequence[Revision]],
    until: datetime,
) -> tuple[Step, ...]:
    """The steps up to `until`, oldest first; of too many, those nearest to the answer."""
    replaces: dict[int, Superseded] = {one.by: one for one in findings.superseded if one.by is not None}
    ranked = sorted(findings.roles, key=lambda at: (_ORDER.index(findings.roles[at]), at))
    steps = [
        step
        for at in ranked
        for step in _steps(exhibits, at, replaces.get(at), revisions.get(exhibits[at].memory.id, ()))
        if step.at <= until
    ]
    return tuple(sorted(steps[:MOST_STEPS], key=lambda step: (step.at, step.memory.id, step.memory.revision)))


def _steps(
    exhibits: Sequence[Exhibit], at: int, replaced: Superseded | None, revisions: Sequence[Revision]
) -> Iterator[Step]:
    now = exhibits[at].memory
    states = [*(one.memory for one in revisions), now]
    first = "told"
    if replaced is not None:
        detail = f" ({replaced.detail})" if replaced.detail else ""
        first = f"replaces {exhibits[replaced.older].memory.id}{detail}"
    yield Step(at=told_at(states[0]), memory=states[0], change=first)
    for before, after in pairwise(states):
        if after.content != before.content:
            yield Step(at=after.updated_at, memory=after, change="revised")
    if now.valid_until is not None and now.superseded_by is None:
        yield Step(at=now.valid_until, memory=now, change="not true any more")

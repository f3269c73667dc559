"""Encoding specificity (Tulving & Thomson 1973): a memory made in a similar context is recalled more easily.

The context of a memory is what was known when it was made: its topics (tags), session, codebase, files and
time. The caller gives any of these; only what is known on both sides is compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.evidence.codebase import codebase_at, codebase_of, files_of
from vestige.cognition.text.analyser import terms
from vestige.core.candidates import Floats
from vestige.core.models import Memory

TOPICAL, SESSION, TEMPORAL = 0.4, 0.25, 0.2
"""The weight of each part of a context, among those that are known."""

SAME_CODEBASE, SAME_FILE = 0.6, 0.4
"""The match outside the same session, which is 1."""

NEAR_DAYS, NEAR = (1.0, 7.0), (0.5, 0.25)
HOURS_APART, SAME_HOURS = (3.0, 6.0), (0.3, 0.15)
SAME_WEEKDAY, SAME_HALF_OF_WEEK = 0.2, 0.1
"""The weights of nearness in time, the time of day and the day of the week."""

DAY_SECONDS, HOUR_SECONDS, DAY_HOURS = 86_400.0, 3_600.0, 24.0
_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKEND = 5
_FIRST_WEEKDAY = 3  # 1 January 1970 was a Thursday


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The caller's context, as far as it is known: topics, session, codebase, file and time."""

    topics: tuple[str, ...] = ()
    session_id: str | None = None
    codebase: str | None = None
    file: str | None = None
    moment: datetime | None = None

    @property
    def is_known(self) -> bool:
        """Whether any part is given."""
        placed = (self.session_id, self.codebase, self.file, self.moment)
        return bool(_keys(self.topics)) or any(part is not None for part in placed)

    def matches(self, memories: Sequence[Memory]) -> Floats:
        """How well each memory's context matches, 0 to 1; 0 if nothing is known of both."""
        parts = np.stack([self._topical(memories), self._placed(memories), self._temporal(memories)])
        weights = np.array([[TOPICAL], [SESSION], [TEMPORAL]]) * ~np.isnan(parts)
        known = weights.sum(axis=0)
        total = (weights * np.nan_to_num(parts)).sum(axis=0)
        shares: Floats = total / np.where(known > 0, known, 1.0)
        return shares

    def _topical(self, memories: Sequence[Memory]) -> Floats:
        """The share of the topics that each memory has among its tags."""
        wanted = _keys(self.topics)
        if not wanted:
            return np.full(len(memories), np.nan)
        tagged = [_keys(memory.tags) for memory in memories]
        return np.array([len(wanted & tags) / len(wanted) if tags else np.nan for tags in tagged])

    def _placed(self, memories: Sequence[Memory]) -> Floats:
        return np.array([self._place(memory) for memory in memories], dtype=np.float64)

    def _place(self, memory: Memory) -> float:
        """1 in the same session; else by codebase and file; NaN if nothing can be compared."""
        if self.session_id is not None and memory.session_id == self.session_id:
            return 1.0
        compared = [self.session_id is not None and memory.session_id is not None]
        shared = 0.0
        codebase = codebase_of(memory) or codebase_at(memory.scope)
        if self.codebase is not None and codebase is not None:
            compared.append(True)
            shared += SAME_CODEBASE * (codebase == self.codebase)
        named = {*files_of(memory), *((memory.source,) if memory.source else ())}
        if self.file is not None and named:
            compared.append(True)
            shared += SAME_FILE * (self.file in named)
        return shared if any(compared) else np.nan

    def _temporal(self, memories: Sequence[Memory]) -> Floats:
        """How near each memory's time is, and how similar its time of day and day of the week."""
        if self.moment is None:
            return np.full(len(memories), np.nan)
        then = np.array([_learned(memory).timestamp() for memory in memories], dtype=np.float64)
        now = self.moment.timestamp()
        hours = np.abs(then - now) % DAY_SECONDS / HOUR_SECONDS
        near = _stepped(np.abs(then - now) / DAY_SECONDS, NEAR_DAYS, NEAR)
        at_hour = _stepped(np.minimum(hours, DAY_HOURS - hours), HOURS_APART, SAME_HOURS)
        theirs, ours = _weekday(then), _weekday(np.array([now]))
        half = np.where((theirs < _WEEKEND) == (ours < _WEEKEND), SAME_HALF_OF_WEEK, 0.0)
        return near + at_hour + np.where(theirs == ours, SAME_WEEKDAY, half)


NOWHERE = Context()
"""An empty context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """The context in which a memory was made, as cues for recalling it."""

    temporal: str
    topical: str | None
    session: str | None


def hints(memory: Memory) -> Hints:
    """The context hints of a memory."""
    at = _learned(memory).astimezone(UTC)
    codebase = codebase_of(memory)
    places = (
        f"session {memory.session_id}" if memory.session_id else None,
        f"agent {memory.agent_id}" if memory.agent_id else None,
        f"codebase {codebase}" if codebase else None,
        f"scope {memory.scope}" if codebase_at(memory.scope) else None,
    )
    return Hints(
        temporal=f"{_WEEK[at.weekday()]} {_part_of_day(at.hour)}, {at:%Y-%m-%d} (UTC)",
        topical=", ".join(memory.tags) or None,
        session=", ".join(filter(None, places)) or None,
    )


def _learned(memory: Memory) -> datetime:
    return memory.occurred_at or memory.created_at


def _keys(labels: Sequence[str]) -> frozenset[str]:
    """Labels for comparison: their words, without letter case."""
    return frozenset(" ".join(terms(label)) for label in labels) - {""}


def _stepped(distance: Floats, within: tuple[float, float], worth: tuple[float, float]) -> Floats:
    """The first value within the first distance, the second within the second, else 0."""
    near, far = (distance <= end for end in within)
    return np.where(near, worth[0], np.where(far, worth[1], 0.0))


def _weekday(seconds: Floats) -> NDArray[np.int64]:
    return ((seconds // DAY_SECONDS).astype(np.int64) + _FIRST_WEEKDAY) % len(_WEEK)


def _part_of_day(hour: int) -> str:
    return ("night", "morning", "afternoon", "evening")[hour // 6]

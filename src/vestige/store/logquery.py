"""Which events of the log are asked for, when it is read backwards."""

from dataclasses import dataclass
from datetime import datetime

from vestige.models import Evidence, LogEvent, covers
from vestige.store.judging import inherits


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which events; what is unset does not filter.

    `since` is inclusive and `until` exclusive, both over an event's own time; `before` is exclusive and over
    its position, which no two events share. `scope` and `inherited` mean
    what they do in a `Filter`, over the event's scope. Without `exposures` it is left out that a memory was
    merely shown.
    """

    memory_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    scope: str | None = None
    inherited: bool = False
    exposures: bool = True

    def takes(self, event: LogEvent) -> bool:
        """Whether an event is asked for: the one definition every store obeys."""
        if self.memory_id not in (None, event.memory_id) or not self._in_time(event.at):
            return False
        if self.before is not None and event.position >= self.before:
            return False
        if not self.exposures and event.payload.get("evidence") == Evidence.EXPOSED:
            return False
        return self.scope is None or self._in_scope(self.scope, event.scope)

    def _in_time(self, at: datetime) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

    def _in_scope(self, asked: str, scope: str) -> bool:
        if self.inherited and inherits(asked, scope):
            return True
        return covers(asked, scope)

"""Which events of the log are asked for, when it is read backwards."""

from dataclasses import dataclass
from datetime import datetime

from vestige.models import Evidence, LogEvent
from vestige.store.judging import in_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which events; what is unset does not filter.

    `since` is inclusive and `until` exclusive, both over an event's own time; `before` is exclusive and over
    its position, which no two events share. `scope` and `inherited` mean
    what they do in a `Filter`, over the event's scope. `kinds` are the kinds of event wanted, `evidence` the
    kinds of remark. Without `exposures` it is left out that a memory was merely shown.
    """

    memory_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    scope: str | None = None
    inherited: bool = False
    kinds: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    exposures: bool = True

    def takes(self, event: LogEvent) -> bool:
        """Whether an event is asked for: the one definition every store obeys."""
        if self.memory_id not in (None, event.memory_id) or not self._in_time(event.at):
            return False
        if self.before is not None and event.position >= self.before:
            return False
        if not self._of_kind(event):
            return False
        return self.scope is None or in_scope(event.scope, self.scope, inherited=self.inherited)

    def _of_kind(self, event: LogEvent) -> bool:
        said = event.payload.get("evidence")
        if (self.kinds and event.kind not in self.kinds) or (self.evidence and said not in self.evidence):
            return False
        return self.exposures or said != Evidence.EXPOSED

    def _in_time(self, at: datetime) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)

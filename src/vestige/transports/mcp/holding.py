"""Jobs that wait for their client's roots, which decide where they look and write. Pure.

A job starts at once when nothing is to be told, else when the client has answered or the driver finds that
it takes too long. None overtakes another: clients store and then search without waiting in between.
"""

from vestige.transports.mcp.eras import MODERN
from vestige.transports.mcp.messages import Action, Cancel, Hold, Job, Start
from vestige.transports.mcp.roots import Roots


class Entrance:
    """Where the jobs of one client pass before they start."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._hold: Hold | None = None

    def enter(self, job: Job) -> list[Action]:
        """Start a job, or hold it back."""
        if self._hold is not None:
            self._hold.jobs.append(job)
            return []
        if self._roots.awaited:
            self._hold = Hold(job)
            return [self._hold]
        return [self._start(job)]

    def release(self) -> list[Action]:
        """Start what is held, with the roots as they are now."""
        hold, self._hold = self._hold, None
        return [self._start(job) for job in hold.jobs] if hold else []

    def overdue(self, hold: Hold) -> list[Action]:
        """Go on without the answer, if these jobs still wait for it."""
        if hold is not self._hold:
            return []
        self._roots.give_up()
        return self.release()

    def cancel(self, job: Job) -> list[Action]:
        """Stop a job; one that is held just never starts."""
        if self._hold is not None and job in self._hold.jobs:
            self._hold.jobs.remove(job)
            return []
        return [Cancel(job)]

    def _start(self, job: Job) -> Start:
        if job.version not in MODERN:  # those bring their own
            job.roots = self._roots.uris
        return Start(job)

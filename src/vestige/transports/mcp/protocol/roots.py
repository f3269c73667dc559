"""The root folders that a client works in. Pure.

In versions with a handshake we ask when the client is ready, and again when it reports a change; calls wait
briefly for the answer. Stateless versions have no requests from servers: a call of a client with roots is
answered with a request for them, and the client repeats the call with them.
"""

from vestige.transports.mcp.protocol.jsonrpc import Message, Request, as_object
from vestige.transports.mcp.protocol.messages import Action, Cancel, HoldJobs, Job, Start
from vestige.transports.mcp.protocol.versions import CAPABILITIES_KEY, MODERN

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing (3 ms)
if TYPE_CHECKING:
    from typing import Any

METHOD = "roots/list"
_KEY = "roots"
_ID = "vestige-roots-"
_MOST = 100
"""Limit of folders; a longer list is cut."""


class Roots:
    """The roots of one client of a version with a handshake."""

    def __init__(self) -> None:
        self.uris: tuple[str, ...] = ()
        self.awaited = False
        """Whether an answer is expected soon: a call now would use the wrong roots."""
        self._offered = False
        self._silent = False
        self._asked = 0

    def greeted(self, capabilities: object) -> None:
        """Take the capabilities of a client that introduces itself."""
        self.uris = ()
        self._offered = self.awaited = _offers(capabilities)
        self._silent = False

    def ask(self) -> list[Message]:
        """The request to send now, if the client supports it."""
        if not self._offered:
            return []
        self._asked += 1
        self.awaited = not self._silent
        return [{"jsonrpc": "2.0", "id": self._waiting, "method": METHOD}]

    def take(self, reply: Message) -> bool:
        """Read a reply of the client; returns whether it answers our last request, which alone counts."""
        if not self._asked or reply.get("id") != self._waiting:
            return False
        self.uris = _uris(reply.get("result"))
        self.awaited = self._silent = False
        return True

    def give_up(self) -> None:
        """Stop waiting for the answer. Until one comes, nothing waits for this client again."""
        self.awaited, self._silent = False, True

    def state(self) -> "dict[str, Any]":
        """What another process needs to go on; an answer that is still awaited is not waited for there."""
        return {
            "uris": list(self.uris),
            "offered": self._offered,
            "silent": self._silent or self.awaited,
            "asked": self._asked,
        }

    def resume(self, state: "dict[str, Any]") -> None:
        """Go on where another process left off."""
        self.uris = tuple(map(str, state["uris"]))
        self._offered, self._silent, self._asked = state["offered"], state["silent"], state["asked"]

    @property
    def _waiting(self) -> str:
        return f"{_ID}{self._asked}"


def wanted(request: Request) -> Message | None:
    """The request for a stateless client before its call can run; None if answered or unsupported."""
    if "inputResponses" in request.params or not _offers(request.meta.get(CAPABILITIES_KEY)):
        return None
    return {_KEY: {"method": METHOD}}


def supplied(request: Request) -> tuple[str, ...]:
    """The roots that a stateless client sends with its call; empty without an answer."""
    return _uris((as_object(request.params.get("inputResponses")) or {}).get(_KEY))


def _offers(capabilities: object) -> bool:
    return as_object((as_object(capabilities) or {}).get("roots")) is not None


def _uris(result: object) -> tuple[str, ...]:
    roots = (as_object(result) or {}).get("roots")
    found = (as_object(one) or {} for one in (roots if isinstance(roots, list) else []))
    return tuple(uri for one in found if isinstance(uri := one.get("uri"), str))[:_MOST]


# -- Jobs that wait for their client's roots, which decide their scope


class RootsWait:
    """Holds the jobs of one client until its roots are known."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._hold: HoldJobs | None = None

    def enter(self, job: Job) -> list[Action]:
        """Start a job, or hold it."""
        if self._hold is not None:
            self._hold.jobs.append(job)
            return []
        if self._roots.awaited:
            self._hold = HoldJobs(job)
            return [self._hold]
        return [self._start(job)]

    def release(self) -> list[Action]:
        """Start the held jobs with the current roots."""
        hold, self._hold = self._hold, None
        return [self._start(job) for job in hold.jobs] if hold else []

    def overdue(self, hold: HoldJobs) -> list[Action]:
        """Continue without the answer, if these jobs still wait for it."""
        if hold is not self._hold:
            return []
        self._roots.give_up()
        return self.release()

    def cancel(self, job: Job) -> list[Action]:
        """Cancel a job; a held one never starts."""
        if self._hold is not None and job in self._hold.jobs:
            self._hold.jobs.remove(job)
            return []
        return [Cancel(job)]

    def _start(self, job: Job) -> Start:
        if job.version not in MODERN:  # those bring their own
            job.roots = self._roots.uris
        return Start(job)

"""The folders a client works in, as far as it tells. Pure.

In the handshake era we ask once the client is ready, and again when it says that they changed; calls wait a
little for the answer. The stateless era has no requests from servers and nothing to remember: there a call
that comes from a client with roots is answered by asking for them, and comes again with them.
"""

from vestige.transports.mcp.protocol.eras import CAPABILITIES_KEY, MODERN
from vestige.transports.mcp.protocol.jsonrpc import Message, Request, as_object
from vestige.transports.mcp.protocol.messages import Action, Cancel, HoldJobs, Job, Start

METHOD = "roots/list"
_KEY = "roots"
_ID = "vestige-roots-"
_MOST = 100
"""More folders than anybody works in; a longer list is cut."""


class Roots:
    """What one client of the handshake era has told."""

    def __init__(self) -> None:
        self.uris: tuple[str, ...] = ()
        self.awaited = False
        """Whether the client is about to tell: a call now would go by roots that are not its own."""
        self._offered = False
        self._silent = False
        self._asked = 0

    def greeted(self, capabilities: object) -> None:
        """The client has introduced itself, with what it can do."""
        self.uris = ()
        self._offered = self.awaited = _offers(capabilities)
        self._silent = False

    def ask(self) -> list[Message]:
        """The request to send now, if the client can answer it."""
        if not self._offered:
            return []
        self._asked += 1
        self.awaited = not self._silent
        return [{"jsonrpc": "2.0", "id": self._waiting, "method": METHOD}]

    def take(self, reply: Message) -> bool:
        """Read a reply of the client; whether it is the answer to our last question, which alone counts."""
        if not self._asked or reply.get("id") != self._waiting:
            return False
        self.uris = _uris(reply.get("result"))
        self.awaited = self._silent = False
        return True

    def give_up(self) -> None:
        """The answer takes too long. Until one comes, however late, nothing waits for this client again."""
        self.awaited, self._silent = False, True

    @property
    def _waiting(self) -> str:
        return f"{_ID}{self._asked}"


def wanted(request: Request) -> Message | None:
    """What to ask a stateless client before its call can run, or None when it has been asked or has none."""
    if "inputResponses" in request.params or not _offers(request.meta.get(CAPABILITIES_KEY)):
        return None
    return {_KEY: {"method": METHOD}}


def told(request: Request) -> tuple[str, ...]:
    """The roots that a stateless client brings with its call. Without an answer it is served without them."""
    return _uris((as_object(request.params.get("inputResponses")) or {}).get(_KEY))


def _offers(capabilities: object) -> bool:
    return as_object((as_object(capabilities) or {}).get("roots")) is not None


def _uris(result: object) -> tuple[str, ...]:
    roots = (as_object(result) or {}).get("roots")
    found = (as_object(one) or {} for one in (roots if isinstance(roots, list) else []))
    return tuple(uri for one in found if isinstance(uri := one.get("uri"), str))[:_MOST]


# -- Jobs that wait for their client's roots, which decide where they look and write. Pure.


class RootsWait:
    """Where the jobs of one client pass before they start."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._hold: HoldJobs | None = None

    def enter(self, job: Job) -> list[Action]:
        """Start a job, or hold it back."""
        if self._hold is not None:
            self._hold.jobs.append(job)
            return []
        if self._roots.awaited:
            self._hold = HoldJobs(job)
            return [self._hold]
        return [self._start(job)]

    def release(self) -> list[Action]:
        """Start what is held, with the roots as they are now."""
        hold, self._hold = self._hold, None
        return [self._start(job) for job in hold.jobs] if hold else []

    def overdue(self, hold: HoldJobs) -> list[Action]:
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

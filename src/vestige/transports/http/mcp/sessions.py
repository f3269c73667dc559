"""Sessions of MCP's handshake era: a limited number, each used by its owner only, ended when idle. Expired
sessions are removed when the table is used; no timer runs. In a server of several workers, an id begins with
the number of the worker that has the session."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import field

from vestige.core.caller import Caller
from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.mcp.driver import Conversation
from vestige.transports.http.workers.table import HeldElsewhere, NothingElsewhere

_ID_BYTES = 24


@dataclass(slots=True, kw_only=True)
class McpSession:
    """A conversation over several requests. `opener` is who began it."""

    id: str
    owner: tuple[str, str]
    conversation: Conversation
    opener: Caller
    last_used: float


@dataclass(slots=True, kw_only=True)
class Sessions:
    """The open sessions. Used on the event loop's thread."""

    most: int
    idle_seconds: float
    monotonic: Callable[[], float]
    entropy: Callable[[int], bytes]
    prefix: str = ""
    elsewhere: HeldElsewhere = field(default_factory=NothingElsewhere)
    _open: dict[str, McpSession] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        self._expire()
        return len(self._open)

    def make_room(self, owner: tuple[str, str], *, shared: bool) -> bool:
        """Whether another session can be opened. An owner that has half of all sessions loses the one idle
        longest, unless it is `shared`: several callers use such an owner, and none may end a session of
        another."""
        self._expire()
        own = [session for session in self._open.values() if session.owner == owner]
        if not shared and len(own) + self.elsewhere.of(repr(owner)) >= max(1, self.most // 2):
            idle = [session for session in own if not session.conversation.busy]
            if not idle:
                return False
            self.end(min(idle, key=lambda session: session.last_used))
        return len(self._open) + self.elsewhere.of() < self.most

    def open(self, owner: tuple[str, str], conversation: Conversation, opener: Caller) -> str:
        """Begin a session; its id."""
        session_id = self.prefix + urlsafe_b64encode(self.entropy(_ID_BYTES)).decode("ascii")
        self.add(session_id, owner, conversation, opener)
        return session_id

    def add(
        self, session_id: str, owner: tuple[str, str], conversation: Conversation, opener: Caller
    ) -> None:
        """Add a session that has an id, because another worker began it."""
        self._open[session_id] = McpSession(
            id=session_id, owner=owner, conversation=conversation, opener=opener, last_used=self.monotonic()
        )
        self._publish(owner)

    def has(self, session_id: str) -> bool:
        return session_id in self._open

    def all(self) -> list[McpSession]:
        """The open sessions, from the one begun first."""
        self._expire()
        return list(self._open.values())

    def find(self, session_id: str, owner: tuple[str, str]) -> McpSession | None:
        """The session with this id, marked as used; None if it does not exist or has another owner."""
        self._expire()
        session = self._open.get(session_id)
        if session is None or session.owner != owner:
            return None
        self.used(session)
        return session

    def used(self, session: McpSession) -> None:
        session.last_used = self.monotonic()

    def end(self, session: McpSession) -> None:
        """End a session and everything under way in it."""
        if self._open.pop(session.id, None) is not None:
            session.conversation.end()
            self._publish(session.owner)

    def _publish(self, owner: tuple[str, str]) -> None:
        of_owner = sum(session.owner == owner for session in self._open.values())
        self.elsewhere.publish(repr(owner), of_owner, len(self._open))

    def _expire(self) -> None:
        now = self.monotonic()
        for session in list(self._open.values()):
            if session.conversation.busy:
                session.last_used = now
            elif now - session.last_used >= self.idle_seconds:
                self.end(session)

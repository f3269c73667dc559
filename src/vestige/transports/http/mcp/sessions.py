"""Sessions of MCP's handshake era: a limited number, each used by its owner only, ended when idle. Expired
sessions are removed when the table is used; no timer runs."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field

from vestige.transports.http.mcp.driver import Conversation

_ID_BYTES = 24


@dataclass(slots=True, kw_only=True)
class McpSession:
    """A conversation over several requests."""

    id: str
    owner: object
    conversation: Conversation
    last_used: float


@dataclass(slots=True, kw_only=True)
class Sessions:
    """The open sessions. Used on the event loop's thread."""

    most: int
    idle_seconds: float
    monotonic: Callable[[], float]
    entropy: Callable[[int], bytes]
    _open: dict[str, McpSession] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        self._expire()
        return len(self._open)

    def make_room(self, owner: object, *, shared: bool) -> bool:
        """Whether another session can be opened. An owner that has half of all sessions loses the one idle
        longest, unless it is `shared`: several callers use such an owner, and none may end a session of
        another."""
        self._expire()
        own = [session for session in self._open.values() if session.owner == owner]
        if not shared and len(own) >= max(1, self.most // 2):
            idle = [session for session in own if not session.conversation.busy]
            if not idle:
                return False
            self.end(min(idle, key=lambda session: session.last_used))
        return len(self._open) < self.most

    def open(self, owner: object, conversation: Conversation) -> str:
        """Begin a session; its id."""
        session_id = urlsafe_b64encode(self.entropy(_ID_BYTES)).decode("ascii")
        self._open[session_id] = McpSession(
            id=session_id, owner=owner, conversation=conversation, last_used=self.monotonic()
        )
        return session_id

    def find(self, session_id: str, owner: object) -> McpSession | None:
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

    def _expire(self) -> None:
        now = self.monotonic()
        for session in list(self._open.values()):
            if session.conversation.busy:
                session.last_used = now
            elif now - session.last_used >= self.idle_seconds:
                self.end(session)

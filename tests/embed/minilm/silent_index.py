"""A package index on this machine that takes requests and never answers them: pip waits for ever."""

import select
import socket
from types import TracebackType
from typing import Self

from testbed.patience import PATIENCE_SECONDS


class SilentIndex:
    """Tells when somebody asks, and when the one who asked is gone."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._asking: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/simple"

    @property
    def pip_settings(self) -> dict[str, str]:
        """The environment of a user whose pip is set to this index, and would wait for it for long."""
        return {"PIP_INDEX_URL": self.url, "PIP_TIMEOUT": "600", "NO_PROXY": "127.0.0.1"}

    @property
    def fetching(self) -> list[str]:
        """A module with its words that asks this index for a package, and for nothing else."""
        where = ["--isolated", "--disable-pip-version-check", "--timeout", "600", "--index-url", self.url]
        return ["pip", "download", *where, "nothing"]

    def was_asked(self) -> bool:
        """Whether somebody has asked whom `asked` has not handed out yet."""
        return bool(select.select([self._listening], [], [], 0)[0])

    def asked(self) -> socket.socket:
        """The connection of the next one who asks."""
        self._listening.settimeout(PATIENCE_SECONDS)
        connection, _ = self._listening.accept()
        self._asking.append(connection)
        return connection

    def hung_up(self, connection: socket.socket) -> None:
        """Wait until the one who asked is gone."""
        connection.settimeout(PATIENCE_SECONDS)
        while connection.recv(4096):
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in (*self._asking, self._listening):
            one.close()

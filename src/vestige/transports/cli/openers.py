"""What the command line needs of an application: how it is opened, and the parts that it uses. The
composition root passes these in."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from vestige.core.caller import Progress
from vestige.engine.context import Engine
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import Operation
from vestige.settings.settings import Settings
from vestige.store.contract.trouble import DatabaseStatus, Trouble, Upgrade
from vestige.store.transfer.ends import End
from vestige.transports.mcp.service import ServerApplication, Service


class LocalApplication(Service, AbstractContextManager["LocalApplication"], Protocol):
    """A running Vestige, as `vestige.app.open_app` opens it."""

    @property
    def engine(self) -> Engine:
        """The engine behind it."""

    def run(self, operation: Operation, arguments: Mapping[str, Any], progress: Progress) -> Wire:
        """Run an operation for the local user."""

    def exchange_events(self) -> None:
        """Receive events of other processes from now on."""


OpenApp = Callable[[Mapping[str, Any]], LocalApplication]
"""Opens the application with flags such as `data_dir`: slow, and may raise VestigeError."""


class ServingApplication(ServerApplication, Service, Protocol):
    """A running Vestige that serves clients, as `vestige.app.open_server` opens it."""


class OpenServer(Protocol):
    """Opens an application for a server, with the same flags. `parent` is the process id that the workers of
    one server have in common."""

    def __call__(self, options: Mapping[str, Any], /, *, parent: int = 0) -> ServingApplication: ...


class RestoreContents(Protocol):
    """The contents of a backup: how many memories and events, and the time of the last change."""

    @property
    def memories(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def newest(self) -> str | None: ...


class RestoreResult(Protocol):
    """The result of a restore: what is in the store now, and where the replaced one is kept."""

    @property
    def contents(self) -> RestoreContents: ...
    @property
    def kept(self) -> Path | None: ...


class Restorer(Protocol):
    """Replaces the file of a store by a backup. Depends on the backend, so it is passed in."""

    def recognises(self, backup: Path) -> bool:
        """Whether a file is a database of this backend."""

    def inspect(self, backup: Path) -> RestoreContents:
        """Check a backup and return its contents."""

    def staging(self, database: Path) -> AbstractContextManager[Path]:
        """The exclusive right to replace a store, with a temporary folder beside it."""

    def stage(self, backup: Path, folder: Path, name: str) -> Path:
        """Check a backup and copy it into a folder."""

    def swap(self, staged: Path, database: Path, *, prove: Callable[[], None]) -> RestoreResult:
        """Replace the store; `prove` opens it and raises if it is not valid."""


class MaintainedDatabase(Protocol):
    """The database of the settings, without opening the store. Depends on the backend, so it is passed in."""

    def status(self) -> DatabaseStatus:
        """Its status. Nothing is created or changed."""

    def upgrade(self) -> Upgrade:
        """What opening the store would do to its schema."""

    def remains(self) -> Sequence[Trouble]:
        """Problems of a store that cannot be opened."""

    def restorer(self) -> Restorer:
        """The restorer of this backend, or InvalidInput with what to do instead."""


OpenDatabase = Callable[[Settings], MaintainedDatabase]
"""The database of these settings; it is accessed when a method is called."""

OpenEnds = Callable[[Settings, str, str], tuple[End, End]]
"""Both ends of a transfer, from their names; they are opened when they are used."""

"""Every error Vestige raises on purpose, with one stable code each.

    VestigeError
    ├── InvalidInput            the caller sent something we cannot take
    │   ├── UnknownArgument     … an argument that does not exist
    │   ├── TooLarge            … more than a limit allows
    │   └── SecretFound         … a text that holds a key, a token or a password
    ├── NotFound                no such memory (or not within the caller's access)
    ├── Forbidden               the caller may not do this, or not in this scope
    ├── Conflict                somebody else changed the same thing first
    │   ├── IdempotencyConflict … the same key with another request
    │   └── ModelMismatch       … vectors of another embedding model
    ├── Cancelled               the caller took the request back
    ├── DeadlineExceeded        the request ran out of time
    ├── MissingExtra            an optional dependency is not installed
    ├── ConfigError             the settings cannot be used
    ├── EmbedderError           the embedding model failed
    │   ├── ModelUnavailable    … is not installed (yet)
    │   └── ModelDamaged        … is not what it should be on disk
    └── StoreError              the database failed
        ├── StoreBusy           … another writer held it too long
        ├── StoreUnavailable    … cannot be reached
        ├── StoreCorrupt        … is not a database, or a damaged one
        ├── StoreTooNew         … was written by a newer Vestige
        ├── StoreReadOnly       … cannot be written
        └── StoreFull           … has no room left on its disk

The docstring of a class is its default message. An error travels as one value, `{code, message,
hint, details}`, in whatever clothes a transport has for it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class VestigeError(Exception):
    """Something went wrong inside Vestige."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(self.message)

    def value(self) -> dict[str, Any]:
        """The error as every transport shows it."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        if self.details:
            shown["details"] = self.details
        return shown


class InvalidInput(VestigeError):
    """The request cannot be taken as it is."""

    code = "invalid_input"
    status = 400
    exit_code = 2


class UnknownArgument(InvalidInput):
    """There is no argument of that name."""

    code = "unknown_argument"


class TooLarge(InvalidInput):
    """The request is larger than the limit."""

    code = "too_large"
    status = 413


class SecretFound(InvalidInput):
    """The text holds a secret."""

    code = "secret_found"


class NotFound(VestigeError):
    """There is no such memory."""

    code = "not_found"
    status = 404


class Forbidden(VestigeError):
    """This caller may not do that."""

    code = "forbidden"
    status = 403


class Conflict(VestigeError):
    """The memory was changed by somebody else in the meantime."""

    code = "conflict"
    status = 409


class IdempotencyConflict(Conflict):
    """This idempotency key was already used for another request."""

    code = "idempotency_conflict"


class ModelMismatch(Conflict):
    """This store holds vectors of another embedding model."""

    code = "model_mismatch"


class Cancelled(VestigeError):
    """The request was cancelled."""

    code = "cancelled"
    status = 499


class DeadlineExceeded(VestigeError):
    """The request took longer than it was allowed to."""

    code = "deadline_exceeded"
    status = 504


class MissingExtra(VestigeError):
    """An optional part of Vestige is not installed."""

    code = "missing_extra"
    status = 501

    @classmethod
    def named(cls, extra: str, what: str) -> "MissingExtra":
        """The error for a feature `what` that the extra `extra` would bring."""
        return cls(
            f"{what} needs the extra '{extra}', which is not installed.",
            hint=_installing(extra),
            details={"extra": extra},
        )


def _installing(extra: str) -> str:
    """The command that brings an extra to this installation, whatever it was made from.

    It names the packages, because a checkout or a wheel of Vestige is no package of an index.
    """
    # Imported here: who starts within milliseconds imports this module and never gets here.
    import shlex
    import sys
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = [one.partition(";") for one in requires("vestige") or []]
    except PackageNotFoundError:  # the sources alone, on the path of Python
        wanted = []
    packages = [
        name.strip() for name, _, marker in wanted if f"extra == '{extra}'" in marker.replace('"', "'")
    ]
    return shlex.join([sys.executable, "-m", "pip", "install", *(packages or ["-e", f".[{extra}]"])])


class ConfigError(VestigeError):
    """The settings cannot be used."""

    code = "config"
    exit_code = 2


class EmbedderError(VestigeError):
    """The embedding model failed."""

    code = "embedder"
    status = 503


class ModelUnavailable(EmbedderError):
    """The embedding model is not installed."""

    code = "model_unavailable"


class ModelDamaged(EmbedderError):
    """The embedding model on disk is damaged."""

    code = "model_damaged"


class StoreError(VestigeError):
    """The database failed."""

    code = "store"
    exit_code = 3


class StoreBusy(StoreError):
    """Another process is writing and did not finish in time."""

    code = "store_busy"
    status = 503


class StoreUnavailable(StoreError):
    """The database server cannot be reached."""

    code = "store_unavailable"
    status = 503


class StoreCorrupt(StoreError):
    """The database file is damaged."""

    code = "store_corrupt"


class StoreTooNew(StoreError):
    """The database was written by a newer version of Vestige."""

    code = "store_too_new"


class StoreReadOnly(StoreError):
    """The database cannot be written."""

    code = "store_read_only"
    status = 403


class StoreFull(StoreError):
    """The disk is full."""

    code = "store_full"
    status = 507


INSIDE = (StoreError, EmbedderError, ConfigError, MissingExtra)
"""Errors that may name files, addresses, users and processes of the installation: their message is for who
may know of those, their docstring for everybody."""

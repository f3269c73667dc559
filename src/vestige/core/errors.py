"""Every error Vestige raises on purpose, with one stable code each.

    VestigeError
    ├── InvalidInput            the request is invalid
    │   ├── UnknownArgument     … an argument that does not exist
    │   ├── TooLarge            … more than a limit allows
    │   └── SecretFound         … a text with a key, a token or a password
    ├── NotFound                no such memory (or no access to it)
    ├── Forbidden               the caller may not do this, or not in this scope
    ├── Conflict                another writer changed the same thing first
    │   ├── IdempotencyConflict … the same key with another request
    │   └── ModelMismatch       … vectors of another embedding model
    ├── Cancelled               the caller cancelled the request
    ├── DeadlineExceeded        the request ran out of time
    ├── MissingExtra            an optional dependency is not installed
    ├── ConfigError             the settings are invalid
    ├── EmbedderError           the embedding model failed
    │   ├── ModelUnavailable    … is not installed (yet)
    │   └── ModelDamaged        … is damaged on disk
    └── StoreError              the database failed
        ├── StoreBusy           … another writer held it too long
        ├── StoreUnavailable    … cannot be reached
        ├── StoreCorrupt        … is not a database, or a damaged one
        ├── StoreTooNew         … was written by a newer Vestige
        ├── StoreReadOnly       … cannot be written
        └── StoreFull           … has no room left on its disk

The docstring of a class is its default message. Every transport sends an error as one value, `{code,
message, hint, details}`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class VestigeError(Exception):
    """Vestige had an internal error."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        super().__init__(self.message)

    def value(self) -> dict[str, Any]:
        """The error as every transport sends it."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        if self.details:
            shown["details"] = self.details
        return shown


class InvalidInput(VestigeError):
    """The request is invalid."""

    code = "invalid_input"
    status = 400
    exit_code = 2


class UnknownArgument(InvalidInput):
    """There is no argument with this name."""

    code = "unknown_argument"


class TooLarge(InvalidInput):
    """The request exceeds a size limit."""

    code = "too_large"
    status = 413


class SecretFound(InvalidInput):
    """The text contains a secret."""

    code = "secret_found"


class NotFound(VestigeError):
    """There is no such memory."""

    code = "not_found"
    status = 404


class Forbidden(VestigeError):
    """This caller has no permission for this."""

    code = "forbidden"
    status = 403


class Conflict(VestigeError):
    """Another writer changed the memory in the meantime."""

    code = "conflict"
    status = 409


class IdempotencyConflict(Conflict):
    """This idempotency key was already used for another request."""

    code = "idempotency_conflict"


class ModelMismatch(Conflict):
    """The store has vectors of another embedding model."""

    code = "model_mismatch"


class Cancelled(VestigeError):
    """The request was cancelled."""

    code = "cancelled"
    status = 499


class DeadlineExceeded(VestigeError):
    """The request exceeded its time limit."""

    code = "deadline_exceeded"
    status = 504


class MissingExtra(VestigeError):
    """An optional part of Vestige is not installed."""

    code = "missing_extra"
    status = 501

    @classmethod
    def named(cls, extra: str, what: str) -> "MissingExtra":
        """The error for a feature `what` that needs the extra `extra`."""
        return cls(
            f"{what} needs the extra '{extra}', which is not installed.",
            hint=_installing(extra),
            details={"extra": extra},
        )


def _installing(extra: str) -> str:
    """The command that installs an extra into this installation. It lists the packages, because a checkout or
    a wheel of Vestige is not in a package index."""
    # Imported here: programs that start within milliseconds import this module.
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
    """The settings are invalid."""

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
"""Errors that may name files, addresses, users and processes of the installation. Their message is only for
callers that may see those; the docstring of the class is for everyone.
"""

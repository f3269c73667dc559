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

from collections.abc import Iterable, Mapping
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

    def __init_subclass__(
        cls, *, code: str | None = None, status: int | None = None, exit_code: int | None = None
    ) -> None:
        """The arguments of a class statement; what one leaves out is that of the class above."""
        cls.code, cls.status = code or cls.code, status or cls.status
        cls.exit_code = exit_code or cls.exit_code

    def value(self) -> dict[str, Any]:
        """The error as every transport sends it."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.hint:
            shown["hint"] = self.hint
        if self.details:
            shown["details"] = self.details
        return shown


class InvalidInput(VestigeError, code="invalid_input", status=400, exit_code=2):
    """The request is invalid."""


class UnknownArgument(InvalidInput, code="unknown_argument"):
    """There is no argument with this name."""


class TooLarge(InvalidInput, code="too_large", status=413):
    """The request exceeds a size limit."""


class SecretFound(InvalidInput, code="secret_found"):
    """The text contains a secret."""


class NotFound(VestigeError, code="not_found", status=404):
    """There is no such memory."""


class Forbidden(VestigeError, code="forbidden", status=403):
    """This caller has no permission for this."""


class Conflict(VestigeError, code="conflict", status=409):
    """Another writer changed the memory in the meantime."""


class IdempotencyConflict(Conflict, code="idempotency_conflict"):
    """This idempotency key was already used for another request."""


class ModelMismatch(Conflict, code="model_mismatch"):
    """The store has vectors of another embedding model."""


class Cancelled(VestigeError, code="cancelled", status=499):
    """The request was cancelled."""


class DeadlineExceeded(VestigeError, code="deadline_exceeded", status=504):
    """The request exceeded its time limit."""


class MissingExtra(VestigeError, code="missing_extra", status=501):
    """An optional part of Vestige is not installed."""

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


class ConfigError(VestigeError, code="config", exit_code=2):
    """The settings are invalid."""


class EmbedderError(VestigeError, code="embedder", status=503):
    """The embedding model failed."""


class ModelUnavailable(EmbedderError, code="model_unavailable"):
    """The embedding model is not installed."""


class ModelDamaged(EmbedderError, code="model_damaged"):
    """The embedding model on disk is damaged."""


class StoreError(VestigeError, code="store", exit_code=3):
    """The database failed."""


class StoreBusy(StoreError, code="store_busy", status=503):
    """Another process is writing and did not finish in time."""


class StoreUnavailable(StoreError, code="store_unavailable", status=503):
    """The database server cannot be reached."""


class StoreCorrupt(StoreError, code="store_corrupt"):
    """The database file is damaged."""


class StoreTooNew(StoreError, code="store_too_new"):
    """The database was written by a newer version of Vestige."""


class StoreReadOnly(StoreError, code="store_read_only", status=403):
    """The database cannot be written."""


class StoreFull(StoreError, code="store_full", status=507):
    """The disk is full."""


INSIDE = (StoreError, EmbedderError, ConfigError, MissingExtra)
"""Errors that may name files, addresses, users and processes of the installation. Their message is only for
callers that may see those; the docstring of the class is for everyone.
"""


def nearest_name(wrong: str, known: Iterable[str]) -> str | None:
    """The known name most similar to `wrong`, for an error message; None if none is close."""
    # Imported late: difflib is only needed after an error.
    from difflib import get_close_matches

    plain = {name.replace("_", "").lower(): name for name in known}
    found = get_close_matches(wrong.replace("_", "").lower(), plain, n=1, cutoff=0.6)
    return plain[found[0]] if found else None

"""API keys: the stored form, the text form, and permissions."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime

from vestige.core.caller import PERMISSIONS
from vestige.core.errors import InvalidInput, MissingExtra
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import check_label, check_moment, check_name, normal_scope
from vestige.core.patterns import lazy_pattern

PREFIX = "vst_"
RANDOM_BYTES = 22
SHOWN_HASH_CHARS = 12
"""Characters of a hash that are shown; enough to identify a key."""
MAX_FILTERS = 100

_TEXT = lazy_pattern(r"vst_[A-Za-z0-9_-]{30}")
_HASH = lazy_pattern(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as the store keeps it: its hash, never its text. `scopes` and `domains` limit its access;
    None is everything. It works until it is revoked or expires."""

    id: str
    hash: str
    label: str
    permissions: tuple[str, ...]
    scopes: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used: datetime | None = None
    revoked_at: datetime | None = None

    def __post_init__(self) -> None:
        check_name("id", self.id)
        check_label("label", self.label)
        if not _HASH.fullmatch(self.hash):
            raise InvalidInput("The hash of a key must have 64 hexadecimal digits.")
        if self.permissions != permissions_of(self.permissions):
            raise InvalidInput(f"The permissions {list(self.permissions)} of a key are not in normal form.")
        _check_filters(self.scopes, self.domains)
        for name in ("created_at", "expires_at", "last_used", "revoked_at"):
            check_moment(name, getattr(self, name))

    @property
    def shown_hash(self) -> str:
        """The part of the hash that may be shown."""
        return self.hash[:SHOWN_HASH_CHARS]

    def works_at(self, moment: datetime) -> bool:
        """Whether the key is valid at that time."""
        return self.revoked_at is None and (self.expires_at is None or moment < self.expires_at)


def permissions_of(names: Iterable[str]) -> tuple[str, ...]:
    """Permissions from least to most. Each includes those below it: `write` includes `read`."""
    wanted = {name.strip().lower() for name in names}
    unknown = sorted(wanted - set(PERMISSIONS))
    if unknown or not wanted:
        raise InvalidInput(
            f"There is no permission {unknown[0]!r}." if unknown else "A key needs at least one permission.",
            hint=f"Choose from {', '.join(PERMISSIONS)}.",
            details={"argument": "permissions"},
        )
    most = max(PERMISSIONS.index(name) for name in wanted)
    return PERMISSIONS[: most + 1]


def key_text(randomness: bytes) -> str:
    """The text of a new key, which its owner gets once."""
    return PREFIX + urlsafe_b64encode(randomness).decode("ascii").rstrip("=")


def looks_like_a_key(text: str) -> bool:
    """Whether a text has the form of a key, so that it is worth looking up."""
    return _TEXT.fullmatch(text) is not None


def hash_of(text: str) -> str:
    """The stored hash of a key. A key is random, so a fast hash is safe against guessing."""
    try:
        from blake3 import blake3
    except ImportError as error:
        raise MissingExtra.named("server", "Using API keys") from error
    return blake3(text.encode("utf-8")).hexdigest()


def _check_filters(scopes: tuple[str, ...] | None, domains: tuple[str, ...] | None) -> None:
    for name, filters in (("scopes", scopes), ("domains", domains)):
        if filters is not None and not 0 < len(filters) <= MAX_FILTERS:
            raise InvalidInput(
                f"A key limited to {name} needs 1 to {MAX_FILTERS} of them.",
                hint=f"Omit `{name}` for a key with access to all of them.",
                details={"argument": name},
            )
    for scope in scopes or ():
        if scope != normal_scope(scope):
            raise InvalidInput(f"The scope {scope!r} is not in normal form.")
    for domain in domains or ():
        check_label("domains", domain)

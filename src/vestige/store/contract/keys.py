"""API keys and logins: a part of the store contract (`tests/store/contract/keys/`)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from vestige.core.api_key import ApiKey


class StoreKeys(Protocol):
    """Keeps API keys, and the logins that were ended early. Both belong to an installation: backups and
    transfers carry them, exports and histories do not, and they are not logged."""

    def put_key(self, key: ApiKey, *, replacing: str | None = None) -> None:
        """Add a key; Conflict where its id or hash is taken. With `replacing`, the key of that id is revoked
        at `key.created_at` in the same transaction: NotFound for an unknown one, Conflict for one that was
        revoked before."""

    def list_keys(self, ids: Sequence[str] | None = None) -> list[ApiKey]:
        """All keys, revoked ones too, or those of these ids, oldest first, ties by id."""

    def key_by_hash(self, hash: str) -> ApiKey | None:
        """The key with this hash, even if revoked or expired, or None."""

    def revoke_key(self, key_id: str, at: datetime) -> ApiKey:
        """Revoke a key in all processes at once; the revoked key. One that was revoked before keeps its first
        time. NotFound for an unknown one."""

    def note_keys_used(self, used: Mapping[str, datetime]) -> None:
        """Record when keys were last used, by id. An earlier time than the known one changes nothing, nor
        does an unknown id."""

    def end_login(self, login_id: str, ends: datetime, *, forgetting: datetime) -> None:
        """End a login in all processes at once that would have lasted until `ends`. Ending it again changes
        nothing. Records of logins that would have ended before `forgetting` are removed, because their
        cookies have expired anyway."""

    def login_ended(self, login_id: str) -> bool:
        """Whether a login was ended early; False for an unknown one, or one whose record was removed."""

    def key_of_login(self, key_id: str, login_id: str) -> ApiKey | None:
        """The key of this id, even if revoked or expired, unless `login_ended`. One query instead of two,
        because each request with a cookie needs it."""

"""The part of the store contract about API keys and logins."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from vestige.core.api_key import ApiKey


class StoreKeys(Protocol):
    """Keeps API keys, and which logins with them are over before their time. Both belong to an installation:
    backups and transfers carry them, exports and `lives` do not, and nothing of them is logged."""

    def put_key(self, key: ApiKey, *, replacing: str | None = None) -> None:
        """Add a key; Conflict where its id or hash is taken. With `replacing`, the key of that id is revoked
        at `key.created_at` in the same transaction: NotFound for an unknown one, Conflict for one that was
        revoked before."""

    def list_keys(self, ids: Sequence[str] | None = None) -> list[ApiKey]:
        """Every key there ever was, or those of these ids, oldest first, ties by id."""

    def key_by_hash(self, hash: str) -> ApiKey | None:
        """The key with this hash, whatever became of it, or None."""

    def revoke_key(self, key_id: str, at: datetime) -> ApiKey:
        """Let a key open nothing from now on, in any process; the key as it is then. One that was revoked
        before keeps its first time. NotFound for an unknown one."""

    def note_keys_used(self, used: Mapping[str, datetime]) -> None:
        """Write down when keys were last used, by id. An earlier time than is known changes nothing, nor does
        an unknown id."""

    def end_login(self, login_id: str, ends: datetime, *, forgetting: datetime) -> None:
        """Let a login be over from now on, in any process, that would have gone on until `ends`. One that is
        over stays so. Others that would have ended before `forgetting` are forgotten: nobody needs to be told
        any more that they are over."""

    def login_ended(self, login_id: str) -> bool:
        """Whether a login is over before its time; not for an unknown one, or one that was forgotten."""

    def key_of_login(self, key_id: str, login_id: str) -> ApiKey | None:
        """The key of this id, whatever became of it, unless `login_ended`: one question instead of two, since
        each request with a cookie asks it."""

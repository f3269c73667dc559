"""API keys of an in-memory store. `StoreKeys` has the contract."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from vestige.core.api_key import ApiKey
from vestige.core.errors import Conflict, NotFound
from vestige.core.models import check_name
from vestige.store.inmemory.state import PublishedState, StoreState


class Keys(PublishedState):
    """Keys by id, and the ends of logins that were ended early."""

    def put_key(self, key: ApiKey, *, replacing: str | None = None) -> None:
        with self._writing() as state:
            if key.id in state.keys or any(one.hash == key.hash for one in state.keys.values()):
                raise Conflict("A key with this id or hash already exists.", details={"id": key.id})
            if replacing is not None:
                if _known(state, replacing).revoked_at is not None:
                    raise Conflict("This key was revoked already.", details={"id": replacing})
                _revoke(state, replacing, key.created_at)
            state.keys[key.id] = key

    def list_keys(self, ids: Sequence[str] | None = None) -> list[ApiKey]:
        found = [one for one in self._state().keys.values() if ids is None or one.id in ids]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def key_by_hash(self, hash: str) -> ApiKey | None:
        return next((one for one in self._state().keys.values() if one.hash == hash), None)

    def revoke_key(self, key_id: str, at: datetime) -> ApiKey:
        with self._writing() as state:
            return _revoke(state, key_id, at)

    def label_key(self, key_id: str, label: str) -> ApiKey:
        with self._writing() as state:
            state.keys[key_id] = replace(_known(state, key_id), label=label)
            return state.keys[key_id]

    def note_keys_used(self, used: Mapping[str, datetime]) -> None:
        with self._writing() as state:
            for key_id, at in used.items():
                known = state.keys.get(key_id)
                if known is not None and (known.last_used is None or known.last_used < at):
                    state.keys[key_id] = replace(known, last_used=at)

    def end_login(self, login_id: str, ends: datetime, *, forgetting: datetime) -> bool:
        check_name("login_id", login_id)
        with self._writing() as state:
            kept = {one: at for one, at in state.ended_logins.items() if at >= forgetting}
            state.ended_logins = {login_id: ends, **kept}
        return login_id not in kept

    def login_ended(self, login_id: str) -> bool:
        return login_id in self._state().ended_logins

    def key_of_login(self, key_id: str, login_id: str) -> ApiKey | None:
        state = self._state()
        return None if login_id in state.ended_logins else state.keys.get(key_id)


def _known(state: StoreState, key_id: str) -> ApiKey:
    if key_id not in state.keys:
        raise NotFound(f"There is no key {key_id}.", details={"id": key_id})
    return state.keys[key_id]


def _revoke(state: StoreState, key_id: str, at: datetime) -> ApiKey:
    known = _known(state, key_id)
    state.keys[key_id] = replace(known, revoked_at=known.revoked_at or at)
    return state.keys[key_id]

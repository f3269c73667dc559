"""API keys: creating, verifying, revoking and rotating them.

A key is looked up on every request, so that a revoked key is refused at once, in every process.
"""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

from vestige.core.api_key import (
    RANDOM_BYTES,
    SHOWN_HASH_CHARS,
    ApiKey,
    hash_of,
    key_text,
    looks_like_a_key,
    permissions_of,
)
from vestige.core.caller import Caller
from vestige.core.errors import Conflict, InvalidInput, NotFound
from vestige.core.models import Access, normal_scope, scope_filter
from vestige.engine.context import Call, Engine
from vestige.engine.domains.catalogue import covered

END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def mint(
    call: Call,
    label: str,
    permissions: Iterable[str],
    scopes: Sequence[str] | None = None,
    domains: Sequence[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key, and its text, which is stored nowhere."""
    now = call.engine.now()
    if expires_at is not None and expires_at <= now:
        raise InvalidInput(
            "The expiry time is in the past.", hint="Give a later time.", details={"argument": "expires"}
        )
    text = key_text(call.engine.entropy(RANDOM_BYTES))
    key = ApiKey(
        id=call.engine.new_id(),
        hash=hash_of(text),
        label=label.strip(),
        permissions=permissions_of(permissions),
        scopes=None if scopes is None else scope_filter(tuple(dict.fromkeys(map(normal_scope, scopes)))),
        domains=None if domains is None else tuple(dict.fromkeys(one.strip() for one in domains)),
        created_at=now,
        expires_at=expires_at,
    )
    call.engine.store.put_key(key)
    return key, text


def free_label(call: Call) -> str:
    """The first of key-1, key-2 … that no key has, revoked ones included."""
    taken = {key.label for key in call.engine.store.list_keys()}
    return next(label for number in count(1) if (label := f"key-{number}") not in taken)


def require_free_label(call: Call, label: str) -> None:
    """Raise Conflict if a working key has this label: users identify and revoke keys by label."""
    now, wanted = call.engine.now(), label.strip()
    same = [key.id for key in call.engine.store.list_keys() if key.label == wanted and key.works_at(now)]
    if same:
        raise Conflict(
            f"An active key with the label “{wanted}” already exists.",
            hint="Choose another label, or replace that key with `keys rotate`.",
            details={"argument": "label", "ids": same},
        )


def verify(engine: Engine, text: str, now: datetime) -> ApiKey | None:
    """The key with this text, if it is valid now. The reason for a refusal is not disclosed."""
    if not looks_like_a_key(text):
        return None
    hashed = hash_of(text)
    key = engine.store.key_by_hash(hashed)
    if key is None or not hmac.compare_digest(key.hash, hashed):
        return None
    return key if key.works_at(now) else None


def recheck(engine: Engine, key_id: str, now: datetime) -> ApiKey | None:
    """The key with this id, if it is valid now; for connections that were opened with it before."""
    found = engine.store.list_keys([key_id])
    return found[0] if found and found[0].works_at(now) else None


def caller_of(engine: Engine, key: ApiKey) -> Caller:
    """The caller that a key stands for. A domain it is limited to may have been merged or split since: then
    it has access to those that replaced it, and to what was split off since the key was made."""
    domains = _domains(engine, key)
    return Caller(
        name=key.label,
        permissions=frozenset(key.permissions),
        access=Access(scopes=scope_filter(key.scopes), domains=domains),
    )


def _domains(engine: Engine, key: ApiKey) -> tuple[str, ...] | None:
    return None if key.domains is None else covered(engine.store, key.domains, key.created_at)


def revoke(call: Call, which: str) -> ApiKey:
    """Revoke a key; returns it as it is then."""
    return call.engine.store.revoke_key(_find_key(call, which).id, call.engine.now())


def rotate(call: Call, which: str) -> tuple[ApiKey, ApiKey, str]:
    """Replace a key by a new one with the same rights and lifetime: the old key, the new key, its text."""
    engine, old = call.engine, _find_key(call, which)
    now, text = engine.now(), key_text(engine.entropy(RANDOM_BYTES))
    key = replace(
        old,
        id=engine.new_id(),
        hash=hash_of(text),
        created_at=now,
        domains=_domains(engine, old),
        expires_at=None if old.expires_at is None else expiry_after(now, old.expires_at - old.created_at),
        last_used=None,
    )
    engine.store.put_key(key, replacing=old.id)
    return old, key, text


def note_used(engine: Engine, used: Mapping[str, datetime]) -> None:
    """Write down when keys were last used, by id, if the store can be written."""
    if used and not engine.store.read_only:
        engine.store.note_keys_used(used)


def expiry_after(now: datetime, lifetime: timedelta) -> datetime:
    """The end of a lifetime that begins now, at the latest the end of the calendar."""
    return now + min(lifetime, END_OF_TIME - now)


def _find_key(call: Call, which: str) -> ApiKey:
    """The key with this id, with a hash that begins so, or the only unrevoked one with this label."""
    keys, asked = call.engine.store.list_keys(), which.strip()
    found = [key for key in keys if key.id == asked]
    if not found and len(asked) >= SHOWN_HASH_CHARS:
        found = [key for key in keys if key.hash.startswith(asked.lower())]
    if not found:
        found = [key for key in keys if key.label == asked and key.revoked_at is None]
    if not found:
        hint = "Give an id, a hash or a label from `keys` with action `list`."
        raise NotFound("There is no such key.", hint=hint, details={"argument": "key"})
    if len(found) > 1:
        raise Conflict(
            f"{len(found)} keys match.",
            hint="Name one by its id.",
            details={"ids": [key.id for key in found]},
        )
    return found[0]

"""API keys for network clients: `keys`."""

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from vestige.core.api_key import MAX_FILTERS, ApiKey
from vestige.core.caller import PERMISSIONS
from vestige.core.errors import InvalidInput
from vestige.core.models import scope_filter, utc
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import resolved
from vestige.operations.registry.arguments import Arguments, DomainNames, Names, Scope, Wire, moment_of
from vestige.operations.registry.registry import registry
from vestige.operations.shared.secrets import cleaned
from vestige.operations.shared.text import count, day, styled, table

EXAMPLE_KEY = "0189e1e1-0000-7000-8000-0000000000e1"
DEFAULT_PERMISSIONS = ("read", "write")

_LIFE = re.compile(r"(\d{1,5}) ?([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}

Which = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Id of the key, the first 12 characters of its hash, or its label.",
    ),
]


def _no_permissions(given: Any) -> Any:
    """Reject permissions that are given as scopes, a word other systems use for them: the key would get the
    default permissions."""
    for one in [given] if isinstance(given, str) else given if isinstance(given, list) else ():
        words = [word.strip().lower() for word in str(one).split(",")]
        if all(word in PERMISSIONS for word in words):
            cause = InvalidInput(
                hint=f"Give it as a permission: `--permissions {words[0]}`, in JSON "
                f'{{"permissions": ["{words[0]}"]}}. A scope of that name is written /{words[0]}.'
            )
            raise ValueError(f"“{one}” is a permission, not a scope") from cause
    return given


class CreateKeyArguments(Arguments):
    """Label, permissions, filters and expiry of a new key."""

    label: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Name of the user or client it is for. Default: key-1, key-2 …",
    )
    # In the annotation, because only there does a lower limit replace that of `Names`.
    permissions: Annotated[
        Names,
        Field(
            description="read, write, admin; each includes those before it. Default: read and write.",
            max_length=3,
        ),
    ] = list(DEFAULT_PERMISSIONS)
    scopes: Annotated[list[Scope] | None, BeforeValidator(_no_permissions)] = Field(
        None, description="Only these scopes and scopes below them.", max_length=MAX_FILTERS
    )
    domains: DomainNames | None = Field(None, description="Only memories of these domains.")
    expires: str | None = Field(None, max_length=50, description="Expiry: 12h, 30d, 8w, or a date or time.")


class KeyView(Wire):
    """A key without its text, which is not stored."""

    id: str
    label: str
    hash: str
    status: Literal["active", "expired", "revoked"]
    permissions: list[str]
    scopes: list[str] | None = None
    domains: list[str] | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used: datetime | None = None
    revoked_at: datetime | None = None


class KeyMade(KeyView):
    """A new key. `key` is shown only once."""

    key: str
    replaces: str | None = None
    message: str


class KeyRevoked(KeyView):
    """A revoked key."""

    message: str


class KeysView(Wire):
    """The keys, oldest first. `hidden` counts revoked and expired ones."""

    keys: list[KeyView]
    hidden: int | None = None


def render_made(made: KeyMade) -> str:
    """The key on its own line, then its permissions and how to use it."""
    return f"{styled('strong', made.key)}\n\n{_access_text(made)}\nLabel: {made.label}\n{made.message}"


def render_keys(answer: KeysView) -> str:
    hidden = (
        (f"\n\n--all also shows {count(answer.hidden, 'revoked or expired key')}.") if answer.hidden else ""
    )
    if not answer.keys:
        return f"No keys.{hidden}"
    # The short hash identifies the key; the id is in the JSON.
    heads = ("hash", "label", "may", "scopes", "domains", "last used", "expires", "status")
    return table(heads, (_cells(key) for key in answer.keys)) + hidden


@registry.operation(
    "keys.create",
    permission="admin",
    positional=(),
    example={
        "label": "Ada's laptop",
        "permissions": ["read"],
        "scopes": ["/project/vestige"],
        "expires": "30d",
    },
    render=render_made,
)
def create_key(call: Call, wanted: CreateKeyArguments) -> KeyMade:
    """Create an API key for a network client. It is shown only once and not stored.

    It may `read` and `write` unless `permissions` is given. With `scopes` or `domains`, all other memories
    are invisible to it. A label belongs to one active key; `keys rotate` replaces it.
    """
    wanted = cleaned(call, wanted, ("label", "scopes", "domains"), None)
    label = keys.free_label(call) if wanted.label is None else wanted.label
    keys.require_free_label(call, label)
    made, text = keys.mint(
        call,
        label,
        wanted.permissions,
        scopes=wanted.scopes,
        domains=None if wanted.domains is None else resolved(call.engine.store, wanted.domains, call.access),
        expires_at=None if wanted.expires is None else _expiry(call.local_now(), wanted.expires),
    )
    return KeyMade.of(made, key=text, replaces=None, message=_KEEP_IT, **_key_fields(made, made.created_at))


@registry.operation("keys.list", permission="admin", effect="none", example={}, render=render_keys)
def list_keys(
    call: Call, all: Annotated[bool, Field(description="Also list revoked and expired keys.")] = False
) -> KeysView:
    """List active keys with their permissions and last use."""
    now, known = call.engine.now(), call.engine.store.list_keys()
    shown = [key for key in known if all or key.works_at(now)]
    return KeysView(
        keys=[KeyView.of(key, **_key_fields(key, now)) for key in shown],
        hidden=len(known) - len(shown) or None,
    )


@registry.operation("keys.revoke", permission="admin", example={"id": EXAMPLE_KEY})
def revoke_key(call: Call, id: Which) -> KeyRevoked:
    """Revoke a key at once. This cannot be undone; create a new key instead."""
    revoked = keys.revoke(call, id)
    return KeyRevoked.of(
        revoked,
        message=f"The key “{revoked.label}” ({revoked.shown_hash}) is revoked.",
        **_key_fields(revoked, call.engine.now()),
    )


@registry.operation("keys.rotate", permission="admin", example={"id": EXAMPLE_KEY}, render=render_made)
def rotate_key(call: Call, id: Which) -> KeyMade:
    """Replace a key by a new one with the same label, permissions and filters; the old one is revoked at
    once.

    An expiring key gets the same lifetime again.
    """
    old, made, text = keys.rotate(call, id)
    message = f"{_KEEP_IT} The key {old.shown_hash} was revoked."
    return KeyMade.of(made, key=text, replaces=old.id, message=message, **_key_fields(made, made.created_at))


_KEEP_IT = "Save it now: it is not shown again. Send it as `Authorization: Bearer` or `X-API-Key`."


def _expiry(now: datetime, text: str) -> datetime:
    found = _LIFE.fullmatch(text.strip().lower())
    if found:
        return keys.expiry_after(utc(now), timedelta(**{_UNITS[found[2]]: int(found[1])}))
    try:
        return moment_of(text, now, end=True, coming=True)
    except ValueError as exc:
        raise InvalidInput(
            "`expires` is neither a duration nor a time.",
            hint="Give a value such as 12h, 30d, 8w, 2027-01-01 or 2027-01-01T08:00:00Z.",
            details={"argument": "expires"},
        ) from exc


def _key_fields(key: ApiKey, now: datetime) -> dict[str, Any]:  # fields of KeyView, which checks them
    return {
        "hash": key.shown_hash,
        "status": "revoked" if key.revoked_at else "active" if key.works_at(now) else "expired",
        "scopes": scope_filter(key.scopes),
    }


_VERBS = {"read": "read", "write": "write", "admin": "administer"}


def _access_text(key: KeyView) -> str:
    """The permissions and filters of a key in a sentence."""
    *verbs, last = (_VERBS[one] for one in key.permissions)
    may = f"{', '.join(verbs)} and {last}" if verbs else last
    where = "everywhere" if key.scopes is None else f"in {', '.join(key.scopes)} and below"
    parts = [f"It may {may} {where}"]
    if key.domains:
        parts.append(f"in the domain{'s' if len(key.domains) > 1 else ''} {', '.join(key.domains)}")
    if key.expires_at:
        parts.append(f"until {day(key.expires_at)}")
    return f"{', '.join(parts)}."


def _cells(key: KeyView) -> tuple[object, ...]:
    filters = [", ".join(one) if one else "all" for one in (key.scopes, key.domains)]
    may = key.permissions[-1]
    return (
        styled("id", key.hash),
        key.label,
        may,
        *filters,
        day(key.last_used),
        day(key.expires_at),
        key.status,
    )

"""Credentials of requests, and the identities that they stand for."""

import hmac
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

import anyio
from starlette.requests import HTTPConnection

from vestige.core.api_key import ApiKey, looks_like_a_key
from vestige.core.caller import PERMISSIONS, Caller
from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care import keys
from vestige.engine.context import Engine
from vestige.transports.http.auth.cookies import COOKIE, Login, Logins
from vestige.transports.http.context import ServerContext, run_in_thread

logger = logging.getLogger(__name__)

Kind = Literal["bearer", "api-key", "cookie", "ticket"]
Via = Literal["bearer", "api-key", "cookie", "ticket", "open", "token"]

ANYONE = Caller(name="anyone", permissions=frozenset(PERMISSIONS))
"""The caller of every request where authentication is off."""
TOKEN_HOLDER = Caller(name="VESTIGE_AUTH_TOKEN", permissions=frozenset({"read", "write"}))
CLOCKS_APART = timedelta(hours=1)
"""How much the clocks of two servers may differ. A login that was ended early is remembered for this long
after its expiry: a server whose clock is behind would otherwise accept its cookie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A credential of a request. An empty text is one that could not be read, and is never valid."""

    kind: Kind
    text: str

    @property
    def is_guessable(self) -> bool:
        """Whether a wrong one counts as a failed login. A mistyped key, a cookie or a ticket cannot be
        guessed and does not."""
        return self.kind not in ("cookie", "ticket") and not looks_like_a_key(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity behind a credential. `key_id` is empty where authentication is off."""

    caller: Caller
    via: Via
    key_id: str = ""
    login: Login | None = None


def credential_of(connection: HTTPConnection) -> Credential | None:
    """The credential of a request: the first kind that is present decides, valid or not."""
    bearer = connection.headers.getlist("authorization")
    if bearer:
        scheme, _, text = bearer[0].partition(" ")
        readable = len(bearer) == 1 and scheme.lower() == "bearer"
        return Credential(kind="bearer", text=text.strip() if readable else "")
    plain = connection.headers.getlist("x-api-key")
    if plain:
        return Credential(kind="api-key", text=plain[0].strip() if len(plain) == 1 else "")
    cookie = connection.cookies.get(COOKIE)
    return Credential(kind="cookie", text=cookie) if cookie is not None else None


class IdentityLookup:
    """Looks up the identity of a credential. It reads the store, so it runs in a thread."""

    def __init__(self, engine: Engine, logins: Logins, token: str) -> None:
        self._engine, self._logins, self._token = engine, logins, token.encode()
        # Another token is another identity: logins with the old one end.
        self._token_id = f"token-{logins.mark(token)}" if token else ""

    def of(self, credential: Credential) -> Identity | None:
        now = self._engine.now()
        if credential.kind == "cookie":
            return self._logged_in(credential.text, now)
        if credential.kind == "ticket":
            return self._redeemed(credential.text, now)
        if self._token and hmac.compare_digest(credential.text.encode(), self._token):
            return self._token_holder()
        key = keys.verify(self._engine, credential.text, now)
        return _holder_of(self._engine, key, credential.kind) if key else None

    def still(self, identity: Identity) -> bool:
        now = self._engine.now()
        if identity.login is not None:
            return self._logged_in(identity.login.text, now) is not None
        return not self.is_key(identity) or keys.recheck(self._engine, identity.key_id, now) is not None

    def end(self, login: Login) -> None:
        """End a login on every server of the store; StoreError if that cannot be written."""
        store = self._engine.store
        if not store.login_ended(login.id):  # a copy of the cookie must not cause a write for each request
            store.end_login(login.id, login.ends, forgetting=self._engine.now() - CLOCKS_APART)

    def is_key(self, identity: Identity) -> bool:
        """Whether the identity has a key of the store."""
        return identity.key_id not in ("", self._token_id)

    def _logged_in(self, text: str, now: datetime) -> Identity | None:
        login, store = self._logins.read(text, now), self._engine.store
        if login is None or self._logins.ended_here(login):
            return None
        if self._token_id and login.key_id == self._token_id:
            ended = store.login_ended(login.id)
            return None if ended else replace(self._token_holder(), via="cookie", login=login)
        key = store.key_of_login(login.key_id, login.id)
        return _holder_of(self._engine, key, "cookie", login) if key and key.works_at(now) else None

    def _redeemed(self, text: str, now: datetime) -> Identity | None:
        """The identity of a ticket, which is used up by this."""
        ticket = self._logins.read_ticket(text, now)
        if ticket is None:
            return None
        store = self._engine.store
        key = store.key_of_login(ticket.key_id, ticket.id)
        if key is None or not key.works_at(now):
            return None
        if not store.end_login(ticket.id, ticket.ends, forgetting=now - CLOCKS_APART):
            return None  # another worker was faster
        return _holder_of(self._engine, key, "ticket")

    def _token_holder(self) -> Identity:
        return Identity(caller=TOKEN_HOLDER, via="token", key_id=self._token_id)


def _holder_of(engine: Engine, key: ApiKey, via: Kind, login: Login | None = None) -> Identity:
    return Identity(caller=keys.caller_of(engine, key), via=via, key_id=key.id, login=login)


# -- When keys were last used: written in batches, outside of requests

EVERY_SECONDS = 10.0


class KeyUsage:
    """Collects uses of keys; a task of the server writes them to the store. Used on the event loop only."""

    def __init__(self, context: ServerContext, *, every_seconds: float = EVERY_SECONDS) -> None:
        self._context, self._every = context, every_seconds
        self._used: dict[str, datetime] = {}

    def note(self, key_id: str, now: datetime) -> None:
        self._used[key_id] = now

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write the recorded uses at intervals while the block runs, and the rest at its end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_on)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.write()

    async def write(self) -> None:
        """Write the recorded uses. Those that could not be written are retried the next time."""
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await run_in_thread(self._context, keys.note_used, self._context.app.engine, used)
        except VestigeError as error:
            self._used = {**used, **self._used}
            logger.warning("Last-used times of keys could not be written: %s", error.message)

    async def _write_on(self) -> None:
        while True:
            await anyio.sleep(self._every)
            await self.write()

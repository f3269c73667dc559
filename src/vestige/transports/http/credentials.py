"""What a request shows to be let in, and whose it is."""

import hmac
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from starlette.requests import HTTPConnection

from vestige.callers import PERMISSIONS, Caller
from vestige.engine import keys
from vestige.engine.context import Engine
from vestige.keys import looks_like_a_key
from vestige.transports.http.cookies import COOKIE, Session, Sessions

Kind = Literal["bearer", "api-key", "cookie"]
Via = Literal["bearer", "api-key", "cookie", "open", "token"]

ANYONE = Caller(name="anyone", permissions=frozenset(PERMISSIONS))
"""Everybody, where no key is needed."""
TOKEN_HOLDER = Caller(name="VESTIGE_AUTH_TOKEN", permissions=frozenset({"read", "write"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What was shown. An empty text is one that cannot be read, and opens nothing."""

    kind: Kind
    text: str

    @property
    def guessed(self) -> bool:
        """Whether it could be an attempt to guess: nobody guesses a key of ours, or a signature."""
        return self.kind != "cookie" and not looks_like_a_key(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who that is. `key_id` is empty for anyone."""

    caller: Caller
    via: Via
    key_id: str = ""
    session: Session | None = None


def shown(connection: HTTPConnection) -> Credential | None:
    """The credential of a request: the first kind that is there decides, whatever it is worth."""
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


class Holders:
    """Finds out whose a credential is. Plain code that reads the store: it runs in a thread."""

    def __init__(self, engine: Engine, sessions: Sessions, token: str) -> None:
        self._engine, self._sessions, self._token = engine, sessions, token.encode()
        # Another token is another holder: sessions begun with the old one end with it.
        self._token_id = f"token-{sessions.mark(token)}" if token else ""

    def of(self, credential: Credential) -> Identity | None:
        """Who shows this, or None."""
        now = self._engine.now()
        if credential.kind == "cookie":
            session = self._sessions.read(credential.text, now)
            found = self._by_id(session.key_id, now) if session else None
            return replace(found, via="cookie", session=session) if found else None
        if self._token and hmac.compare_digest(credential.text.encode(), self._token):
            return self._token_holder()
        key = keys.verify(self._engine, credential.text, now)
        if key is None:
            return None
        return Identity(caller=keys.caller_of(key), via=credential.kind, key_id=key.id)

    def still(self, identity: Identity) -> bool:
        """Whether somebody who was let in would be let in now."""
        now, session = self._engine.now(), identity.session
        if identity.via == "open":
            return True
        if session is not None and self._sessions.read(session.text, now) is None:
            return False
        return self._by_id(identity.key_id, now) is not None

    def is_key(self, identity: Identity) -> bool:
        """Whether he came with a key of the store."""
        return identity.key_id not in ("", self._token_id)

    def _by_id(self, key_id: str, now: datetime) -> Identity | None:
        if self._token and key_id == self._token_id:
            return self._token_holder()
        key = keys.recheck(self._engine, key_id, now)
        return Identity(caller=keys.caller_of(key), via="bearer", key_id=key.id) if key else None

    def _token_holder(self) -> Identity:
        return Identity(caller=TOKEN_HOLDER, via="token", key_id=self._token_id)

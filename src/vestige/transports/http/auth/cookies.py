"""People who logged in: a signed cookie that points to a key, and its CSRF token.

The cookie holds no right of its own: the key it names is read again for each request, and with it whether the
login is over before its time.
"""

import binascii
import hmac
import logging
import os
import re
import stat
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from vestige.core.errors import ConfigError
from vestige.settings.settings import Settings

logger = logging.getLogger(__name__)

COOKIE = "vestige_session"
CSRF_HEADER = "X-CSRF-Token"
SECRET_NAME = "session_secret"
SECRET_BYTES = 64
ID_BYTES = 16
MAX_ENDED = 10_000
"""Logins that were ended here alone and are remembered; the first to expire are forgotten first."""
_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_TRIES, _TRY_SECONDS = 20, 0.05
"""How long another server that starts at the same time may take to write its secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Somebody who logged in, as his cookie says it."""

    id: str
    key_id: str
    began: datetime
    ends: datetime
    text: str


class Logins:
    """Makes and reads cookies."""

    def __init__(self, secret: bytes, *, hours: float, entropy: Callable[[int], bytes]) -> None:
        self._secret, self._life, self._entropy = secret, timedelta(hours=hours), entropy
        self._ended: dict[str, datetime] = {}

    def begin(self, key_id: str, now: datetime) -> Login:
        """A new login of whoever has this key."""
        login_id, began = _encoded(self._entropy(ID_BYTES)), now.replace(microsecond=0)
        ends = began + self._life
        claims = {"id": login_id, "key": key_id, "iat": int(began.timestamp()), "exp": int(ends.timestamp())}
        body = _encoded(orjson.dumps(claims))
        text = f"{body}.{self._signature(f'login:{body}')}"
        return Login(id=login_id, key_id=key_id, began=began, ends=ends, text=text)

    def read(self, text: str, now: datetime) -> Login | None:
        """The login of a cookie that is ours and has not expired. It may be over all the same."""
        body, _, signature = text.partition(".")
        if not _same(signature, self._signature(f"login:{body}")):
            return None
        login = _claimed(body, text)
        return login if login is not None and now < login.ends else None

    def end_here(self, login: Login, now: datetime) -> None:
        """Let a login be over before its time as far as this server is concerned, until it stops."""
        running = {login_id: ends for login_id, ends in self._ended.items() if ends > now}
        while len(running) >= MAX_ENDED:
            del running[min(running, key=running.__getitem__)]
        self._ended = {**running, login.id: login.ends}

    def ended_here(self, login: Login) -> bool:
        """Whether that was done."""
        return login.id in self._ended

    def csrf(self, login: Login) -> str:
        """What a page of ours sends along with changes; pages of others cannot know it."""
        return self._signature(f"csrf:{login.text}")

    def is_csrf(self, login: Login, given: str) -> bool:
        """Whether that is it."""
        return _same(given, self.csrf(login))

    def mark(self, text: str) -> str:
        """What tells a secret text from another, and tells nothing else about it."""
        return self._signature(f"mark:{text}")

    def _signature(self, text: str) -> str:
        return _encoded(hmac.digest(self._secret, _bytes(text), "sha256"))


def secret_of(settings: Settings, entropy: Callable[[int], bytes]) -> bytes:
    """What cookies are signed with: what is set, else what the data directory holds, else made there."""
    given = settings.auth.session_secret.get_secret_value()
    if given:
        return _given(given)
    file = settings.data_dir / SECRET_NAME
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(file, entropy(SECRET_BYTES))
        return _read(file)
    except OSError as exc:
        logger.warning("People have to log in again after a restart: %s: %s.", file, exc.strerror)
        return entropy(SECRET_BYTES)


def _given(text: str) -> bytes:
    try:
        secret = _decoded(text)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < SECRET_BYTES:
        raise ConfigError(
            f"The setting `auth.session_secret` is not {SECRET_BYTES} bytes or more in base64url.",
            hint="Leave it out to have one made, or: openssl rand -base64 64 | tr '+/' '-_' | tr -d '=\\n'",
            details={"setting": "auth.session_secret"},
        )
    return secret


def _write_new(file: Path, secret: bytes) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "wb") as written:
        written.write(secret)


def _read(file: Path) -> bytes:
    for _ in range(_TRIES):
        secret = file.read_bytes()
        if len(secret) >= SECRET_BYTES:
            break
        time.sleep(_TRY_SECONDS)
    else:
        raise ConfigError(f"{file} is too short for a secret.", hint="Delete it; a new one is made.")
    if os.name != "nt" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        logger.warning("Others than you may read %s, and could make up logins: chmod 600 it.", file)
    return secret


def _claimed(body: str, text: str) -> Login | None:
    """What a cookie says that we signed; None if it has another form, as those of earlier versions do."""
    try:
        claims = orjson.loads(_decoded(body))
        began, ends = (datetime.fromtimestamp(claims[name], UTC) for name in ("iat", "exp"))
        login_id, key_id = claims["id"], claims["key"]
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        return None
    if not (isinstance(login_id, str) and _ID.fullmatch(login_id) and isinstance(key_id, str)):
        return None
    return Login(id=login_id, key_id=key_id, began=began, ends=ends, text=text)


def _same(given: str, ours: str) -> bool:
    return hmac.compare_digest(_bytes(given), _bytes(ours))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # whatever a header holds, it is compared and does not fail


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))

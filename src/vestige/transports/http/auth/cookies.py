"""Login cookies: signed, each naming a key, with a CSRF token. The cookie grants nothing by itself. The key
that it names is read again for each request, and with it whether the login was ended early."""

import binascii
import hmac
import logging
import os
import re
import stat
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from vestige.core.errors import ConfigError
from vestige.core.lazy_dataclass import dataclass
from vestige.settings.settings import Settings

logger = logging.getLogger(__name__)

COOKIE = "vestige_session"
CSRF_HEADER = "X-CSRF-Token"
SECRET_NAME = "session_secret"
SECRET_BYTES = 64
ID_BYTES = 16
TICKET_LIFE = timedelta(seconds=60)
MAX_ENDED = 10_000
"""Logins ended on this server only that are remembered; the first to expire are dropped first."""
_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_TRIES, _TRY_SECONDS = 20, 0.05
"""How long another server that starts at the same time may take to write the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A login, as its cookie states it."""

    id: str
    key_id: str
    began: datetime
    ends: datetime
    text: str


class Logins:
    """Creates and verifies login cookies."""

    def __init__(self, secret: bytes, *, hours: float, entropy: Callable[[int], bytes]) -> None:
        self._secret, self._life, self._entropy = secret, timedelta(hours=hours), entropy
        self._ended: dict[str, datetime] = {}

    def begin(self, key_id: str, now: datetime) -> Login:
        return self._issue("login", key_id, now, self._life)

    def read(self, text: str, now: datetime) -> Login | None:
        """The login of a cookie with a valid signature that has not expired. It may have been ended early."""
        return self._read("login", text, now)

    def ticket(self, key_id: str, now: datetime) -> Login:
        """A ticket: the right to log in once, within a minute. It is no cookie, and a cookie is no ticket
        (ADR 0060)."""
        return self._issue("ticket", key_id, now, TICKET_LIFE)

    def read_ticket(self, text: str, now: datetime) -> Login | None:
        """A ticket with a valid signature that has not expired. It may have been used."""
        return self._read("ticket", text, now)

    def _issue(self, kind: str, key_id: str, now: datetime, life: timedelta) -> Login:
        login_id, began = _encoded(self._entropy(ID_BYTES)), now.replace(microsecond=0)
        ends = began + life
        claims = {"id": login_id, "key": key_id, "iat": int(began.timestamp()), "exp": int(ends.timestamp())}
        body = _encoded(orjson.dumps(claims))
        text = f"{body}.{self._signature(f'{kind}:{body}')}"
        return Login(id=login_id, key_id=key_id, began=began, ends=ends, text=text)

    def _read(self, kind: str, text: str, now: datetime) -> Login | None:
        body, _, signature = text.partition(".")
        if not _same(signature, self._signature(f"{kind}:{body}")):
            return None
        login = _claimed(body, text)
        return login if login is not None and now < login.ends else None

    def end_here(self, login: Login, now: datetime) -> None:
        """End a login early, on this server only and until it stops."""
        running = {login_id: ends for login_id, ends in self._ended.items() if ends > now}
        while len(running) >= MAX_ENDED:
            del running[min(running, key=running.__getitem__)]
        self._ended = {**running, login.id: login.ends}

    def ended_here(self, login: Login) -> bool:
        return login.id in self._ended

    def csrf(self, login: Login) -> str:
        """The CSRF token of a login. Our pages send it with changes; pages of other sites cannot know it."""
        return self._signature(f"csrf:{login.text}")

    def is_csrf(self, login: Login, given: str) -> bool:
        return _same(given, self.csrf(login))

    def mark(self, text: str) -> str:
        """A keyed digest that identifies a secret text without revealing it."""
        return self._signature(f"mark:{text}")

    def _signature(self, text: str) -> str:
        return _encoded(hmac.digest(self._secret, _bytes(text), "sha256"))


def secret_of(settings: Settings, entropy: Callable[[int], bytes]) -> bytes:
    """The secret that signs cookies: from the settings, else from the data directory, where it is created if
    missing."""
    given = settings.auth.session_secret.get_secret_value()
    if given:
        return _given(given)
    file = settings.data_dir / SECRET_NAME
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_new(file, entropy(SECRET_BYTES))
        return _read(file)
    except OSError as exc:
        logger.warning(
            "The session secret cannot be stored, so users have to log in again after a restart: %s: %s.",
            file,
            exc.strerror,
        )
        return entropy(SECRET_BYTES)


def _given(text: str) -> bytes:
    try:
        secret = _decoded(text)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < SECRET_BYTES:
        raise ConfigError(
            f"The setting `auth.session_secret` must have at least {SECRET_BYTES} bytes in base64url.",
            hint="Leave it out, or use: openssl rand -base64 64 | tr '+/' '-_' | tr -d '=\\n'",
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
        raise ConfigError(f"{file} is too short for a secret.", hint="Delete it; a new one is generated.")
    if os.name != "nt" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        logger.warning("Other users can read %s and could forge logins: chmod 600 it.", file)
    return secret


def _claimed(body: str, text: str) -> Login | None:
    """The login in the text of a signed cookie; None for another format, such as that of earlier versions."""
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
    return text.encode("utf-8", "surrogatepass")  # any header value must compare without an error


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))

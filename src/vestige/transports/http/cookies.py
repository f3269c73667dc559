"""Sessions of people who logged in: a signed cookie that points to a key, and its CSRF token.

The cookie holds no right of its own: the key it names is read again for each request.
"""

import binascii
import hmac
import logging
import os
import stat
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from vestige.errors import ConfigError
from vestige.settings import Settings

logger = logging.getLogger(__name__)

COOKIE = "vestige_session"
CSRF_HEADER = "X-CSRF-Token"
SECRET_NAME = "session_secret"
SECRET_BYTES = 64
MAX_ENDED = 10_000
"""Sessions that were ended before their time and are remembered; the first to expire are forgotten first."""
_TRIES, _TRY_SECONDS = 20, 0.05
"""How long another server that starts at the same time may take to write its secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a cookie says."""

    key_id: str
    began: datetime
    ends: datetime
    text: str


class Sessions:
    """Makes and reads cookies."""

    def __init__(self, secret: bytes, *, hours: float) -> None:
        self._secret, self._life = secret, timedelta(hours=hours)
        self._ended: dict[str, datetime] = {}

    def begin(self, key_id: str, now: datetime) -> Session:
        """A new session for whoever has this key."""
        began = now.replace(microsecond=0)
        ends = began + self._life
        claims = {"key": key_id, "iat": int(began.timestamp()), "exp": int(ends.timestamp())}
        body = _encoded(orjson.dumps(claims))
        return Session(
            key_id=key_id, began=began, ends=ends, text=f"{body}.{self._signature(f'session:{body}')}"
        )

    def read(self, text: str, now: datetime) -> Session | None:
        """The session of a cookie that is ours, has not expired and was not ended."""
        body, _, signature = text.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(f"session:{body}").encode()):
            return None
        claims = orjson.loads(_decoded(body))  # we wrote it: the signature is right, and of no other purpose
        began, ends = (datetime.fromtimestamp(claims[name], UTC) for name in ("iat", "exp"))
        if now >= ends or text in self._ended:
            return None
        return Session(key_id=claims["key"], began=began, ends=ends, text=text)

    def end(self, session: Session, now: datetime) -> None:
        """Let a session be over before its time, as far as this server is concerned."""
        running = {text: ends for text, ends in self._ended.items() if ends > now}
        while len(running) >= MAX_ENDED:
            del running[min(running, key=running.__getitem__)]
        self._ended = {**running, session.text: session.ends}

    def csrf(self, session: Session) -> str:
        """What a page of ours sends along with changes; pages of others cannot know it."""
        return self._signature(f"csrf:{session.text}")

    def is_csrf(self, session: Session, given: str) -> bool:
        """Whether that is it."""
        return hmac.compare_digest(given.encode(), self.csrf(session).encode())

    def mark(self, text: str) -> str:
        """What tells a secret text from another, and tells nothing else about it."""
        return self._signature(f"mark:{text}")

    def _signature(self, text: str) -> str:
        return _encoded(hmac.digest(self._secret, text.encode(), "sha256"))


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
        logger.warning("Others than you may read %s, and could make up sessions: chmod 600 it.", file)
    return secret


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))

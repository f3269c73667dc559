"""The address of a store: a server's URL and a schema in its database. It is shown without the password."""

import re
from dataclasses import field

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from vestige.core.errors import ConfigError, nearest_name
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import SCHEMA_NAMES, is_schema_name

SECRETS = ("password", "sslpassword", "passfile", "sslkey")
SHORTEST_WORD = 4
"""A shorter secret may be a part of any word: it is hidden only inside an address."""

Parts = dict[str, str | int | None]
UNKNOWN = re.compile(r'invalid URI query parameter: "(\w+)"')
WHOLE = re.compile(r"-?[0-9]+")
NUMBERS = (
    *("connect_timeout", "tcp_user_timeout"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
)
LAST_PORT = 65_535
LIMITS_TRANSACTIONS = 170_000
"""The first server with `transaction_timeout`."""
LOOKS = (
    "The address looks like postgresql://user:password@host:5432/database; special characters in the "
    "password are written %40 for @, %2F for / and so on."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """A server's URL, which may hold a password and is never shown, and the schema of a store there."""

    url: str = field(repr=False)
    schema: str = "vestige"
    extension_schema: str = "public"

    def __post_init__(self) -> None:
        if not is_schema_name(self.schema):
            raise ConfigError(f"{self.schema!r} cannot be the name of a schema.", hint=SCHEMA_NAMES)
        self._parts()

    def __str__(self) -> str:
        parts = self._parts()
        host = str(parts.get("host") or parts.get("hostaddr") or "local")
        host = f"[{host}]" if ":" in host else host
        port = f":{parts['port']}" if parts.get("port") else ""
        user = f"{parts['user']}@" if parts.get("user") else ""
        return f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}, schema {self.schema}"

    @property
    def options(self) -> frozenset[str]:
        """The names of the parameters in the URL."""
        return frozenset(self._parts())

    def settings(self, statement_seconds: float, server_version: int) -> str:
        """The settings of every session, in one trip."""
        names = dict.fromkeys((self.schema, self.extension_schema))
        path = ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)
        return (
            f"SET search_path TO {path}; SET timezone TO 'UTC';{limits(statement_seconds, server_version)}"
            # A machine that vanished (it sleeps, its network is gone) keeps its locks until this is noticed.
            " SET tcp_keepalives_idle TO 30; SET tcp_keepalives_interval TO 10;"
            " SET tcp_keepalives_count TO 3; SET tcp_user_timeout TO 30000;"
            " SET jit TO off"  # compiling takes longer than any of our statements
        )

    def without_secrets(self, text: str) -> str:
        """A text in which the password does not occur."""
        text = text.replace(self.url, str(self))
        secrets = (self._parts().get(name) for name in SECRETS)
        for secret in filter(None, secrets):
            text = _hidden(str(secret)).sub("***", text)
        return text

    def _parts(self) -> Parts:
        try:
            found = conninfo_to_dict(self.url)
        except ProgrammingError as exc:  # the driver's message quotes the URL
            refusal = _unreadable(self.url, str(exc))
        else:
            wrong = _wrong(found)
            if wrong is None:
                return found
            refusal = wrong
        raise refusal


def _unreadable(url: str, said: str) -> ConfigError:
    unknown = UNKNOWN.search(said)
    # After an unescaped `/` in a password, the rest of it may look like a parameter.
    if unknown is None or "@" in url.partition("?")[2]:
        return ConfigError("The address of the PostgreSQL server cannot be read.", hint=LOOKS)
    close = nearest_name(unknown[1], [option.keyword.decode() for option in Conninfo.get_defaults()])
    return ConfigError(
        f"The address of the PostgreSQL server has an unknown parameter `{unknown[1]}`.",
        hint=f"Did you mean `{close}`?" if close else "It takes those of libpq, such as sslmode for SSL.",
    )


def _wrong(parts: Parts) -> ConfigError | None:
    """The error in an address that can be parsed. An unescaped `/` or `@` in a password ends the password
    there, and the rest of it is taken for a host, a port or a database: so none is shown."""
    if any("@" in str(parts.get(name) or "") for name in ("host", "dbname")):
        return ConfigError("The address of the PostgreSQL server cannot be read.", hint=LOOKS)
    ports = filter(None, str(parts.get("port") or "").split(","))
    if not all(port.isdecimal() and 0 < int(port) <= LAST_PORT for port in ports):
        return ConfigError(
            "The `port` in the address of the PostgreSQL server cannot be read.",
            hint=f"It is a number from 1 to {LAST_PORT}. {LOOKS}",
        )
    for name in NUMBERS:
        if name in parts and not WHOLE.fullmatch(str(parts[name])):
            return ConfigError(
                f"The `{name}` in the address of the PostgreSQL server is not an integer.",
                hint="Give a number, or leave it out.",
            )
    return None


def _hidden(secret: str) -> re.Pattern[str]:
    """The pattern by which a secret is hidden."""
    as_it_is = re.escape(secret)
    if len(secret) >= SHORTEST_WORD:
        return re.compile(as_it_is)
    return re.compile(rf"(?<=:){as_it_is}(?=@)|(?<=password=){as_it_is}(?=[\s&]|$)")


def limits(statement_seconds: float, server_version: int) -> str:
    """Our time limits, which differ by the kind of work, in place of those that an administrator has set for
    the role or the database."""
    return (
        f" SET statement_timeout TO {round(1000 * statement_seconds)};"
        " SET lock_timeout TO 0; SET idle_in_transaction_session_timeout TO 600000;"
        + (" SET transaction_timeout TO 0;" if server_version >= LIMITS_TRANSACTIONS else "")
    )

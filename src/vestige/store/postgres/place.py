"""Where a store is: a server's URL and a schema in its database. People are told it without the password."""

import re
from contextlib import suppress
from dataclasses import dataclass, field

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from vestige.checks import SCHEMA_NAMES, is_schema_name
from vestige.errors import ConfigError

SECRETS = ("password", "sslpassword", "passfile", "sslkey")
SHORTEST_WORD = 4
"""A shorter secret may be a part of any word: it is hidden only where an address has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A server's URL, which may hold a password and is never shown, and the schema of a store there."""

    url: str = field(repr=False)
    schema: str = "vestige"
    extension_schema: str = "public"

    def __post_init__(self) -> None:
        if not is_schema_name(self.schema):
            raise ConfigError(f"{self.schema!r} cannot be the name of a schema.", hint=SCHEMA_NAMES)
        self._parts()

    def __str__(self) -> str:
        told = self._parts()
        host = str(told.get("host") or told.get("hostaddr") or "local")
        host = f"[{host}]" if ":" in host else host
        port = f":{told['port']}" if told.get("port") else ""
        return f"postgresql://{host}{port}/{told.get('dbname') or ''}, schema {self.schema}"

    @property
    def options(self) -> frozenset[str]:
        """The names of what the URL sets."""
        return frozenset(self._parts())

    def settings(self, statement_seconds: float) -> str:
        """What every session begins with, in one trip."""
        names = dict.fromkeys((self.schema, self.extension_schema))
        path = ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)
        return (
            f"SET search_path TO {path}; SET timezone TO 'UTC';"
            f" SET statement_timeout TO {round(1000 * statement_seconds)};"
            " SET idle_in_transaction_session_timeout TO 600000;"
            " SET jit TO off"  # compiling takes longer than any of our statements
        )

    def without_secrets(self, text: str) -> str:
        """A text in which the password does not occur."""
        text = text.replace(self.url, str(self))
        secrets = (self._parts().get(name) for name in SECRETS)
        for secret in filter(None, secrets):
            text = _hidden(str(secret)).sub("***", text)
        return text

    def _parts(self) -> dict[str, str | int | None]:
        with suppress(ProgrammingError):  # what the driver says quotes the URL
            found = conninfo_to_dict(self.url)
            if _is_meant(found):
                return found
        raise ConfigError(
            "The address of the PostgreSQL server cannot be read.",
            hint="It looks like postgresql://user:password@host:5432/database; special characters in the "
            "password are written %40 for @, %2F for / and so on.",
        )


def _is_meant(parts: dict[str, str | int | None]) -> bool:
    """Whether an address was written as one: a `/` or `@` in a password that is written as it is ends the
    password there, and the rest of it is taken for a host, a port or a database."""
    ports = str(parts.get("port") or "").split(",")
    return all(not port or port.isdigit() for port in ports) and not any(
        "@" in str(parts.get(name) or "") for name in ("host", "dbname")
    )


def _hidden(secret: str) -> re.Pattern[str]:
    """Where a secret is not to be shown."""
    as_it_is = re.escape(secret)
    if len(secret) >= SHORTEST_WORD:
        return re.compile(as_it_is)
    return re.compile(rf"(?<=:){as_it_is}(?=@)|(?<=password=){as_it_is}(?=[\s&]|$)")

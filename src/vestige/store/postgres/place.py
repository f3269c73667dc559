"""Where a store is: a server's URL and a schema in its database. People are told it without the password."""

import re
from contextlib import suppress
from dataclasses import dataclass, field

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from vestige.errors import ConfigError

SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
SECRETS = ("password", "sslpassword", "passfile", "sslkey")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A server's URL, which may hold a password and is never shown, and the schema of a store there."""

    url: str = field(repr=False)
    schema: str = "vestige"
    extension_schema: str = "public"

    def __post_init__(self) -> None:
        if not SCHEMA_NAME.fullmatch(self.schema):
            raise ConfigError(
                f"{self.schema!r} cannot be the name of a schema.",
                hint="storage.postgres.schema takes small letters, digits and _, and begins with a letter.",
            )
        self._parts()

    def __str__(self) -> str:
        told = self._parts()
        host = told.get("host") or told.get("hostaddr") or "local"
        port = f":{told['port']}" if told.get("port") else ""
        return f"postgresql://{host}{port}/{told.get('dbname') or ''} ({self.schema})"

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
            text = text.replace(str(secret), "***")
        return text

    def _parts(self) -> dict[str, str | int | None]:
        with suppress(ProgrammingError):  # what the driver says quotes the URL
            return conninfo_to_dict(self.url)
        raise ConfigError(
            "The address of the PostgreSQL server cannot be read.",
            hint="It looks like postgresql://user:password@host:5432/database; special characters in the "
            "password are written %40 for @ and so on.",
        )

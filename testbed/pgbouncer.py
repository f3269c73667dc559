"""A real pgbouncer for tests, from the packages of the system (`testbed.packages`)."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, quote, urlsplit

from testbed.packages import run, unpack
from testbed.patience import PATIENCE_SECONDS
from testbed.postgres_server import Account

NOT_TESTED = "PGBOUNCER IS NOT TESTED: there is none here, and apt-get cannot download one"

Mode = Literal["session", "transaction"]

_PACKAGES = ("pgbouncer", "libc-ares2", "libcares2", "libevent-2.1-7", "libevent-2.1-7t64")
"""Libraries have other names in other releases of Debian."""
_UNPACKED = Path(sys.prefix) / "pgbouncer"
_SETTINGS = """
[databases]
* = host={host} port={port} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = {mode}
default_pool_size = 20
logfile = {folder}/log
"""


@cache
def program() -> Path | None:
    """The path of pgbouncer; None if there is none and none can be downloaded."""
    installed = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if installed:
        return Path(installed)
    file = _UNPACKED / "usr" / "sbin" / "pgbouncer"
    if not file.exists():
        unpack(_PACKAGES, _UNPACKED)
    works = file.exists() and run(str(file), "--version", environ=_environment(_UNPACKED))
    return file if works else None


@contextmanager
def running(database_url: str, mode: Mode) -> Iterator[str]:
    """The URL of a database through a pgbouncer that runs for as long as the block does."""
    found = program()
    assert found is not None
    server = urlsplit(database_url)
    at = parse_qs(server.query)
    account = Account.fitting()
    folder = Path(tempfile.mkdtemp(prefix="vestige-pgb-", dir="/tmp"))
    try:
        # Like PostgreSQL it refuses root, and nobody may not be able to enter the folder of the project.
        root = folder / "root"
        if _UNPACKED in found.parents:
            shutil.copytree(_UNPACKED, root, symlinks=True)
            found = root / found.relative_to(_UNPACKED)
        text = _SETTINGS.format(host=at["host"][0], port=at["port"][0], folder=folder, mode=mode)
        (folder / "pgbouncer.ini").write_text(text, encoding="ascii")
        if account.user is not None and account.group is not None:
            os.chown(folder, account.user, account.group)
        with subprocess.Popen(
            [found, folder / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(root),
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=account.groups,
        ) as process:
            try:
                _wait(process, folder)
                yield f"postgresql://postgres@{server.path}?host={quote(str(folder), safe='')}&port=6432"
            finally:
                process.kill()
    finally:
        shutil.rmtree(folder)


def _environment(root: Path) -> dict[str, str]:
    """The environment in which it finds its libraries."""
    folders = {str(path.parent) for path in root.rglob("*.so.*")}
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(folders))}


def _wait(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    latest = time.monotonic() + PATIENCE_SECONDS
    while not (folder / ".s.PGSQL.6432").exists():
        assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
        assert time.monotonic() < latest
        time.sleep(0.01)

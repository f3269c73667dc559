"""A real nginx for tests, from the packages of the system (`testbed.packages`)."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from testbed.packages import run, unpack
from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT

SITE = PROJECT / "deploy" / "nginx" / "vestige.conf"
"""The configuration that users copy."""
NOT_TESTED = "THE NGINX CONFIGURATION IS NOT TESTED: there is no nginx here, and apt-get cannot download one"

_PACKAGES = ("nginx", "nginx-light")  # which of them has the program depends on the release of Debian
_UNPACKED = Path(sys.prefix) / "nginx"
_MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@cache
def program() -> str | None:
    """The path of nginx; None if there is none and none can be downloaded."""
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    return found or _unpacked() or _downloaded()


def _unpacked() -> str | None:
    file = _UNPACKED / "usr" / "sbin" / "nginx"
    return str(file) if file.exists() and run(str(file), "-v") else None


def _downloaded() -> str | None:
    unpack(_PACKAGES, _UNPACKED)
    return _unpacked()


def site(changes: Mapping[str, str]) -> str:
    """The text of `SITE` with these parts replaced. Each must be there."""
    text = SITE.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def check(text: str, folder: Path) -> str:
    """Have nginx read the configuration of a site; what it says of it."""
    done = subprocess.run(_command(text, folder, "-t"), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@contextmanager
def running(text: str, folder: Path, address: tuple[str, int]) -> Iterator[None]:
    """nginx with the configuration of a site that listens on this address, for as long as the block runs."""
    with subprocess.Popen(_command(text, folder), stderr=subprocess.DEVNULL) as process:
        try:
            _wait(process, address, folder)
            yield
        finally:
            process.kill()


def _command(text: str, folder: Path, *options: str) -> list[str]:
    found = program()
    assert found is not None
    (folder / "site.conf").write_text(text, encoding="utf-8")
    # Without rights to change its user, nginx runs as the one that started it; root would become "nobody".
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(user + _MAIN.format(folder=folder), encoding="utf-8")
    log = str(folder / "error.log")
    return [found, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", log, *options]


def _wait(process: "subprocess.Popen[bytes]", address: tuple[str, int], folder: Path) -> None:
    latest = time.monotonic() + PATIENCE_SECONDS
    while True:
        with suppress(OSError), socket.create_connection(address):
            return
        assert process.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
        assert time.monotonic() < latest

"""A client on another machine: with a key it works, without one it gets nothing, and nothing is open.

Each machine is a network namespace of its own, with a cable between them. Where that is not allowed, the
other machine is another loopback address.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from testbed.second_client import ERAS, ROUTES
from tests.transports.http.support.harness import Running, environment, key_in, serving

pytestmark = [
    pytest.mark.slow,  # starts processes
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

SERVER, CLIENT = "198.18.0.1", "198.18.0.2"  # of a network that is for tests, RFC 2544
STAYS = ("sh", "-c", "ip link set lo up && echo up && read _")
"""Keeps a namespace until its input ends."""
LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp."""
LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """How to start a program on the server's machine and on the client's, and where that finds the server."""

    server: Sequence[str] = ()
    client: Sequence[str] = ()
    address: str = "127.0.0.2"

    def use(self, server: Running, key: str = "") -> dict[str, Any]:
        """What came of it when the other machine used a server."""
        url = f"http://{self.address}:{urlsplit(server.url).port}"
        done = subprocess.run(
            [*self.client, sys.executable, "-m", "testbed.second_client", url, key],
            capture_output=True,
            encoding="utf-8",
            cwd=PROJECT,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outcome: dict[str, Any] = json.loads(done.stdout)
        return outcome


@contextmanager
def namespace(*words: str) -> Iterator[tuple[int, list[str]]]:
    """A process that keeps a namespace, and the words that start another program there."""
    command = [*words, *STAYS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "up\n":
            raise OSError("namespaces are not allowed here")
        inside = ["nsenter", "--target", str(keeper.pid), "--user", "--net", "--preserve-credentials"]
        yield keeper.pid, inside  # and the end of its input ends it


def connect(here: Sequence[str], there: Sequence[str], pid: int) -> None:
    """Lay a cable between two namespaces; `pid` is a process there."""
    commands: list[list[str]] = [
        [*here, "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(pid)]
    ]
    for inside, address in ((here, SERVER), (there, CLIENT)):
        commands.append([*inside, "ip", "address", "add", f"{address}/30", "dev", "cable"])
        commands.append([*inside, "ip", "link", "set", "cable", "up"])
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with ExitStack() as stack:
        try:
            _, server = stack.enter_context(namespace("unshare", "--map-root-user", "--net"))
            pid, client = stack.enter_context(namespace(*server, "unshare", "--net"))
            connect(server, client, pid)
        except (OSError, subprocess.CalledProcessError):
            stack.close()
            yield Machines()
        else:
            yield Machines(server=server, client=client, address=SERVER)


@pytest.fixture(scope="module")
def server(machines: Machines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One that listens everywhere, and needs a key."""
    with serving(tmp_path_factory.mktemp("server"), bind="0.0.0.0:0", within=machines.server) as started:
        yield started


def test_with_a_key_the_other_machine_works(machines: Machines, server: Running) -> None:
    assert machines.use(server, key_in(server.stderr.parent)) == {
        "open": True,
        "found": "The other machine keeps bees.",
        "agents": dict.fromkeys(ERAS, "The other machine keeps bees."),
        "heard": "Connected",
    }


def test_without_one_it_learns_that_the_server_lives_and_nothing_else(
    machines: Machines, server: Running
) -> None:
    refused = {f"{method} {path}": 401 for method, path in ROUTES} | {"/ws": 401, "GET /health": 200}
    assert machines.use(server) == {"open": True, "without": refused, "wrong": [401] * 3}


def test_an_open_server_is_closed_to_the_other_machine(machines: Machines, tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth", within=machines.server) as server:
        assert machines.use(server) == {"open": False}


def listening_sockets(pid: int) -> set[str]:
    """The addresses, as the kernel writes them, at which a process listens now."""
    try:
        files = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
        tables = [Path(f"/proc/{pid}/net/{name}").read_text("ascii") for name in ("tcp", "tcp6")]
    except OSError:  # it has ended, or closed a file while it was looked at
        return set()
    own = set(re.findall(r"socket:\[(\d+)\]", " ".join(files)))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return {row[1] for row in rows if row[3] == LISTENS and row[9] in own}


def seen_until_it_ended(process: "subprocess.Popen[str]") -> set[str]:
    """Where a process listened at any time that it was looked at, which is all the time."""
    seen: set[str] = set()
    while True:
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            seen |= listening_sockets(process.pid)
        else:
            return seen


def test_no_socket_is_open_where_everybody_could_come_in(machines: Machines, tmp_path: Path) -> None:
    command = [*machines.server, sys.executable, "-m", "vestige", "serve", "--no-auth", "--bind", "0.0.0.0:0"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(tmp_path)
    ) as process:
        assert seen_until_it_ended(process) == set()
        assert process.stderr is not None
        assert "refusing to bind 0.0.0.0:0" in process.stderr.read()
    assert process.returncode == 2


def test_a_socket_that_is_open_would_be_seen(server: Running) -> None:
    assert listening_sockets(server.process.pid) == {f"00000000:{urlsplit(server.url).port:04X}"}

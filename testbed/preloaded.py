"""The command `vestige` from a process that has everything imported and forks a child for each command.

A command then costs milliseconds instead of most of a second. It is a process of its own with its arguments,
environment, folder and streams, as the real one; what it does not show is that the installed program starts,
which other tests do. This file is both sides: the server, and the client that stands for the program. The
client runs without `site`, so that it starts fast, and imports nothing but the standard library.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

_MOST_BYTES = 1 << 18
_READY = b"ready\n"
_CLIENT = """#!/bin/sh
exec "{python}" -I -S "{file}" "{address}" "$@"
"""


@contextmanager
def preloaded_commands(folder: Path) -> Iterator[Path]:
    """A folder for the front of PATH, with a `vestige` that is forked, until the end of the block."""
    address, programs = folder / "socket", folder / "bin"
    programs.mkdir()
    program = programs / "vestige"
    program.write_text(
        _CLIENT.format(python=sys.executable, file=Path(__file__).resolve(), address=address),
        encoding="utf-8",
    )
    program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", "testbed.preloaded", str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[1],
        # A process that forks must have one thread only.
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"},
    )
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == _READY
        yield programs
        server.communicate()  # closing its input ends it


def serve(address: str) -> None:
    """Fork a child for each command that a client sends, until the standard input ends."""
    from vestige.settings.libraries import prepare_libraries

    prepare_libraries()
    from vestige.transports.cli.main import root_command

    root_command()
    import_module("vestige.app.app")  # and what commands import while they run
    import_module("vestige.store.sqlite.store")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for commands
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen(16)
        os.write(sys.stdout.fileno(), _READY)
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            client, _ = listening.accept()
            with client:
                if os.fork() == 0:
                    listening.close()
                    _attend(client)


def _attend(client: socket.socket) -> NoReturn:
    """Run one command in a child, and tell the client its process and then its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, _, _ = socket.recv_fds(client, _MOST_BYTES, 3)
    child = os.fork()
    if child == 0:
        client.close()
        _run(json.loads(data), streams)
    client.send(str(child).encode())
    _, status = os.waitpid(child, 0)
    client.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(asked: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be the command: what it was started with, then what it does."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["vestige", *asked["words"]]
    code = 1
    try:
        from vestige.__main__ import main

        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ask(address: str, words: list[str]) -> int:
    """Have a command run with the streams, folder and environment of this process; its exit code."""
    asked = {"words": words, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
        child = int(server.recv(64))

        def forward(number: int, frame: FrameType | None) -> None:
            os.kill(child, number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, forward)
        code = int(server.recv(64) or b"1")
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    if len(sys.argv) == 2 and __spec__ is not None:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))

"""Child processes: a Python module run in isolation, which ends when this process ends.

stdin and stdout belong to the MCP protocol, so the child gets neither. `-P` and a directory of its own keep
the current directory off its import path: an MCP server is started inside untrusted projects, and a `pip.py`
there must not run.

The child holds one end of a pipe and ends when the other end, which this process holds, is closed: however
this process ends, killed or crashed, no download continues.
"""

import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

from vestige.core.lazy_dataclass import dataclass

DISK_FULL = 28
"""The exit status with which a child reports a full disk."""

_SHOWN_LINES = 5
_ENDED = "it was ended"

_Process = subprocess.Popen[bytes]

# Processes belong to the whole process, and so does the table of them.
_table = threading.Lock()
_running: dict[threading.Thread, _Process] = {}
_unwanted: WeakSet[threading.Thread] = WeakSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExit:
    """How a child ended: `status` is its exit status, if it ended by itself, and `said` the end of its
    output."""

    status: int | None
    said: str

    @property
    def ok(self) -> bool:
        return self.status == 0


def run_module(module: str, *arguments: str, directory: Path, timeout_seconds: float) -> ChildExit:
    """Run `python -m module` with the current interpreter, and wait for its end."""
    command = [sys.executable, "-P", "-m", __name__, module, *arguments]
    try:
        with _started(command, directory) as child:
            if child is None:
                return ChildExit(status=None, said=_ENDED)
            written, _ = child.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        return ChildExit(status=None, said=f"it did not finish within {timeout_seconds:.0f} s")
    except OSError as error:
        return ChildExit(status=None, said=str(error))
    if threading.current_thread() in _unwanted:
        return ChildExit(status=None, said=_ENDED)
    lines = written.decode("utf-8", "replace").strip().splitlines()
    return ChildExit(status=child.returncode, said="\n".join(lines[-_SHOWN_LINES:]))


def end_children_of(thread: threading.Thread) -> None:
    """Stop the child that `thread` waits for, if any, and let it start no more."""
    with _table:
        _unwanted.add(thread)
        if child := _running.get(thread):
            child.kill()


@contextmanager
def _started(command: list[str], directory: Path) -> Iterator[_Process | None]:
    """A child, killed when the context is left before its end; None when none may be started any more."""
    waiting = threading.current_thread()
    theirs, ours = os.pipe()
    try:
        with _table:
            child = None
            if waiting not in _unwanted:
                child = _running[waiting] = subprocess.Popen(
                    command, cwd=directory, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
        try:
            yield child
        finally:
            with _table:
                _running.pop(waiting, None)
            if child is not None:
                with child:  # waits, and closes its output
                    child.kill()
    finally:
        os.close(theirs)
        os.close(ours)


def _main() -> None:
    """The child's main function: run the module that the arguments name, until its end or its parent's."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    # What is left behind when we are killed lies where the next installer clears up.
    tempfile.tempdir = str(Path.cwd())
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)  # nothing is ever written: it returns when the other end is closed
    os._exit(1)


if __name__ == "__main__":
    _main()

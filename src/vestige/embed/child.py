"""A Python module run as a child process that cannot disturb us, nor be disturbed.

stdin and stdout belong to the MCP protocol, so the child gets neither. `-P` and a directory of our
own keep the current directory off its import path: an MCP server is started inside projects that
nobody has vetted, and a `pip.py` lying there must not run.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DISK_FULL = 28
"""The exit status by which our own children say that the disk is full."""

_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a child ended: `status` is None if it never did by itself, `said` the end of what it wrote."""

    status: int | None
    said: str

    @property
    def ok(self) -> bool:
        """Whether it did what it should."""
        return self.status == 0


def run_module(module: str, *arguments: str, directory: Path, timeout_seconds: float) -> Outcome:
    """Run `python -m module` with the interpreter we run on, and wait for its end."""
    command = [sys.executable, "-P", "-m", module, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(status=None, said=f"it did not finish within {timeout_seconds:.0f} s")
    except OSError as error:
        return Outcome(status=None, said=str(error))
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return Outcome(status=done.returncode, said="\n".join(lines[-_SHOWN_LINES:]))

"""Runs a scenario again and again, and has it killed at each of its points in turn."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.effort import effort
from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT

NEVER = -1
MOST_POINTS = 400
EVERY = effort(3, nightly=1)


class Killer:
    """Runs scenarios in children of a process of its own."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.system.faults.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={
                **os.environ,
                "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}",
                # A process that forks must have one thread only.
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
        )

    def run(self, scenario: str, folder: Path, point: int = NEVER) -> bool:
        """Run a scenario to its end, or to a point; whether it was killed there."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        asked = {"scenario": scenario, "folder": str(folder), "point": point}
        self._server.stdin.write(f"{json.dumps(asked)}\n")
        self._server.stdin.flush()
        code = json.loads(self._server.stdout.readline())["code"]
        assert code in (0, -signal.SIGKILL), f"{scenario} failed at point {point}: what it said is above"
        return bool(code)

    def everywhere(self, scenario: str, before: Path, scratch: Path) -> Iterator[Path]:
        """Run a scenario on copies of a folder, killed at its first point, its second … and at last not at
        all; the folder each run leaves. `make nightly` tries every point, other runs every third one."""
        for point in count(step=EVERY):
            assert point < MOST_POINTS, f"{scenario} does not end"
            folder = scratch / f"killed-at-{point}"
            shutil.copytree(before, folder)
            killed = self.run(scenario, folder, point)
            yield folder
            shutil.rmtree(folder)
            if not killed:
                assert point > 1, f"{scenario} has no points"
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server.stdin is not None:
            self._server.stdin.close()
        self._server.wait(timeout=PATIENCE_SECONDS)
        if self._server.stdout is not None:
            self._server.stdout.close()

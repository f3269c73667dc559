"""A pytest plugin that keeps the duration of every test and shows the slowest ones.

Each run writes `.durations.json` in the project's folder: seconds and processor seconds of each test that it
ran, slowest first; what other runs measured of other tests stays. `--slowest 50` prints the first fifty.
Processor seconds include ended child processes, and say more than seconds on a machine that does other work.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import TypedDict

import pytest

FILE = ".durations.json"


class Duration(TypedDict):
    """What one test took, with its fixtures."""

    seconds: float
    cpu: float


class Durations:
    """Measures in the processes that run tests, and collects in the one that reports."""

    def __init__(self, folder: Path, shown: int) -> None:
        self._file = folder / FILE
        self._shown = shown
        self._cpu = _cpu()
        self._measured: dict[str, Duration] = {}

    def pytest_runtest_logstart(self) -> None:
        self._cpu = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _cpu()
        vars(report)["cpu"] = now - self._cpu  # xdist sends every attribute along
        self._cpu = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        one = self._measured.setdefault(report.nodeid, Duration(seconds=0.0, cpu=0.0))
        one["seconds"] += report.duration
        one["cpu"] += getattr(report, "cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._measured:
            return
        slowest = _slowest_first(self._measured)
        _write(self._file, self._measured)
        if not self._shown:
            return
        total = sum(one["seconds"] for one in slowest.values())
        terminalreporter.section(f"slowest {self._shown} of {total:.0f} seconds")
        for name, one in list(slowest.items())[: self._shown]:
            terminalreporter.write_line(f"{one['seconds']:7.2f}s {one['cpu']:7.2f}s cpu  {name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slowest", type=int, default=0, metavar="N", help="show the N slowest tests with their fixtures"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(
        Durations(config.rootpath, config.getoption("slowest")), "vestige-durations"
    )


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _slowest_first(measured: dict[str, Duration]) -> dict[str, Duration]:
    return dict(sorted(measured.items(), key=lambda one: (-one[1]["seconds"], one[0])))


def _write(file: Path, measured: dict[str, Duration]) -> None:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    rounded = {
        name: Duration(seconds=round(one["seconds"], 3), cpu=round(one["cpu"], 3))
        for name, one in measured.items()
    }
    kept = _slowest_first({**known, **rounded})
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    aside.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
    aside.replace(file)

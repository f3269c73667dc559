"""Runs the official conformance suites against a server, and tells what they found."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.transports.conformance.node import NODE

RUN_SECONDS = 300.0
HANDSHAKE, STATELESS = "conformance-handshake", "conformance-stateless"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run of a suite: all scenarios it has for a version of the protocol."""

    title: str
    package: str
    version: str | None = None


ROUNDS = (
    Round(title="0.1.16", package=HANDSHAKE),
    Round(title="0.2.0-alpha.12, 2025-06-18", package=STATELESS, version="2025-06-18"),
    Round(title="0.2.0-alpha.12, 2025-11-25", package=STATELESS, version="2025-11-25"),
    Round(title="0.2.0-alpha.12, 2026-07-28", package=STATELESS, version="2026-07-28"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What became of a scenario: its checks by what they ended with, and what was wrong."""

    passed: int
    failed: tuple[str, ...]

    @property
    def verdict(self) -> str:
        if self.failed:
            return "fail"
        return f"pass ({self.passed})" if self.passed else "not run"


def run(round_: Round, packages: Path, url: str, folder: Path) -> Mapping[str, Scenario]:
    """Run all scenarios; what became of each, by name."""
    version = [] if round_.version is None else ["--spec-version", round_.version]
    command = [
        *(str(NODE), str(packages / round_.package / "dist" / "index.js"), "server"),
        *("--url", url, "--suite", "all", "--output-dir", str(folder), *version),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
    found = {_name(path.parent): _scenario(path) for path in sorted(folder.glob("*/checks.json"))}
    assert found, f"the suite said nothing:\n{done.stdout}{done.stderr}"
    return found


def known(package: str, packages: Path) -> set[str]:
    """All scenarios for servers that a suite has."""
    command = [str(NODE), str(packages / package / "dist" / "index.js"), "list", "--server"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=True)
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  - ")}


def _name(folder: Path) -> str:
    """The scenario of a folder such as `server-ping-2026-11-16T15-34-24-758Z`."""
    return folder.name.removeprefix("server-").rsplit("-", 6)[0] if folder.name else ""


def _scenario(path: Path) -> Scenario:
    checks = json.loads(path.read_text(encoding="utf-8"))
    ends = Counter(check["status"] for check in checks)
    failed = tuple(
        f"{check['id']}: {check.get('errorMessage')}"
        for check in checks
        if check["status"] not in ("SUCCESS", "INFO", "SKIPPED")
    )
    return Scenario(passed=ends["SUCCESS"], failed=failed)

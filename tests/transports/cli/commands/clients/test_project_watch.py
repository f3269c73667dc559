"""`vestige project watch` as a process: a line for each change, one at a time, a clean end by a signal."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS

VESTIGE = (sys.executable, "-m", "vestige")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "sums.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    ran = run(tmp_path, "project", "init", str(folder))
    assert ran.returncode == 0, ran.stderr
    return folder


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VESTIGE")}
    return kept | {
        "HOME": str(home),
        "VESTIGE_DATA_DIR": str(home / "data"),
        "VESTIGE_OFFLINE": "1",
        "VESTIGE_EMBEDDINGS_PROVIDER": "off",
    }


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VESTIGE, *words], env=environment(home), cwd=home, capture_output=True, text=True, check=False
    )


def next_line(stream: int, so_far: bytes = b"") -> str:
    """The next line of a pipe; an error if none comes."""
    while b"\n" not in so_far:
        if not select.select([stream], [], [], PATIENCE_SECONDS)[0]:
            raise AssertionError(f"nothing more than {so_far!r}")
        chunk = os.read(stream, 65_536)
        assert chunk, f"the program ended after {so_far!r}"
        so_far += chunk
    return so_far.split(b"\n", 1)[0].decode()


@contextmanager
def watching(home: Path, shop: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    process = subprocess.Popen(
        [*VESTIGE, "project", "watch", str(shop), "--every", "0.1"],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert "Watching" in next_line(process.stderr.fileno())
        yield process, process.stdout.fileno()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_refreshes_after_changes_and_ends_by_a_signal(
    tmp_path: Path, shop: Path, number: signal.Signals
) -> None:
    with watching(tmp_path, shop) as (process, output):
        (shop / "more.py").write_text("def sub(a, b):\n    return a - b\n", encoding="utf-8")
        assert json.loads(next_line(output))["added"] == 1
        second = run(tmp_path, "project", "watch", str(shop))
        assert second.returncode != 0
        assert json.loads(second.stderr.splitlines()[-1])["error"]["code"] == "store_busy"
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read().decode().strip().endswith("Stopped.")
    found = run(tmp_path, "project", "search", "sub", "--path", str(shop))
    assert json.loads(found.stdout)["hits"][0]["path"] == "more.py"


def test_a_folder_without_an_index_is_not_watched(tmp_path: Path) -> None:
    ran = run(tmp_path, "project", "watch", str(tmp_path))
    assert ran.returncode != 0
    assert json.loads(ran.stderr.splitlines()[-1])["error"]["code"] == "not_found"

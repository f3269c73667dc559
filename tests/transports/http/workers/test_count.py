"""How many workers a server starts."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vestige.settings.settings import load_settings
from vestige.transports.http.workers.count import WORKER_BYTES, usable_cores, usable_memory, worker_count

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a server has one process there")


def counted(
    tmp_path: Path, options: Mapping[str, Any] | None = None, *, cores: int = 1, workers_fit: float = 9
) -> int:
    """The number of workers with these settings, on a machine with memory for so many."""
    settings = load_settings({"data_dir": str(tmp_path), **(options or {})}, environ={})
    return worker_count(settings, cores=cores, memory_bytes=int(workers_fit * WORKER_BYTES))


@pytest.mark.parametrize(
    ("cores", "workers_fit", "expected"),
    [(1, 9, 1), (2, 9, 1), (4, 9, 3), (8, 2.5, 2), (8, 0.5, 1), (99, 99, 8)],
)
def test_by_default_one_core_is_left_and_the_memory_and_slots_suffice(
    tmp_path: Path, cores: int, workers_fit: float, expected: int
) -> None:
    assert counted(tmp_path, cores=cores, workers_fit=workers_fit) == expected


def test_a_number_that_is_set_is_taken(tmp_path: Path) -> None:
    assert counted(tmp_path, {"server.workers": 5}) == 5


def test_there_are_never_more_workers_than_slots_or_connections_to_divide(tmp_path: Path) -> None:
    assert counted(tmp_path, {"server.workers": 8, "server.max_concurrent": 3}) == 3
    assert counted(tmp_path, {"server.workers": 8, "server.max_connections": 2}) == 2


def test_a_store_in_memory_has_one_process(tmp_path: Path) -> None:
    assert counted(tmp_path, {"server.workers": 4, "storage.backend": "memory"}) == 1


def test_a_container_counts_with_its_own_limits(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text("1048576\n")
    assert usable_cores(tmp_path) == 1
    assert usable_memory(tmp_path) == 1_048_576


def test_without_limits_the_machine_counts(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert usable_cores(tmp_path) == usable_cores(tmp_path / "absent") >= 1
    assert usable_memory(tmp_path) == usable_memory(tmp_path / "absent") > 1 << 20

"""The benchmark of carrying a store, on a handful of memories: copied rows are exact in every table."""

from contextlib import closing
from pathlib import Path

from benchmarks.carry import carried, fill, goals, in_file


def test_copied_rows_are_exact_in_every_table(tmp_path: Path) -> None:
    origin = in_file(tmp_path / "source" / "vestige.db")
    with origin.destination() as side, closing(side.store):
        fill(side.store, 20)
    with goals(tmp_path / "goals", postgres=False) as goal:
        done = carried("rows", origin, goal("rows"), tmp_path)
    assert done.rows
    assert all(exact == total for total, exact, _ in done.rows.values())

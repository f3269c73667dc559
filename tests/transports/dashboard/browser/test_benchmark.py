"""The benchmark of the dashboard runs, tiny, and says what it measured. Its numbers are not judged here."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.dashboard import run
from benchmarks.http.serving import TEST_EMBEDDER
from vestige.transports.dashboard.pages import PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_benchmark_opens_every_page_and_counts_frames(browser: "Browser", tmp_path: Path) -> None:
    report = run(browser, tmp_path / "store", memories=200, rounds=0, frames=3, settings=TEST_EMBEDDER)
    pages = report.tables["Pages, CPU s"]
    assert {str(row["page"]) for row in pages} >= {*PAGES, "/memories/ID", "first counts of the home page"}
    assert all(float(row[name] or 0) > 0 for row in pages for name in ("first visit", "later", "later, page"))
    assert [row["frames"] for row in report.tables["Frames, ms of scripts"]] == [3] * 5
    assert len(report.targets) == 7

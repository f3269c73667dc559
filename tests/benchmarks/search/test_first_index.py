"""The benchmark of a first index runs from end to end, on a small repository."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.code.first_index import EDITS, run


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory of several processes is read from /proc")
def test_a_first_index_and_refreshes_are_measured(tmp_path: Path) -> None:
    for number in range(12):
        text = f"package p\n\nfunc F{number}() int {{\n\treturn {number}\n}}\n"
        (tmp_path / f"f{number}.go").write_text(text, encoding="utf-8")
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], [*settings, "commit", "-qm", "First"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    report = run(tmp_path / ".git", 10)
    assert report.settings["files"] == 10
    init, *refreshed = report.tables["Cost"]
    assert [row["files"] for row in refreshed] == list(EDITS)
    assert float(init["resident MB"] or 0) > float(init["own MB"] or 0) > 0
    assert float(init["user s"] or 0) > 0

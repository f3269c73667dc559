"""The benchmark of packages: gold lines come from commits, and only what is shown counts."""

import subprocess
from pathlib import Path

from benchmarks.code.packages import PackageRow, report, shown_lines, tasks_of

OLD = "".join(f"line {number}\n" for number in range(1, 21))


def git(folder: Path, *words: str) -> None:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *settings, *words], capture_output=True, check=True)


def test_a_task_is_the_message_of_a_commit_and_the_lines_it_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    texts = [OLD, f"new\n{OLD}", f"new\n{OLD.replace('line 7', 'line seven')}"]
    for number, text in enumerate(texts):
        (tmp_path / "app.py").write_text(text, encoding="utf-8")
        (tmp_path / "test_app.py").write_text(text, encoding="utf-8")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", f"Change {number}\n\nBecause.")
    _, files, tasks = tasks_of(tmp_path / ".git", commits=2)
    assert files["app.py"] == OLD
    # The first commit only added lines; the line of the second is where the old file has it.
    (task,) = tasks
    assert task.text == "Change 2\n\nBecause."
    assert task.gold == {"app.py": frozenset({7})}


def test_only_lines_in_excerpts_are_shown() -> None:
    package = (
        "## Open first\n- src/a.py:1-90\n\n## Excerpts\nsrc/a.py:10-12\n```\na\nb\nc\n```\n"
        "src/b.py:1-40\n````\none\ntwo\n…\n````\nsrc/c.py:5-9: def c()\n"
    )
    assert shown_lines(package) == {"src/a.py": {10, 11, 12}, "src/b.py": {1, 2}}


def test_a_package_over_its_budget_is_a_target_that_is_missed() -> None:
    row = PackageRow(
        budget=100,
        tokens=101,
        stated=100,
        tokenizer="t",
        gold=10,
        shown=5,
        whole_tokens=1_000,
        whole_shown=10,
    )
    over, ratio = report({"shop": [row]}).targets
    assert (over.value, over.met) == (1, False)
    assert ratio.met

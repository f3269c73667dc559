"""The benchmark of code search: its measures are right, it reads git, and it runs from end to end."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.code import issues
from benchmarks.code.measures import Place, ndcg_of_files, ndcg_of_sections
from benchmarks.code.repositories import Goal, development_set
from benchmarks.code.run import BM25, OURS, SERVED, WITH_VECTORS, run
from benchmarks.code.server import ProjectServer
from benchmarks.code.tuning import left_out, tried_weights
from vestige.cognition.code.ranking import WEIGHTS, RankingWeights
from vestige.embed.hashing import HashingEmbedder

FILES = {
    "src/pool.py": "class Pool:\n    def take(self):\n        return self.items.pop()\n",
    "src/routes.py": "def add_route(path, handler):\n    table[path] = handler\n",
    "src/cookies.py": "def parse_cookie(header):\n    return dict(header)\n",
    "tests/test_pool.py": "from pool import Pool\n\ndef test_pool():\n    Pool().take()\n",
    "README.md": "# Pool\n",
    "picture.py": "\0\0",
}


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *settings, *words], capture_output=True, check=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A repository, questions about it and an issue, in the shapes of the sets."""
    folder = tmp_path / "repos" / "ada+pool"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / ".git").rename(tmp_path / "bare")
    shutil.rmtree(folder)
    (tmp_path / "bare").rename(folder)
    pinned = {
        "id": "pool",
        "owner": "ada",
        "name": "pool",
        "commit": commit,
        "language": "python",
        "root": "",
    }
    repos = [pinned, {**pinned, "id": "absent", "name": "absent"}]
    rows: list[dict[str, object]] = [
        {"id": "1", "query": "Pool", "category": "symbol", "relevant": ["src/pool.py"]},
        {"id": "2", "query": "how are routes added", "category": "semantic", "relevant": ["src/routes.py"]},
        {
            "id": "3",
            "query": "where cookies are parsed",
            "category": "architecture",
            "relevant": [{"path": "src/cookies.py", "start_line": 1, "end_line": 2}],
        },
    ]
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "repos_dev.json").write_text(json.dumps(repos), encoding="utf-8")
    (tmp_path / "code" / "annotations_dev.json").write_text(
        json.dumps([{**row, "repo": "pool", "secondary": []} for row in rows]), encoding="utf-8"
    )
    issue = {
        "instance_id": "pool-1",
        "repo": "ada/pool",
        "base_commit": commit,
        "problem_statement": "Cookies with a semicolon fail\n\n`parse_cookie` raises.",
        "patch": "diff --git a/src/cookies.py b/src/cookies.py\n--- a/src/cookies.py\n+++ b/src/cookies.py\n",
    }
    (tmp_path / "swebench_lite.json").write_text(json.dumps([issue]), encoding="utf-8")
    return tmp_path


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array(HashingEmbedder().embed_documents(texts), dtype=np.float32)


def test_code_files_of_a_commit_are_read_without_a_work_tree(data: Path) -> None:
    (only,) = development_set(data / "code", data / "repos")
    assert set(only.files) == {"src/pool.py", "src/routes.py", "src/cookies.py", "tests/test_pool.py"}
    assert only.questions[2].goals == (Goal(path="src/cookies.py", start_line=1, end_line=2),)


def test_the_benchmark_runs_from_end_to_end(data: Path) -> None:
    report = run(data, data / "repos", embed, tune=3)
    rows = {row["arm"]: row for row in report.tables["Code search"]}
    assert rows["no memory"]["chunks"] == 0
    assert rows[OURS]["files"] == rows[OURS]["chunks"] == 1
    assert {BM25, WITH_VECTORS, "dense", "ripgrep", "chance"} <= set(rows)
    assert all(target.met for target in report.targets)


@pytest.mark.slow
def test_the_server_answers_questions(data: Path) -> None:
    with ProjectServer() as server:
        report = run(data, data / "repos", None, server=server)
    assert report.settings["at their pinned commit"] == 1
    rows = {row["arm"]: row for row in report.tables["Code search"]}
    assert rows[SERVED]["files"] == rows[SERVED]["chunks"] == 1


@pytest.mark.slow
def test_the_server_answers_issues_at_their_commits(data: Path) -> None:
    work = data / "work"
    git(data, "clone", "-q", str(data / "repos" / "ada+pool"), str(work))
    git(work, "mv", "src/cookies.py", "src/headers.py")
    git(work, "commit", "-qm", "Second")
    git(work, "push", "-q", "origin", "HEAD:refs/heads/second")
    first = json.loads((data / "swebench_lite.json").read_text(encoding="utf-8"))[0]
    second = {
        **first,
        "instance_id": "pool-2",
        "base_commit": git(work, "rev-parse", "HEAD"),
        "patch": first["patch"].replace("cookies", "headers"),
    }
    absent = {**first, "instance_id": "pool-3", "base_commit": "0" * 40}
    (data / "swebench_lite.json").write_text(json.dumps([second, absent, first]), encoding="utf-8")
    with ProjectServer() as server:
        report = issues.run(data, data / "repos", server)
    assert (report.settings["issues"], report.settings["of"]) == (2, 3)
    rows = {row["arm"]: row for row in report.tables["Issues (SWE-bench lite)"]}
    assert rows[SERVED]["any@1"] == rows[SERVED]["all@5"] == 1
    assert {target.name for target in report.targets} >= {"above BM25: any@5", "above BM25: all@10"}


def test_a_second_section_of_the_same_file_takes_a_place_among_sections_only() -> None:
    found = [Place(path="a.py", start_line=1, end_line=2), Place(path="a.py", start_line=3, end_line=4)]
    found.append(Place(path="src/b.py"))
    goals = [Goal(path="b.py")]
    assert ndcg_of_sections(found, goals) == pytest.approx(1 / np.log2(4))
    assert ndcg_of_files(found, goals) == pytest.approx(1 / np.log2(3))


def test_lines_count_for_sections_only() -> None:
    found = [Place(path="a.py", start_line=1, end_line=2)]
    goals = [Goal(path="a.py", start_line=10, end_line=12)]
    assert (ndcg_of_sections(found, goals), ndcg_of_files(found, goals)) == (0, 1)


def test_a_repository_is_scored_with_the_weights_that_suit_the_others() -> None:
    tried = tried_weights(2)
    assert tried[0] == WEIGHTS != tried[1]

    def scored(weights: RankingWeights) -> dict[str, float]:
        return {"a": 1.0, "b": 0.0, "c": 0.1} if weights == WEIGHTS else {"a": 0.0, "b": 0.3, "c": 0.3}

    kept, best, fit = left_out(tried, scored)
    assert kept == {"a": 0.0, "b": 0.0, "c": 0.1}
    assert best == WEIGHTS
    assert fit == pytest.approx(1.1 / 3)

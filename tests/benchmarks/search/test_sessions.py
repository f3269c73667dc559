"""The benchmark of sessions, with a handful of transcripts."""

import json
from pathlib import Path

import pytest

from benchmarks.quality.transcripts import transcripts
from benchmarks.sessions import quality, speed
from benchmarks.sessions.quality import cross_validated, home_of, indexed, measured, mrr, ours, row
from tests.engine.recall.sessions.transcripts import CART, LOGIN, conversation
from tests.exchange.transcripts.homes import folders, write_lines
from vestige.exchange.transcripts.sources import sources


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "bench" / "claude_sessions"
    write_lines(
        folder / f"2026-01-05-{LOGIN}.jsonl", conversation(LOGIN, ("user", "the login test is flaky"))
    )
    write_lines(
        folder / f"2026-01-06-{CART}.jsonl", conversation(CART, ("user", "round the total of the cart"))
    )
    asked = [
        {"subject": "fix the flaky login", "gold_sessions": [f"2026-01-05-{LOGIN}"]},
        {"subject": "round totals", "gold_sessions": [f"2026-01-06-{CART}"]},
    ]
    (folder / "queries.json").write_text(json.dumps(asked), encoding="utf-8")
    return tmp_path / "bench"


def test_ours_finds_the_session_of_each_commit(data: Path, tmp_path: Path) -> None:
    corpus = transcripts(data)
    with indexed(home_of(data, tmp_path / "home"), tmp_path / "data") as index:
        found = measured(ours(index), corpus.questions)
        assert [one.rank for one in found] == [1, 1]
        assert mrr(cross_validated(index, corpus.questions)) == 1.0
    assert row("ours", found) == {"arm": "ours", "hit@1": 1.0, "hit@5": 1.0, "hit@10": 1.0, "MRR": 1.0}
    assert mrr(measured(lambda _: [], corpus.questions)) == 0.0
    for arm in quality.by_bm25(corpus).values():
        assert mrr(measured(arm, corpus.questions)) == 1.0


def test_made_up_transcripts_have_the_size_asked_for_and_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "FILE_MEGABYTES", 0.2)
    written = speed.write_transcripts(tmp_path, 1)
    assert 1_000_000 <= written < 1_300_000
    assert len(list(sources(folders(tmp_path)))) == 5

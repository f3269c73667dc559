"""The benchmark of sessions, with a handful of transcripts."""

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.quality.transcripts import transcripts
from benchmarks.sessions import made, quality
from benchmarks.sessions.quality import cross_validated, home_of, indexed, measured, mrr, ours, row
from tests.engine.recall.sessions.transcripts import CART, LOGIN, conversation
from tests.exchange.transcripts.homes import folders, write_lines
from vestige.exchange.transcripts.files import batches
from vestige.exchange.transcripts.shape import conversations
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


def test_made_transcripts_have_the_size_asked_for_and_are_read(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "MEDIAN_BYTES", 3_000)
    home = tmp_path / "home"
    files = made.write_transcripts(data, home, 100_000)
    assert 100_000 <= sum(one.size for one in files) < 110_000
    assert {one.client for one in files} == {"claude", "codex"}
    listed = list(sources(folders(home)))
    assert {one.path for one in listed} == {one.path for one in files}
    for one in files:
        (source,) = [source for source in listed if source.path == one.path]
        found = conversations(step for batch in batches(source, None) for step in batch.steps)
        assert list(found) == [one.session]
        texts = [entry.text for entry in found[one.session].entries.values()]
        assert [text for text in texts if one.mark in text] == [texts[-1]]


def test_a_session_is_made_with_the_same_shape_and_other_words(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "UNCHANGED_WORDS", 0)
    claude, codex, words = made.templates(data)
    assert (len(claude), len(codex)) == (2, 2)
    given = {"session": "s", "day": "2026-03-04", "cwd": "/w"}
    one, other = (made.Exchange(words, Random(seed), **given) for seed in (1, 2))
    first, second = (
        ["".join(held[piece] for piece in line) for line in claude[0].lines] for held in (one, other)
    )
    assert first != second
    records = [json.loads(line) for line in first]
    assert [record["type"] for record in records] == ["user"]
    assert (records[0]["sessionId"], records[0]["cwd"]) == ("s", "/w")
    assert records[0]["timestamp"].startswith("2026-03-04T")

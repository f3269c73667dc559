"""The benchmark of planted contradictions runs, tiny, and counts right. Its numbers are not judged here."""

import json
from pathlib import Path

import pytest

from benchmarks.gate.pairs import Pair
from benchmarks.planted import CONTROLS, PLANTED, Outcome, run

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I saw a heron by the lake."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Where was that exactly?"},
            ]
        },
        "qa": [],
    }
]


def told(relation: str) -> Pair:
    return Pair(origin="ours", relation=relation, old="a", new="b")


def test_shares_are_of_the_pairs_with_the_relations_asked_for() -> None:
    outcome = Outcome(
        pairs=[told("negation"), told("correction"), told("paraphrase"), told("unrelated")],
        kinds=["polarity", None, None, "value"],
        ordinary=0,
        elsewhere=0,
        looked_at=0,
        seconds=0,
        search_ms=1,
        reference_ms=1,
    )

    assert outcome.share(PLANTED) == 0.5
    assert outcome.share(CONTROLS) == 0.5
    assert outcome.share(("elaboration",)) == 0.0


@pytest.mark.slow
@pytest.mark.nightly
def test_planting_a_set_says_what_was_listed(tmp_path: Path, real_model_dir: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO), encoding="utf-8")

    report = run(data=tmp_path, only=("ours",), memories=10)

    assert [row["relation"] for row in report.tables["Pairs listed"]] == [*PLANTED, *CONTROLS]
    assert report.settings["ordinary memories"] == 2
    assert len(report.targets) == 4


def test_without_conversations_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"locomo\.json"):
        run(data=tmp_path, only=("ours",))

"""The benchmark of the gate: pairs are read as they are, and the tables count what became of them."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.gate.pairs import HERE, SETS, Pair, load
from benchmarks.gate.run import Judged, run, summary
from benchmarks.quality.corpus import Missing

SICK = """pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tentailment_BA
1\tA dog runs\tA dog is running\tENTAILMENT\t4.9\tA_entails_B\tB_entails_A
2\tA dog runs fast\tA dog runs\tENTAILMENT\t4.1\tA_entails_B\tB_neutral_A
3\tA dog runs\tNo dog runs\tCONTRADICTION\t3.9\tA_contradicts_B\tB_contradicts_A
"""


def _data(folder: Path) -> Path:
    pairs = folder / "pairs"
    pairs.mkdir()
    (pairs / "sick.tsv").write_text(SICK, encoding="utf-8")
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    (pairs / "mrpc-train.tsv").write_text(f'{header}1\t1\t2\tHe said "no\tHe said no\n', encoding="utf-8")
    (pairs / "mrpc-val.tsv").write_text(f"{header}0\t1\t2\tIt rose\tIt fell\n", encoding="utf-8")
    (pairs / "stsb-en-train.csv").write_text("A plane lands.,A plane is landing.,5.0\n", encoding="utf-8")
    (pairs / "stsb-en-dev.csv").write_text('"Cats, dogs",Birds,0.5\nA,B,3.0\n', encoding="utf-8")
    return folder


def test_the_sets_are_read_with_what_their_pairs_are(tmp_path: Path) -> None:
    data = _data(tmp_path)
    relations = {origin: [pair.relation for pair in load(origin, data, 0)] for origin in SETS[:3]}
    assert relations == {
        "sick": ["entailment both ways", "entailment one way", "contradiction"],
        "mrpc": ["same", "different"],
        "stsb": ["same", "different"],
    }
    assert load("mrpc", data, 0)[0].old == 'He said "no'
    assert len(load("sick", data, 1)) == 3


def test_a_missing_set_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"no sick\.tsv"):
        load("sick", tmp_path, 0)


@pytest.mark.parametrize("name", ["ours", "blind"])
def test_memory_like_pairs_are_distinct_and_of_known_relations(name: str) -> None:
    path = HERE / f"{name}.jsonl"
    pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len({pair["id"] for pair in pairs}) == len(pairs) >= 220
    assert len({(pair["old"], pair["new"]) for pair in pairs}) == len(pairs)
    counted = Counter(pair["relation"] for pair in pairs)
    assert set(counted) == {
        "duplicate", "paraphrase", "elaboration", "correction", "value_change", "negation", "temporal_update",
        "unrelated", "multi_valued",
    }  # fmt: skip
    assert min(counted.values()) >= 20


def test_shares_are_of_the_pairs_they_are_about() -> None:
    def judged(relation: str, decision: str, conflict: str | None = None) -> Judged:
        pair = Pair(origin="ours", relation=relation, old="a", new="b")
        return Judged(pair=pair, decision=decision, conflict=conflict)

    shares = summary(
        "ours",
        [
            judged("paraphrase", "reinforce"),
            judged("paraphrase", "create"),
            judged("negation", "supersede", "polarity"),
            judged("value_change", "create", "slot"),
            judged("unrelated", "supersede", "value"),
        ],
    )
    assert shares["restated: reinforce or update"] == 0.5
    assert (shares["supersede, precision"], shares["supersede, recall"]) == (0.5, 0.5)
    assert (shares["contradicted: conflict seen"], shares["contradicted: reinforce"]) == (0.5, 0.0)
    assert shares["identical: reinforce"] is None


def test_the_gate_benchmark_counts_every_pair_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = run(data=_data(tmp_path), only=("sick", "mrpc"), most=0)
    rows = report.tables["sick: what became of the new text"]
    assert [(row["relation"], row["pairs"]) for row in rows] == [
        ("entailment both ways", 1), ("entailment one way", 1), ("contradiction", 1),
    ]  # fmt: skip
    assert [row["set"] for row in report.tables["In short"]] == ["sick", "mrpc", "all"]
    assert {target.name for target in report.targets} >= {"all: contradicted: reinforce"}
    missing = run(data=tmp_path / "nowhere", only=("stsb",))
    assert missing.skipped == {"stsb": "no stsb-en-train.csv"}

"""Every benchmark runs, tiny, and says what it measured. The numbers themselves are not judged here."""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks import ingest, startup
from benchmarks.client import OURS, Client
from benchmarks.conversation import Turn, generated, load_turns
from benchmarks.engine import decisions_in, items_of, request
from benchmarks.ingest import Way, measure
from benchmarks.process import cpu_seconds, own_memory, parse_cpu_time
from benchmarks.report import Cell, Report, Target, publish, table

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I saw a heron."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Where?"},
            ],
            "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "I saw a heron."}],
        },
    }
]


def test_generated_turns_are_all_different_and_the_same_for_the_same_seed() -> None:
    turns = generated(3000, seed=4)
    assert len({turn.content for turn in turns}) == len(turns) == 3000
    assert turns == generated(3000, seed=4)
    assert turns != generated(3000, seed=5)


def test_generated_turns_are_about_as_long_as_those_of_locomo() -> None:
    lengths = [len(turn.text) for turn in generated(1000)]
    assert 90 < sum(lengths) / len(lengths) < 160


def test_turns_come_from_locomo_as_far_as_they_go_and_never_twice(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO), encoding="utf-8")
    turns, origin = load_turns(tmp_path, 3)
    assert [turn.content for turn in turns[:2]] == ["Ada: I saw a heron.", "Bob: Where?"]
    assert turns[2] == generated(1)[0]
    assert origin == "2 turns of LoCoMo and 1 generated turns"


def test_turns_are_generated_where_the_data_is_missing(tmp_path: Path) -> None:
    assert load_turns(tmp_path / "nowhere", 5) == (generated(5), "5 generated turns")
    assert load_turns(None, 5) == (generated(5), "5 generated turns")


def test_a_note_has_no_thread_and_a_single_item_goes_by_itself() -> None:
    (turn,) = generated(1)
    (note,) = items_of([turn], threaded=False)
    (part,) = items_of([turn], threaded=True)
    assert note == {"content": turn.content}
    assert (part["thread"], part["position"]) == (turn.thread, turn.position)
    assert request([note]) == note
    assert request([note, part]) == {"items": [note, part]}


def test_an_item_stored_without_a_vector_stops_the_benchmark() -> None:
    stored = {"decision": "create", "hasEmbedding": True}
    assert decisions_in({"results": [stored, stored]}) == ["create", "create"]
    with pytest.raises(RuntimeError, match="without being embedded"):
        decisions_in({"decision": "create", "hasEmbedding": False})


def test_every_way_takes_every_block_in_its_portions_and_each_goes_first_in_turn() -> None:
    taken: list[tuple[str, int]] = []

    def way(name: str, portion: int) -> Way:
        def take(turns: Sequence[Turn]) -> None:
            taken.append((name, len(turns)))

        return Way(name=name, portion=portion, take=take, cpu_seconds=lambda: 0.0)

    rounds = measure([way("whole", 4), way("halves", 2)], generated(10), 4)
    first, second, last = [("whole", 4), ("halves", 2), ("halves", 2)], [("halves", 2)] * 2, ("whole", 4)
    assert taken == [*first, *second, last, ("whole", 2), ("halves", 2)]
    assert {way.name: len(made) for way, made in rounds.items()} == {"whole": 3, "halves": 3}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere `ps` answers in hundredths of a second")
def test_the_cpu_time_of_a_process_is_what_it_would_say_itself() -> None:
    before = time.process_time()
    seen = cpu_seconds(os.getpid())
    assert before <= seen <= time.process_time()


def test_the_memory_of_a_process_is_measured_and_its_kind_said() -> None:
    memory = own_memory(os.getpid())
    assert memory.megabytes > 1
    assert memory.kind == ("RssAnon" if sys.platform == "linux" else "RSS")


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("00:00:03", 3.0), ("0:01.25", 1.25), ("  1:02:03", 3723.0), ("2-00:00:01", 172_801.0)],
)
def test_cpu_time_is_read_from_what_ps_prints(printed: str, seconds: float) -> None:
    assert parse_cpu_time(printed) == seconds


def test_a_report_tells_a_missed_target_from_a_met_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report(
        benchmark="sample",
        settings={"runs": 1},
        tables={"Times": [{"way": "ours", "ms": 1.23456}, {"way": "theirs", "ms": None}]},
        targets=[
            Target(name="fast", value=12.0, limit=10.0, at_least=True),
            Target(name="light", value=2.0, limit=1.5, at_least=False),
        ],
    )
    publish(report, tmp_path / "new" / "sample.json")
    shown = capsys.readouterr().out
    assert "| ours | 1.23 |" in shown
    assert "| theirs | – |" in shown
    assert "| fast | 12 | ≥ 10 | met |" in shown
    assert "| light | 2 | ≤ 1.5 | MISSED |" in shown
    written = json.loads((tmp_path / "new" / "sample.json").read_text(encoding="utf-8"))
    assert written["tables"]["Times"][0] == {"way": "ours", "ms": 1.2346}
    assert [target["met"] for target in written["targets"]] == [True, False]
    assert {"taken_at", "command", "commit", "machine", "versions", "settings"} < written.keys()
    assert written["machine"].keys() == {"cpu", "cores", "memory_gib", "os", "python", "load_1min"}


def test_a_table_has_a_line_for_its_head_its_rule_and_each_row() -> None:
    assert table([{"a": 1, "b": 250.4}]) == "| a | b |\n| --- | --- |\n| 1 | 250 |"


@pytest.mark.slow
def test_a_server_that_ends_unasked_is_reported() -> None:
    with (
        Client([sys.executable, "-c", "pass"]) as client,
        pytest.raises(RuntimeError, match="ended before it answered"),
    ):
        client.initialize()


@pytest.mark.slow
def test_a_server_that_says_nothing_is_ended_after_the_timeout() -> None:
    silent = "import sys; sys.stdin.read()"
    with (
        Client([sys.executable, "-c", silent], timeout_seconds=0.2) as client,
        pytest.raises(RuntimeError, match="ended before it answered"),
    ):
        client.initialize()


@pytest.mark.slow
def test_the_startup_benchmark_measures_all_servers_and_the_first_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = startup.run(runs=1, memories=5)
    times, faster, search = report.tables.values()
    assert [row["server"] for row in times] == [OURS, *startup.SERVERS]
    assert [row["server"] for row in faster] == list(startup.SERVERS)
    _all_positive([*times, *faster, *search])
    assert len(report.targets) == 2 * len(startup.SERVERS) + 1


@pytest.mark.slow
def test_the_ingest_benchmark_measures_every_way_into_every_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = ingest.run(turns=4, stored=3, data=None, portion=2)
    (rows,) = report.tables.values()
    ways = ["raw by 2", "raw by 1", "engine by 2", "stdio by 2", "engine by 1", "stdio by 1"]
    cases = ["turns into 0", "notes into 0", "turns into 3", "notes into 3"]
    assert [(row["case"], row["way"]) for row in rows] == [(case, way) for case in cases for way in ways]
    assert [row["decisions"] for row in rows[:6]] == [None, None, *["4 create"] * 4]
    assert {row["ratio CPU"] for row in rows if str(row["way"]).startswith("raw")} == {1.0}
    _all_positive(rows)
    assert [target.limit for target in report.targets] == [0.8, 0.6] * 4


def _all_positive(rows: Sequence[Mapping[str, Cell]]) -> None:
    numbers = [cell for row in rows for cell in row.values() if isinstance(cell, float)]
    assert numbers
    assert min(numbers) > 0

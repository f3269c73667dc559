"""Every benchmark runs, tiny, and says what it measured. The numbers themselves are not judged here."""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import domains, ingest, startup
from benchmarks.client import OURS, Client
from benchmarks.conversation import Turn, generated, load_turns
from benchmarks.engine import OverStdio, decisions_in, items_of, request
from benchmarks.ingest import Way, measure
from benchmarks.peers import process as peer_process
from benchmarks.peers import run as peers
from benchmarks.peers.personas import personas
from benchmarks.peers.process import PeerProcess, Unavailable
from benchmarks.process import cpu_seconds, own_memory, parse_cpu_time
from benchmarks.quality.corpus import Missing
from benchmarks.quality.locomo import DEVELOPMENT
from benchmarks.report import PROJECT, Cell, Report, Target, publish, table
from benchmarks.speed import run as speed
from benchmarks.speed import stores
from benchmarks.speed.disk import bytes_by_part
from benchmarks.speed.parts import GATHER, LIMIT_PARTS, SEARCH, STARTED, UNRECORDED
from vestige.core.errors import InvalidInput, NotFound
from vestige.embed.hashing import HashingEmbedder
from vestige.settings.settings import DATABASE_NAME
from vestige.transports.cli.commands import bench

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
        "qa": [{"question": "Who saw a heron?", "evidence": ["D1:1"], "category": 4}],
    }
]
ECHO = """
def version():
    return 7

class Peer:
    def __init__(self, folder, embed):
        self.embed, self.held = embed, {}
    def add(self, items):
        vectors = self.embed([item["content"] for item in items])
        self.held = {item["key"]: vector for item, vector in zip(items, vectors)}
        print("a library that prints")
    def search(self, query, limit):
        if not query:
            raise ValueError("a bad question")
        [[wanted]] = self.embed([query])
        return sorted(self.held, key=lambda key: abs(self.held[key][0] - wanted))[:limit]
"""


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
    publish(report, tmp_path)  # a folder, where the report gets its own name
    assert (tmp_path / "sample.json").is_file()
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
@pytest.mark.nightly
def test_a_server_that_ends_unasked_is_reported() -> None:
    with (
        Client([sys.executable, "-c", "pass"]) as client,
        pytest.raises(RuntimeError, match="ended before it answered"),
    ):
        client.initialize()


@pytest.mark.slow
@pytest.mark.nightly
def test_a_server_that_says_nothing_is_ended_after_the_timeout() -> None:
    silent = "import sys; sys.stdin.read()"
    with (
        Client([sys.executable, "-c", silent], timeout_seconds=0.2) as client,
        pytest.raises(RuntimeError, match="ended before it answered"),
    ):
        client.initialize()


@pytest.mark.slow
@pytest.mark.nightly
def test_the_startup_benchmark_measures_all_servers_and_the_first_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = startup.run(runs=1, memories=5)
    times, faster, search, commands = report.tables.values()
    assert [row["server"] for row in times] == [OURS, *startup.SERVERS]
    assert [row["server"] for row in faster] == list(startup.SERVERS)
    _all_positive([*times, *faster, *search, *commands])
    yardsticks = {startup.YARDSTICK, startup.FLOOR}
    asked = [row for row in commands if row["command"] not in yardsticks]
    assert len(asked) == len(commands) - len(yardsticks)
    assert len(report.targets) == 2 * len(startup.SERVERS) + 1 + len(asked)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_ingest_benchmark_measures_every_way_into_every_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = ingest.run(turns=4, stored=3, data=None, portion=2)
    (rows,) = report.tables.values()
    ways = ["raw by 2", "raw by 1", "engine by 2", "stdio by 2", "engine by 1", "stdio by 1"]
    cases = ["turns into 0", "notes into 0", "turns into 3", "notes into 3", "alike notes into 3"]
    assert [(row["case"], row["way"]) for row in rows] == [(case, way) for case in cases for way in ways]
    assert [row["decisions"] for row in rows[:6]] == [None, None, *["4 create"] * 4]
    assert {row["ratio CPU"] for row in rows if str(row["way"]).startswith("raw")} == {1.0}
    _all_positive(rows)
    assert [target.limit for target in report.targets] == [*[0.9, 0.65] * 4, ingest.ALIKE_MS]


@pytest.mark.slow
@pytest.mark.nightly
def test_the_speed_benchmark_measures_every_part_the_server_and_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    monkeypatch.setattr(stores, "MOST_EMBEDDED", 20)
    report = speed.run(sizes=(20, 40), queries=4, data=tmp_path)
    assert report.settings["queries"] == "4 generated queries"
    assert [row["way"] for row in report.tables["Storing"]] == [
        "smart_ingest by 100",
        "store, synthetic vectors",
    ]
    for size in (20, 40):
        shown = [row["part"] for row in report.tables[f"Search among {size}, ms"]]
        assert {*LIMIT_PARTS, GATHER, UNRECORDED, SEARCH, STARTED} < set(shown)
    beside = report.tables["Search beside its limit"]
    assert all(float(str(row["ratio"])) > 0 for row in beside)
    _all_positive(report.tables["The server"])
    ET.fromstring(report.plots["search"])


def test_disk_use_is_told_by_what_the_pages_hold(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as made:
        made.execute("CREATE TABLE memories (x)")
        made.execute("CREATE INDEX memories_by_x ON memories (x)")
        made.execute("CREATE TABLE token_bits (x)")
        made.execute("CREATE TABLE whatever (x)")
        made.execute("INSERT INTO token_bits VALUES (zeroblob(100000))")
        made.commit()
    (tmp_path / "one.segment").write_bytes(b"x" * 10)
    found = bytes_by_part(tmp_path)
    if not found:
        pytest.skip("this SQLite was built without dbstat")
    assert found["text"] == 2 * 4096
    assert found["token bits"] > 100_000
    assert found["vector files"] == 10
    assert found["other"] >= 4096


class Lengths:
    """Vectors that are the lengths of texts, and that cost a hundred seconds."""

    def __init__(self) -> None:
        self.cpu_seconds = 100.0
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [[float(len(text))] for text in texts]


def test_a_peer_that_is_not_installed_is_skipped_with_the_reason() -> None:
    with pytest.raises(Unavailable, match="ModuleNotFoundError: No module named 'chromadb'"):
        PeerProcess(Path(sys.executable), "chroma", Lengths())
    with pytest.raises(Unavailable, match="does not run"):
        PeerProcess(Path("/nowhere/python"), "chroma", Lengths())


@pytest.mark.slow
@pytest.mark.nightly
def test_a_peer_gets_its_vectors_from_the_benchmark_and_its_errors_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_process, "ADAPTERS", tmp_path)
    serve = Path(peers.__file__).parent / "adapters" / "serve.py"
    (tmp_path / "serve.py").write_text(serve.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "echo.py").write_text(ECHO, encoding="utf-8")
    vectors = Lengths()
    with PeerProcess(Path(sys.executable), "echo", vectors) as peer:
        assert peer.version == "7"
        peer.open(tmp_path)
        peer.add([{"key": "a", "content": "xxx"}, {"key": "b", "content": "xxxxx"}])
        assert peer.search("xxxx!", 1) == ["b"]
        with pytest.raises(Unavailable, match="ValueError: a bad question"):
            peer.search("", 1)
        assert peer.search("xxx", 1) == ["a"]
        assert peer.cpu_seconds() > 100
    assert vectors.asked == [["xxx", "xxxxx"], ["xxxx!"], ["xxx"]]


@pytest.mark.slow
@pytest.mark.nightly
def test_the_peers_benchmark_goes_on_without_those_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO), encoding="utf-8")
    report = peers.run(data=tmp_path)
    assert report.skipped.keys() == peers.PEERS.keys()
    assert [row["memory"] for row in report.tables["LoCoMo, in one run"]] == [peers.BM25, peers.OURS]
    assert report.tables["LoCoMo, in one run"][0]["frac@10"] == 1.0
    assert report.settings["used in tuning"] == "none"


def test_the_peers_benchmark_asks_no_question_that_was_used_in_tuning(tmp_path: Path) -> None:
    used = [{**LOCOMO[0], "sample_id": name} for name in sorted(DEVELOPMENT)]
    (tmp_path / "locomo.json").write_text(json.dumps(used), encoding="utf-8")
    with pytest.raises(Missing, match="no conversation outside the development part"):
        peers.run(data=tmp_path)


def test_personas_are_asked_without_the_names_that_would_answer_everything(tmp_path: Path) -> None:
    session = {"id": "a_0", "content": "[SYSTEM] Ada is a baker.\n\n[USER] I bake.\n\n[ASSISTANT] How nice!"}
    asked = {
        "gold_ids": ["a_0"],
        "meta": {"retrieval_query": "User: Ada\n\nBread?", "question_type": "facts"},
    }
    (tmp_path / "personamem_32k").mkdir()
    (tmp_path / "personamem_32k" / "documents.json").write_text(json.dumps([session]), encoding="utf-8")
    (tmp_path / "personamem_32k" / "queries.json").write_text(json.dumps([asked]), encoding="utf-8")
    found = personas(tmp_path)
    assert [one.content for one in found.documents] == ["I bake.", "How nice!"]
    assert [one.text for one in found.questions] == ["Bread?"]
    assert found.questions[0].gold == {"a_0": 1.0}


def test_bench_runs_the_benchmark_of_the_source_with_its_own_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "benchmarks"
    package.mkdir()
    for file in ("__init__.py", "report.py"):
        (package / file).write_text("", encoding="utf-8")
    (package / "quality.py").write_text("import sys\nprint(sys.argv[1:])\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["vestige"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    bench.run("quality", ["--quick"], project=tmp_path)
    assert capsys.readouterr().out == "['--quick']\n"


def test_bench_says_that_an_installed_package_has_no_benchmarks(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="are in the source only"):
        bench.run("speed", [], project=tmp_path)
    with pytest.raises(InvalidInput) as refused:
        bench.run("qualty", [], project=tmp_path)
    assert refused.value.hint == "Did you mean `quality`?"


def test_published_plots_are_well_formed_and_named_in_their_reports() -> None:
    results = PROJECT / "benchmarks" / "results"
    for path in results.glob("*.svg"):
        ET.parse(path)
        reports = [one for one in results.glob("*.md") if path.stem.startswith(one.stem)]
        page = max(reports, key=lambda one: len(one.stem))
        assert f"({path.name})" in page.read_text(encoding="utf-8")


def _all_positive(rows: Sequence[Mapping[str, Cell]]) -> None:
    numbers = [cell for row in rows for cell in row.values() if isinstance(cell, float)]
    assert numbers
    assert min(numbers) > 0


# -- domains

TOPICS = ("kettle tea cup", "router packet route", "garden soil seed")


def _hashed(texts: Sequence[str]) -> NDArray[np.float32]:
    embedder = HashingEmbedder()
    return np.array([one.vector for one in embedder.encode_documents(texts)], dtype=np.float32)


def test_agreement_is_one_for_equal_groups_and_about_zero_for_chance() -> None:
    one = np.array([0, 0, 1, 1, 2, 2])
    assert domains.adjusted_rand(one, np.array([5, 5, 3, 3, 4, 4])) == 1.0
    assert domains.adjusted_rand(one, np.array([0, 1, 0, 1, 0, 1])) < 0.0
    assert domains.adjusted_rand(np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)) == 1.0


def test_groups_of_texts_are_found_and_missing_sets_are_named(tmp_path: Path) -> None:
    rows = [[f"{words} number {at}", label] for label, words in enumerate(TOPICS, 1) for at in range(20)]
    folder = tmp_path / "clusters"
    folder.mkdir()
    (folder / "so_dev.json").write_text(json.dumps(rows), encoding="utf-8")
    report = domains.run(tmp_path, _hashed, sizes=(300,))
    ours = report.tables["so_dev"][0]
    assert ours["groups"] == 3
    assert ours["ARI"] == 1.0
    assert {"b77s", "unrelated texts"} <= set(report.skipped)
    assert report.tables["assignment"][0]["right of assigned"] == 1.0


def test_a_benchmark_stores_texts_with_a_secret_through_mcp_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "off")
    text = "def login():\n    password = 'tr0ub4dor-and-3'\n    return connect('ada', password)"
    with OverStdio(tmp_path) as opened:
        stored = opened.call("smart_ingest", {"content": text, "force_create": True})
        found = opened.call("search", {"query": "tr0ub4dor-and-3", "record": False})
    assert [one["id"] for one in found["results"]] == [stored["nodeId"]]

"""The benchmark of the server, short. Here its counts are judged, not its times.

The soak holds for the server itself: after many requests of every kind it holds no more than before.
"""

from pathlib import Path

import pytest

from benchmarks.http import listeners, soak
from benchmarks.http.load import ARGUMENTS, Took
from benchmarks.http.run import run
from benchmarks.http.serving import TEST_EMBEDDER, serve
from benchmarks.http.soak import Sample, Soaked

REQUESTS = 700
"""In each of two soaks: what the first one leaves behind are pools and caches, and the second adds none."""
KEPT = 60
MOST_MEGABYTES = 25.0
MOST_TASKS = 3
MOST_THREADS, MOST_DESCRIPTORS = 16, 24
"""How full the pools of threads and connections are differs; a leak of one per session would be nearly 30."""


def test_growth_is_that_of_the_later_samples_and_is_told_for_ten_thousand_requests() -> None:
    def sample(requests: int, megabytes: float) -> Sample:
        return Sample(requests=requests, held={"memory MB": megabytes})

    warm = [sample(number, 10.0 * number) for number in range(3)]
    later = [sample(1_000 * number, 50.0 + number) for number in range(1, 8)]
    assert Soaked(samples=[*warm, *later]).slope("memory MB") == pytest.approx(10.0)


def test_what_answers_took_is_told_by_their_number_and_by_percentiles() -> None:
    took = Took(each=[0.001] * 19 + [0.1], wall=2.0, cpu=0.04)
    assert took.row() == {
        "per s": 10.0,
        "p50 ms": pytest.approx(1.0),
        "p95 ms": pytest.approx(5.95),
        "CPU ms": pytest.approx(2.0),
    }


@pytest.mark.slow
def test_a_server_that_was_much_used_holds_no_more_than_before(tmp_path: Path) -> None:
    with serve(tmp_path, settings=TEST_EMBEDDER) as server:
        first, second = (soak.run(server, requests=REQUESTS, kept=KEPT) for _ in range(2))

    assert second.count >= REQUESTS
    assert set(second.requests) == set(soak.MIX)
    assert second.listeners > soak.LISTENERS  # some left and others came
    more = {name: second.at_rest[name] - first.at_rest[name] for name in soak.HELD}
    assert more["memory MB"] < MOST_MEGABYTES
    assert more["tasks"] < MOST_TASKS
    assert more["threads"] < MOST_THREADS
    assert more["descriptors"] < MOST_DESCRIPTORS


@pytest.mark.slow
def test_each_way_is_measured_and_what_listeners_miss_adds_up(tmp_path: Path) -> None:
    report = run(data=None, memories=40, requests=8, clients=(1, 4), soak_requests=60, many=5)

    ways = ["in process", "REST", "MCP"]
    for name in ("Search", "Ingest"):
        assert [(row["clients"], row["way"]) for row in report.tables[name]] == [
            (clients, way) for clients in (1, 4) for way in ways
        ]
    assert len(report.tables["Overhead of a request, ms"]) == 2 * 2 * len(ARGUMENTS)
    assert list(report.skipped) == ["mcp-memory-service, REST"]
    (stalled,) = report.tables["The one that did not read"]
    assert stalled["happened"] == listeners.ROUNDS * listeners.BUSY + listeners.WRITES + 1
    (unaccounted,) = (target for target in report.targets if "neither told" in target.name)
    assert unaccounted.met

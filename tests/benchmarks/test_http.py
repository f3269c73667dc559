"""The benchmark of the server, short. Here its counts are judged, not its times.

The soak holds for the server itself: after many requests of every kind it holds no more than before.
"""

from collections import Counter
from collections.abc import Callable
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


def soaked(megabytes: Callable[[int], float]) -> Soaked:
    """A soak of 50,000 requests in which memory was so after each thousand."""
    rest = {name: 1.0 for name in soak.LIMITS if name != "memory MB"}
    samples = [
        Sample(requests=1_000 * number, held={"memory MB": megabytes(number), **rest})
        for number in range(1, 51)
    ]
    return Soaked(requests=Counter(search=50_000), samples=samples, at_rest=samples[-1].held)


def test_growth_is_that_of_the_second_half_and_is_judged_for_ten_thousand_requests() -> None:
    warm = soaked(lambda number: min(90.0, 40.0 + 2 * number))
    assert warm.slope("memory MB") == pytest.approx(0.0)
    assert all(target.met for target in warm.targets())

    leaking = soaked(lambda number: 40.0 + number)
    assert leaking.growth()[0] == {
        "held": "memory MB",
        "after 25,000": 65.0,
        "after 50,000": 90.0,
        "grows per 10,000 requests by": pytest.approx(10.0),
        "at most": soak.LIMITS["memory MB"],
        "when all have left": 90.0,
    }
    assert [target.met for target in leaking.targets()] == [False, True, True, True]


def test_a_soak_too_short_to_be_warm_is_not_judged() -> None:
    short = soaked(lambda number: 40.0 + number)
    short.requests = Counter(search=5_000)
    assert short.targets() == []


def test_what_answers_took_is_told_by_their_number_and_by_percentiles() -> None:
    took = Took(each=[0.001] * 19 + [0.1], wall=2.0, cpu=0.04)
    assert took.row() == {
        "per s": 10.0,
        "p50 ms": pytest.approx(1.0),
        "p95 ms": pytest.approx(5.95),
        "CPU ms": pytest.approx(2.0),
    }


@pytest.mark.slow
@pytest.mark.nightly
def test_a_server_that_was_much_used_holds_no_more_than_before(tmp_path: Path) -> None:
    with serve(tmp_path, settings=TEST_EMBEDDER) as server:
        first, second = (soak.run(server, requests=REQUESTS, kept=KEPT) for _ in range(2))

    assert second.count >= REQUESTS
    assert set(second.requests) == set(soak.MIX)
    assert second.listeners > soak.LISTENERS  # some left and others came
    more = {name: second.at_rest[name] - first.at_rest[name] for name in soak.LIMITS}
    assert more["memory MB"] < MOST_MEGABYTES
    assert more["tasks"] < MOST_TASKS
    assert more["threads"] < MOST_THREADS
    assert more["descriptors"] < MOST_DESCRIPTORS


@pytest.mark.slow
@pytest.mark.nightly
def test_each_way_is_measured_and_what_listeners_miss_adds_up(tmp_path: Path) -> None:
    report = run(data=None, memories=40, requests=8, clients=(1, 4), soak_requests=60, kept=60, many=5)

    ways = ["in process", "REST", "MCP"]
    for name in ("Search", "Ingest"):
        assert [(row["clients"], row["way"]) for row in report.tables[name]] == [
            (clients, way) for clients in (1, 4) for way in ways
        ]
    assert len(report.tables["Overhead of a request, ms"]) == 2 * 2 * len(ARGUMENTS)
    assert list(report.skipped) == ["mcp-memory-service, REST"]
    (stalled,) = report.tables["Listeners: the one that did not read"]
    assert stalled["events that happened"] == listeners.ROUNDS * listeners.BUSY + listeners.WRITES + 1
    (unaccounted,) = (target for target in report.targets if "neither told" in target.name)
    assert unaccounted.met
    assert list(report.plots) == ["search", "ingest"]
    assert "### Soak: growth in the second half" in report.markdown()

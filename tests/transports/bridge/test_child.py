"""The process behind the bridge misbehaves: a small program stands in for it, which does so on demand."""

import json
import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.bridge.harness import FAKE, Bridged, bridged, gone, wait_for

pytestmark = pytest.mark.slow


def echo(bridge: Bridged, query: str) -> dict[str, Any]:
    """The answer of a process that works. It may come late, on a busy machine, and the bridge not wait: then
    the process is asked again."""
    told: list[dict[str, Any]] = []

    def answered() -> bool:
        told.append(bridge.post("/search", {"query": query}).json())
        return told[-1].get("code") != "timeout"

    wait_for(answered)
    assert told[-1]["success"], told[-1]
    structured: dict[str, Any] = told[-1]["data"]["structured"]
    return structured


def messages(log: Path, method: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.get("method") == method]


def test_it_is_greeted_before_it_is_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"]) as bridge:
        echo(bridge, "x")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["method"] for line in lines] == [
        "initialize", "notifications/initialized", "tools/list", "tools/call",
    ]  # fmt: skip
    assert lines[0]["params"]["protocolVersion"] == "2025-11-25"
    assert [line["id"] for line in lines if "id" in line] == [1, 2, 3]


def test_a_reply_of_ten_megabytes_arrives_whole(faked: Bridged) -> None:
    answer = faked.told("/search", {"query": "big"})
    assert answer["data"]["structured"] == {"text": "x" * 10_000_000}


def test_ten_megabytes_on_standard_error_block_nothing(faked: Bridged) -> None:
    before = faked.pid()
    assert echo(faked, "flood") == {"flooded": True}
    assert echo(faked, "x")["pid"] == before


def test_lines_that_are_no_answers_are_passed_over(faked: Bridged) -> None:
    assert echo(faked, "noise") == {"noisy": True}
    assert echo(faked, "x")["arguments"]["query"] == "x"


def test_answers_find_their_callers_in_whatever_order_they_come(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"]) as bridge, ThreadPoolExecutor(1) as pool:
        late = pool.submit(echo, bridge, "later")
        wait_for(lambda: log.exists() and bool(messages(log, "tools/call")))
        assert echo(bridge, "now") == {"asked": "now"}
        assert late.result(PATIENCE_SECONDS) == {"asked": "later"}


def test_64_callers_at_once_get_their_own_answers(faked: Bridged) -> None:
    together = threading.Barrier(64)

    def ask(number: int) -> object:
        together.wait(PATIENCE_SECONDS)
        return echo(faked, f"number {number}")["arguments"]["query"]

    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(ask, range(64))) == [f"number {number}" for number in range(64)]


def test_an_error_of_the_protocol_is_a_failure_of_the_bridge(faked: Bridged) -> None:
    response = faked.post("/search", {"query": "fault"})
    assert (response.status_code, response.json()["code"]) == (502, "protocol")
    assert "Unknown tool" in response.json()["detail"]


def test_a_process_that_tells_only_words_will_do(faked: Bridged) -> None:
    assert faked.told("/search", {"query": "words"})["data"] == {
        "content": [{"type": "text", "text": "only words"}],
        "structured": None,
    }


@pytest.mark.parametrize(
    ("path", "sent"), [("/search", 2), ("/ingest", 2), ("/promote", 1), ("/consolidate", 1)]
)
def test_what_may_be_repeated_is_sent_once_more_when_it_dies(tmp_path: Path, path: str, sent: int) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"]) as bridge:
        response = bridge.post(path, {"query": "die", "memory_id": "x"})
        assert (response.status_code, response.json()["code"]) == (502, "child_lost")
        assert echo(bridge, "x")["arguments"]["query"] == "x"
    calls = messages(log, "tools/call")
    assert len(calls) == sent + 1
    assert len({json.dumps(call["params"]) for call in calls[:sent]}) == 1, "the same, with the same key"
    assert len(messages(log, "initialize")) == sent + 1
    ids = [call["id"] for call in calls]
    assert ids == sorted(set(ids)), "no id is used twice"


def test_a_slow_process_is_told_that_nobody_waits_and_stays(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"], bridge__request_timeout=2) as bridge:
        before = bridge.pid()
        response = bridge.post("/search", {"query": "silence"})
        assert (response.status_code, response.json()["code"]) == (502, "timeout")
        assert echo(bridge, "x")["pid"] == before
    cancelled = messages(log, "notifications/cancelled")[0]
    assert cancelled["params"]["requestId"] == messages(log, "tools/call")[0]["id"]
    assert messages(log, "ping")


def test_a_process_that_hangs_is_replaced(tmp_path: Path) -> None:
    with bridged(tmp_path, FAKE, probe_seconds=0.5, bridge__request_timeout=2) as bridge:
        before = bridge.pid()
        response = bridge.post("/search", {"query": "hang"})
        assert (response.status_code, response.json()["code"]) == (502, "timeout")
        after = bridge.pid(other_than=before)
        assert gone(before)
        assert echo(bridge, "x")["pid"] == after


@pytest.mark.parametrize("path", ["/search", "/ingest"])
def test_what_was_under_way_when_it_hung_is_not_sent_to_the_next(tmp_path: Path, path: str) -> None:
    log = tmp_path / "log"
    with (
        bridged(tmp_path / "data", [*FAKE, f"log={log}"], probe_seconds=0.5) as bridge,
        ThreadPoolExecutor(1) as pool,
    ):
        before = echo(bridge, "x")["pid"]
        asked = pool.submit(bridge.post, path, {"query": "hang"})
        wait_for(lambda: len(messages(log, "tools/call")) == 2)
        assert bridge.http.get("/health").status_code == 503  # which has it looked into
        response = asked.result(PATIENCE_SECONDS)
        assert (response.status_code, response.json()["code"]) == (502, "child_lost")
        assert echo(bridge, "x")["pid"] != before
    assert [call["params"]["arguments"]["query"] for call in messages(log, "tools/call")] == [
        "x",
        "hang",
        "x",
    ]


@pytest.mark.parametrize("items", [1_001, 1_000_000])
def test_it_never_sees_a_body_of_too_many_values(tmp_path: Path, items: int) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"]) as bridge:
        response = bridge.post("/ingest", {"items": [{}] * items})
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        assert echo(bridge, "x")["arguments"]["query"] == "x"
    assert [call["params"]["name"] for call in messages(log, "tools/call")] == ["search"]


def timed_out(bridge: Bridged, path: str, query: str) -> None:
    response = bridge.post(path, {"query": query})
    assert (response.status_code, response.json()["code"]) == (502, "timeout")


def test_one_that_works_no_more_though_it_answers_pings_is_replaced(tmp_path: Path) -> None:
    with bridged(tmp_path, FAKE, bridge__request_timeout=2) as bridge:
        before = echo(bridge, "x")["pid"]
        timed_out(bridge, "/search", "stuck")
        assert bridge.http.get("/health").status_code == 200
        after = bridge.pid(other_than=before)  # nobody else had to wait in vain
        assert gone(before)
        assert echo(bridge, "x")["pid"] == after


def test_one_that_is_slow_with_one_call_stays(tmp_path: Path) -> None:
    released, log = tmp_path / "released", tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"], bridge__request_timeout=5) as bridge:
        before = echo(bridge, "x")["pid"]
        timed_out(bridge, "/search", f"until {released}")
        wait_for(lambda: len(messages(log, "tools/call")) == 3)  # the bridge looks whether work goes on
        released.touch()
        assert echo(bridge, "x")["pid"] == before
        assert bridge.pid() == before


def test_one_that_answers_others_stays_though_it_does_not_answer_the_bridge(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, "no-memory", f"log={log}"], bridge__request_timeout=2) as bridge:
        before = echo(bridge, "x")["pid"]
        timed_out(bridge, "/search", "silence")
        assert echo(bridge, "x")["pid"] == before
        wait_for(lambda: len(messages(log, "notifications/cancelled")) >= 2)  # the bridge waits no longer
        assert echo(bridge, "x")["pid"] == before


def test_one_that_has_answered_nothing_yet_may_be_opening_a_large_memory(tmp_path: Path) -> None:
    released = tmp_path / "released"
    with bridged(tmp_path / "data", FAKE, bridge__request_timeout=1) as bridge:
        before = bridge.pid()
        for _ in range(3):
            timed_out(bridge, "/search", f"until {released}")
        released.touch()
        assert echo(bridge, "x")["pid"] == before


def test_one_that_never_gets_done_with_its_opening_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.transports.bridge.supervisor.OPENING_SECONDS", 1.0)
    with bridged(tmp_path, FAKE, bridge__request_timeout=1) as bridge:
        before = bridge.pid()
        timed_out(bridge, "/search", "stuck")
        bridge.pid(other_than=before)
        assert gone(before)


def test_long_work_runs_beside_and_says_nothing_about_the_rest(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bridged(tmp_path / "data", [*FAKE, f"log={log}"], bridge__long_timeout=1) as bridge:
        before = echo(bridge, "x")["pid"]
        timed_out(bridge, "/dream", "stuck")
        wait_for(lambda: bool(messages(log, "ping")))
        assert echo(bridge, "x")["pid"] == before
    assert [call["params"]["name"] for call in messages(log, "tools/call")] == ["search", "dream", "search"]


def test_one_that_hangs_is_found_out_by_a_probe_alone(tmp_path: Path) -> None:
    with bridged(tmp_path, FAKE, probe_seconds=0.5) as bridge:
        before = bridge.pid()
        os.kill(before, signal.SIGSTOP)
        health = bridge.http.get("/health")
        assert health.status_code == 503
        told = health.json()
        assert (told["status"], told["vestige_process"], told["vestige_connected"]) == (
            "unhealthy",
            True,
            False,
        )
        bridge.pid(other_than=before)
        wait_for(lambda: bridge.http.get("/health").status_code == 200)


def test_one_that_dies_with_nothing_to_do_is_replaced(tmp_path: Path) -> None:
    with bridged(tmp_path, FAKE) as bridge:
        before = bridge.pid()
        os.kill(before, signal.SIGKILL)
        assert bridge.pid(other_than=before)
        assert gone(before)


def test_tools_that_cannot_be_listed_are_only_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "vestige.transports.bridge"),
        bridged(tmp_path, [*FAKE, "no-list"]) as bridge,
    ):
        assert echo(bridge, "x")["name"] == "search"
    assert "does not list its tools" in caplog.text


def test_one_that_never_begins_is_told_with_its_last_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "vestige.transports.bridge"),
        bridged(tmp_path, [*FAKE, "never"]) as bridge,
    ):
        response = bridge.post("/search", {"query": "x"})
        assert (response.status_code, response.json()["code"]) == (502, "child_down")
        assert bridge.http.get("/health").json()["status"] == "unhealthy"
        ready = bridge.http.get("/readyz")
        assert (ready.status_code, ready.json()["detail"]) == (503, "vestige-mcp not ready")
    assert "I have no wish to begin" in caplog.text


def test_a_program_that_cannot_be_run_is_no_end_of_the_bridge(tmp_path: Path) -> None:
    with bridged(tmp_path, [str(tmp_path / "nothing")]) as bridge:
        assert bridge.post("/search", {"query": "x"}).json()["code"] == "child_down"


@pytest.mark.parametrize("state", ["idle", "stopped"])
def test_none_is_left_when_the_bridge_ends(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.transports.bridge.child.CLOSE_SECONDS", 0.3)
    monkeypatch.setattr("vestige.transports.bridge.child.TERMINATE_SECONDS", 0.3)
    with bridged(tmp_path, FAKE) as bridge:
        pid = bridge.pid()
        if state == "stopped":
            os.kill(pid, signal.SIGSTOP)
    assert gone(pid)

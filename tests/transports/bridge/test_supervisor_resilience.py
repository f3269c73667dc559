"""A real `vestige-mcp` is killed, stopped and crowded while agents work: nothing is lost or mixed up."""

import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from testbed.effort import effort
from testbed.patience import PATIENCE_SECONDS
from tests.transports.bridge.harness import BEARER, Bridged, bridged, gone, wait_for

pytestmark = pytest.mark.slow

KILLS = effort(8, nightly=100)
CALLERS = 8
REPEATS = 20
PAGE = 100


class Traffic:
    """Agents that store, search and promote without a pause, and remember what they were promised."""

    def __init__(self, bridge: Bridged) -> None:
        self._bridge = bridge
        self._lock = threading.Lock()
        self.ending = threading.Event()
        self.promised: dict[str, str] = {}
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.failures: list[Exception] = []

    def go_on(self, answers: int) -> None:
        """Wait until so many more requests have been answered."""
        enough = sum(self.outcomes.values()) + answers
        wait_for(lambda: bool(self.failures) or sum(self.outcomes.values()) >= enough)
        assert self.failures == []

    def work(self, caller: int) -> None:
        """What one agent does until all of them end."""
        try:
            self._work(caller)
        except Exception as exc:  # told by whoever waits, or it would wait in vain
            self.failures.append(exc)
            raise

    def _work(self, caller: int) -> None:
        mine = [""]
        with httpx.Client(base_url=self._bridge.url, timeout=PATIENCE_SECONDS, headers=BEARER) as http:
            for turn in range(1_000_000):
                if self.ending.is_set():
                    return
                text = f"Caller {caller} counts the sheep number {turn}."
                match turn % 4:
                    case 0 | 2:
                        self._store(http, text, mine)
                    case 1:
                        self._search(http, f"sheep {caller} {turn}")
                    case _:
                        self._promote(http, mine[-1])

    def _store(self, http: httpx.Client, text: str, mine: list[str]) -> None:
        # As new, so that a text stored twice could not be taken for one that was known already.
        told = self._note(http.post("/ingest", json={"content": text, "force_create": True}))
        if told:
            mine.append(told["nodeId"])
            with self._lock:
                self.promised[told["nodeId"]] = text

    def _search(self, http: httpx.Client, query: str) -> None:
        told = self._note(http.post("/search", json={"query": query, "limit": 3}))
        if told and told["query"] != query:
            self.wrong.append(f"{query}: {told}")

    def _promote(self, http: httpx.Client, memory_id: str) -> None:
        told = self._note(http.post("/promote", json={"memory_id": memory_id or "none"}))
        if told and told["id"] != memory_id:
            self.wrong.append(f"{memory_id}: {told}")

    def _note(self, response: httpx.Response) -> dict[str, str]:
        """Count what became of a request; what its tool said if it did what it was asked for."""
        body = response.json()
        done = response.status_code == 200 and body["success"]
        with self._lock:
            self.outcomes["done" if done else f"{response.status_code} {body['code']}"] += 1
        told: dict[str, str] = body["data"]["structured"] if done else {}
        return told


def stored(bridge: Bridged) -> list[tuple[str, str]]:
    """Every memory there is: id and text."""
    found: list[tuple[str, str]] = []
    while True:
        page = bridge.data(
            "/memory", {"action": "list", "limit": PAGE, "offset": len(found), "detail_level": "full"}
        )
        found += [(one["id"], one["content"]) for one in page["results"]]
        if len(page["results"]) < PAGE:
            return found


def test_killed_again_and_again_during_traffic_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with bridged(tmp_path, bridge__request_timeout=60, server__requests_per_minute=0) as bridge:
        traffic = Traffic(bridge)
        killed: list[int] = []
        with ThreadPoolExecutor(CALLERS) as pool:
            agents = [pool.submit(traffic.work, caller) for caller in range(CALLERS)]
            try:
                for kill in range(KILLS):
                    pid = bridge.pid(other_than=killed[-1] if killed else 0)
                    traffic.go_on(kill % 7)  # now it has not said a word, now it is in the midst of its work
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            finally:
                traffic.ending.set()
            for agent in agents:
                agent.result(PATIENCE_SECONDS)
        assert len(killed) == KILLS
        wait_for(lambda: all(gone(pid) for pid in killed))  # the last one may not be collected yet
        assert traffic.wrong == []
        there = stored(bridge)
        texts = dict(there)
        lost = {memory_id for memory_id, text in traffic.promised.items() if texts.get(memory_id) != text}
        assert lost == set()
        doubled = {text: times for text, times in Counter(text for _, text in there).items() if times > 1}
        assert doubled == {}
        known = {"done", "200 not_found", "502 child_lost", "502 child_down"}
        assert set(traffic.outcomes) <= known, traffic.outcomes
        assert traffic.outcomes["done"] > KILLS


def test_stopped_in_the_midst_of_work_it_is_replaced_and_what_is_repeated_is_stored_once(
    tmp_path: Path,
) -> None:
    with bridged(tmp_path, bridge__request_timeout=60, probe_seconds=1) as bridge:
        bridge.remember("The stork stands on one leg.")
        before = bridge.pid()
        os.kill(before, signal.SIGSTOP)
        assert bridge.http.get("/health").status_code == 503  # which has it looked into
        texts = [f"Stork number {number} flies to Egypt." for number in range(6)]

        def store(text: str) -> None:
            for _ in range(REPEATS):  # on a busy machine the next one may be slow too
                body = {"content": text, "force_create": True, "idempotency_key": text}
                told = bridge.post("/ingest", body)
                if told.status_code == 200:
                    return
                assert told.json()["code"] == "child_lost"
            raise AssertionError("it is never stored")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(store, texts))
        assert gone(before)
        assert sorted(text for _, text in stored(bridge) if text in texts) == texts


def test_64_callers_at_once_are_served_by_one_process(tmp_path: Path) -> None:
    with bridged(tmp_path) as bridge:
        pid = bridge.pid()
        together = threading.Barrier(64)

        def ask(number: int) -> str:
            together.wait(PATIENCE_SECONDS)
            return str(bridge.data("/search", {"query": f"heron number {number}"})["query"])

        with ThreadPoolExecutor(64) as pool:
            assert list(pool.map(ask, range(64))) == [f"heron number {number}" for number in range(64)]
        assert bridge.pid() == pid

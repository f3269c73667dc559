"""`vestige bridge` as a real process: what it says, and how it ends."""

import errno
import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from testbed import patient_http
from testbed.patience import PATIENCE_SECONDS
from tests.transports.bridge.harness import BEARER, TOKEN, gone, running, wait_for

pytestmark = pytest.mark.slow


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in found.read_text(encoding="utf-8").split()] if found.exists() else []


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_ends_with_everything_it_started(tmp_path: Path, sig: signal.Signals) -> None:
    with running(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN) as (url, process, log):
        told = patient_http.post(f"{url}/ingest", json={"content": "Ada drinks tea."}, headers=BEARER)
        assert told.json()["success"]
        [child] = children(process.pid)
        process.send_signal(sig)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert gone(child)
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    requests = [line for line in lines if "route" in line]
    assert [(line["route"], line["status"]) for line in requests] == [("/ingest", 200)]
    [tools] = [line["message"] for line in lines if "has the tools" in line.get("message", "")]
    assert "smart_ingest" in tools
    assert TOKEN not in str(lines)
    assert "Ada" not in str(lines)


def test_ended_in_the_midst_of_work_it_keeps_what_it_promised(tmp_path: Path) -> None:
    texts = [f"Fact {number} is about the number {number * 7}." for number in range(16)]
    with running(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN) as (url, process, _), ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(stored, url, text) for text in texts]
        wait_for(lambda: any(answer.done() for answer in answers))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0
        promised = {text for text, answer in zip(texts, answers, strict=True) if answer.result()}
    with running(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN) as (url, _, _):
        body = {"action": "list", "limit": 100}
        listed = patient_http.post(f"{url}/memory", json=body, headers=BEARER).json()
        kept = [one["content"] for one in listed["data"]["structured"]["results"]]
    assert promised
    assert promised <= set(kept)
    assert len(kept) == len(set(kept))


def stored(url: str, text: str) -> bool:
    """Whether the bridge says that it has stored a text; not if it is gone already."""
    body = {"content": text, "force_create": True}
    try:
        answer = patient_http.post(f"{url}/ingest", json=body, headers=BEARER)
    except httpx.TransportError:
        return False
    return answer.status_code == 200 and bool(answer.json()["success"])


def test_its_child_ends_even_if_it_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN) as (_, process, _):
        wait_for(lambda: bool(children(process.pid)))
        [child] = children(process.pid)
        process.kill()
        process.wait(PATIENCE_SECONDS)
        wait_for(lambda: gone(child))


def test_everybody_on_this_machine_is_let_in_when_that_was_said(tmp_path: Path) -> None:
    with running(tmp_path, VESTIGE_ALLOW_ANONYMOUS="true") as (url, _, _):
        told = patient_http.post(f"{url}/search", json={"query": "x"})
        assert told.json()["success"]


def test_beyond_the_limit_an_idle_connection_goes_for_a_new_one(tmp_path: Path) -> None:
    with running(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN, VESTIGE_SERVER_MAX_CONNECTIONS="1") as (url, _, _):
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_SECONDS) as idle:
            told = patient_http.get(f"{url}/readyz")
            assert "json" in told.headers["content-type"]  # and no short refusal at the door
            assert idle.recv(1) == b""  # it had to go for the other one


def test_bodies_of_a_million_values_at_once_are_refused_and_harm_nobody(tmp_path: Path) -> None:
    body = b'{"items":[' + b"{}," * 1_390_000 + b"{}]}"
    with running(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN) as (url, process, _), ThreadPoolExecutor(15) as pool:

        def ask(_: int) -> int:
            told = patient_http.post(f"{url}/ingest", content=body, headers=BEARER)
            return told.status_code

        until_ready(url)
        before = children(process.pid)
        assert set(pool.map(ask, range(15))) == {413}
        assert patient_http.get(f"{url}/health").status_code == 200
        assert children(process.pid) == before


def until_ready(url: str) -> None:
    wait_for(lambda: patient_http.get(f"{url}/readyz").status_code == 200)


@pytest.mark.parametrize("at_once", [False, True])
def test_more_silent_connections_than_descriptors_keep_nobody_out(tmp_path: Path, at_once: bool) -> None:
    with (
        running(tmp_path, descriptors=256, VESTIGE_AUTH_TOKEN=TOKEN) as (url, process, log),
        ExitStack() as silent,
    ):
        until_ready(url)
        place = urlsplit(url)
        if at_once:
            process.send_signal(signal.SIGSTOP)
        for _ in range(300):
            one = silent.enter_context(socket.socket())
            one.settimeout(0 if at_once else PATIENCE_SECONDS)
            assert one.connect_ex((place.hostname, place.port)) in (0, errno.EINPROGRESS)
        process.send_signal(signal.SIGCONT)
        assert patient_http.get(f"{url}/health").status_code == 200
        assert "out of system resource" not in log.read_text(encoding="utf-8")


def test_its_settings_come_from_the_file_it_is_given(tmp_path: Path) -> None:
    config = tmp_path / "other.toml"
    config.write_text('[memory]\nscope = "/team"\n[bridge]\nisolate_agents = false\n', encoding="utf-8")
    with running(tmp_path, "--config", str(config), VESTIGE_AUTH_TOKEN=TOKEN) as (url, _, _):
        told = patient_http.post(f"{url}/ingest", json={"content": "x y"}, headers=BEARER)
        assert told.json()["data"]["structured"]["scope"] == "/team"

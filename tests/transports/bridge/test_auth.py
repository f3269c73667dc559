"""Who is let in, and how the bridge refuses to start."""

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import httpx
import pytest

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from tests.transports.bridge.harness import BEARER, FAKE, TOKEN, Bridged, bridged
from vestige.transports.bridge.requests import READERS

_machines = count(1)


def guesser(bridge: Bridged) -> httpx.Client:
    """A client at an address of its own, so that its failures are counted for nobody else."""
    number = next(_machines)
    address = f"127.1.{number // 250}.{1 + number % 250}"
    return httpx.Client(
        base_url=bridge.url, transport=httpx.HTTPTransport(local_address=address), timeout=PATIENCE_SECONDS
    )


@pytest.mark.slow
@each("path", READERS)
@each(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer x{TOKEN}",
    ],
)
def test_without_the_token_nothing_is_answered(faked: Bridged, path: str, header: str | None) -> None:
    sent = {} if header is None else {"Authorization": header.strip()}
    with guesser(faked) as http:
        response = http.post(path, json={"query": "x", "action": "get"}, headers=sent)
    assert response.status_code == 401
    assert response.json()["detail"] == "Invalid or missing bearer token"
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.headers["x-request-id"]


@pytest.mark.slow
def test_two_credentials_are_none(faked: Bridged) -> None:
    value = BEARER["Authorization"].encode()
    headers = [(b"authorization", value), (b"authorization", value)]
    with guesser(faked) as http:
        assert http.post("/search", json={"query": "x"}, headers=headers).status_code == 401


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_with_the_token_everything_is(faked: Bridged, scheme: str) -> None:
    sent = {"Authorization": f"{scheme} {TOKEN}"}
    assert faked.http.post("/search", json={"query": "x"}, headers=sent).status_code == 200


@pytest.mark.slow
def test_probes_need_no_token(faked: Bridged) -> None:
    faked.pid()
    assert faked.http.get("/health").status_code == 200
    assert faked.http.get("/readyz").status_code == 200


@pytest.mark.slow
def test_other_addresses_say_nothing_without_the_token(faked: Bridged) -> None:
    for path in ("/", "/docs", "/openapi.json", "/health/", "/nothing"):
        assert faked.http.get(path).status_code == 401


@pytest.mark.slow
def test_a_large_body_is_refused(tmp_path: Path) -> None:
    with bridged(tmp_path, FAKE, server__max_body_bytes=1_024) as small:
        response = small.post("/ingest", {"content": "x" * 2_000})
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        parts = (b"x" * 100 for _ in range(20))  # without a length
        assert small.http.post("/ingest", content=parts, headers=BEARER).status_code == 413


@pytest.mark.slow
def test_pages_of_other_sites_are_refused(faked: Bridged) -> None:
    assert faked.post("/search", {"query": "x"}, Origin="https://evil.example").status_code == 403


@pytest.mark.slow
def test_with_a_token_any_name_of_the_bridge_will_do(faked: Bridged) -> None:
    assert faked.post("/search", {"query": "x"}, Host="vestige.internal:8000").status_code == 200


@pytest.mark.slow
def test_without_a_token_names_are_checked_against_rebinding(tmp_path: Path) -> None:
    with bridged(tmp_path, FAKE, token=None) as anybody:
        assert anybody.http.post("/search", json={"query": "x"}).status_code == 200
        evil = anybody.http.post("/search", json={"query": "x"}, headers={"Host": "evil.example"})
        assert evil.status_code == 421


@pytest.mark.slow
def test_whoever_guesses_too_often_is_not_even_listened_to_and_others_are(
    faked: Bridged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "vestige.transports.http.auth.failures.LOCK_FAILURES", 3
    )  # before they are answered late
    wrong = {"Authorization": "Bearer wrong"}
    with guesser(faked) as one, guesser(faked) as other:
        statuses = [one.post("/search", json={}, headers=wrong).status_code for _ in range(3)]
        assert statuses == [401, 401, 429]
        right = one.post("/search", json={"query": "x"}, headers=BEARER)
        assert (right.status_code, right.json()["code"]) == (429, "rate_limited")
        assert one.get("/readyz").status_code == 200
        assert other.post("/search", json={"query": "x"}, headers=BEARER).status_code == 200


WATCHED = """
import sys
calls = []
def watch(event, args):
    if event.startswith("socket.") and event != "socket.gethostname":
        calls.append(event)
sys.addaudithook(watch)
from vestige.app.console import main
try:
    main(sys.argv[1:])
except SystemExit:
    print(calls)
    raise
"""


def start(
    folder: Path, environ: Mapping[str, str], *, bind: str = "127.0.0.1:0", watched: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run `vestige bridge` where it must refuse to start; watched, it tells what it did with sockets."""
    program = ["-c", WATCHED] if watched else ["-m", "vestige"]
    return subprocess.run(
        [sys.executable, *program, "bridge", "--bind", bind],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "VESTIGE_DATA_DIR": str(folder), **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "has no token"),
        ({"VESTIGE_ALLOW_ANONYMOUS": "false"}, "has no token"),
        ({"VESTIGE_AUTH_TOKEN": ""}, "empty"),
        ({"VESTIGE_AUTH_TOKEN": " \t", "VESTIGE_ALLOW_ANONYMOUS": "true"}, "empty"),
        ({"VESTIGE_AUTH_TOKEN": "t", "VESTIGE_BINARY": "no-such-program"}, "no program"),
        ({"VESTIGE_AUTH_TOKEN": "t", "VESTIGE_REQUEST_TIMEOUT": "-1"}, "request_timeout"),
        ({"VESTIGE_AUTH_TOKEN": "t", "VESTIGE_ALLOW_ANONYMOUS": "perhaps"}, "allow_anonymous"),
    ],
)  # fmt: skip
def test_what_is_unsafe_or_cannot_work_does_not_start(
    tmp_path: Path, environ: dict[str, str], told: str
) -> None:
    done = start(tmp_path, environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"])
def test_without_a_token_it_never_listens_where_others_could_reach_it(tmp_path: Path, bind: str) -> None:
    done = start(tmp_path, {"VESTIGE_ALLOW_ANONYMOUS": "true"}, bind=bind, watched=True)
    assert done.returncode == 2
    assert f"refusing to bind {bind}" in done.stderr
    assert "VESTIGE_AUTH_TOKEN" in done.stderr
    assert "--bind" in done.stderr
    assert done.stdout.strip() == "[]"  # not a socket was made, nor a name looked up
    assert list(tmp_path.iterdir()) == []

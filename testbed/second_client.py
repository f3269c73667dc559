"""A client on another machine: `python -m testbed.second_client URL [KEY]` prints what came of it."""

import json
import socket
import sys
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import InvalidStatus

from testbed import patient_http
from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import bearer, listening
from tests.transports.mcp.harness import sdk_remote
from vestige.client import Client

ERAS = ("2026-07-28", "legacy")
ROUTES = (
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("GET", "/api/v1/memories"),
    ("POST", "/api/v1/search"),
    ("GET", "/api/v1/events"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
)


def is_open(url: str) -> bool:
    """Whether anybody listens there."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port), PATIENCE_SECONDS):
            return True
    except ConnectionRefusedError:
        return False


def without_key(url: str) -> dict[str, int]:
    """The status that each route answers to who shows no key."""
    told = {
        f"{method} {path}": patient_http.request(method, url + path).status_code for method, path in ROUTES
    }
    try:
        with listening(url):
            return told
    except InvalidStatus as refused:
        return {**told, "/ws": refused.response.status_code}


def with_wrong_keys(url: str) -> list[int]:
    """The status that is answered to keys that are none. Few: more would be made to wait."""
    wrong = (bearer("vst_" + "A" * 30), bearer("a guess"), {"X-API-Key": "a guess"})
    return [patient_http.get(f"{url}/api/v1/memories", headers=headers).status_code for headers in wrong]


def work(url: str, key: str) -> dict[str, Any]:
    """Use the server in every way there is."""
    with Client(url, key=key) as client:
        client.smart_ingest("The other machine keeps bees.")
        (found,) = client.search("Who keeps bees?")["results"]
    agents = {}
    for era in ERAS:
        with sdk_remote(f"{url}/mcp", mode=era, headers=bearer(key)) as agent:
            read = agent.tool("memory", {"action": "get", "id": found["id"]}).structured_content
            agents[era] = read is not None and read["node"]["content"]
    with listening(url, bearer(key)) as listener:
        heard = json.loads(listener.recv(PATIENCE_SECONDS))["type"]
    return {"found": found["content"], "agents": agents, "heard": heard}


def main(url: str, key: str = "") -> None:
    """Look whether it is open, then work there, or see what is refused."""
    if not is_open(url):
        outcome: dict[str, Any] = {"open": False}
    elif key:
        outcome = {"open": True, **work(url, key)}
    else:
        outcome = {"open": True, "without": without_key(url), "wrong": with_wrong_keys(url)}
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The Python client against a real server, and what it costs to import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.transports.http.support.harness import key_in, serving
from vestige.client import Client, Unauthenticated, Unreachable
from vestige.core.errors import Forbidden

pytestmark = pytest.mark.slow


def test_a_client_works_with_a_real_server(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        key, reader = key_in(tmp_path / "data"), key_in(tmp_path / "data", "read")
        with Client(server.url, key=key) as client:
            client.smart_ingest("Ada drinks tea.", idempotency_key="once")
            again = client.smart_ingest("Ada drinks tea.", idempotency_key="once")
            assert again["replayed"]
            assert [hit.get("content") for hit in client.search("tea")["results"]] == ["Ada drinks tea."]
        with Client(server.url, key=reader) as client, pytest.raises(Forbidden):
            client.smart_ingest("Ada drinks coffee.")
        with Client(server.url) as client, pytest.raises(Unauthenticated):
            client.system_status()
        url = server.url
    with Client(url, key=key) as client, pytest.raises(Unreachable):
        client.system_status()


def test_importing_the_client_imports_nothing_of_the_engine() -> None:
    code = "import vestige.client, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(json.loads(done.stdout))
    assert "vestige.client.operations" in loaded
    assert not loaded & {"pydantic", "numpy", "click", "httpx", "vestige.core.models", "vestige.operations"}

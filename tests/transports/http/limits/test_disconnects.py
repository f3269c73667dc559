"""Streams whose clients send a body that never ends: they are refused, and nothing of ours has failed."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import Message

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Site, bearer, new_site
from tests.transports.http.support.mcp_requests import ACCEPT, open_session


async def listen(site: Site, path: str, headers: dict[str, str]) -> list[MutableMapping[str, Any]]:
    """All that is said to a client that sends ever more."""
    told: list[MutableMapping[str, Any]] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 3927),
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
    }

    async def receive() -> Message:
        await anyio.sleep(0)
        return {"type": "http.request", "body": b"x" * 500, "more_body": True}

    async def send(event: MutableMapping[str, Any]) -> None:
        told.append(event)

    await site.http.app(scope, receive, send)
    return told


@pytest.mark.parametrize("path", ["/api/v1/events", "/mcp"])
def test_a_client_that_sends_without_end_gets_no_stream_and_no_bug_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    with new_site(tmp_path, {"server.max_body_bytes": 2_000}) as site:
        session = open_session(site.http, headers=bearer(site.key("read")))
        headers = {"Host": "127.0.0.1:3927", "Transfer-Encoding": "chunked", **ACCEPT, **session}
        assert site.http.portal
        told = site.http.portal.start_task_soon(listen, site, path, headers).result(PATIENCE_SECONDS)

    assert [event["status"] for event in told if "status" in event] == [413]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []

"""Which hosts the server answers to, and which web pages may use it."""

from pathlib import Path

import pytest
from starlette.testclient import WebSocketDenialResponse

from tests.transports.http.support.harness import URL, WS, Site, bearer, new_site
from vestige.transports.http.auth.addresses import Bind, bind_of
from vestige.transports.http.auth.hosts import AllowedNames

FRIEND = "https://friend.example"


@pytest.mark.parametrize("host", ["127.0.0.1:3927", "localhost:3927", "LOCALHOST", "[::1]:3927", "127.0.0.1"])
def test_this_machine_is_known_by_its_own_names(shell: Site, host: str) -> None:
    assert shell.http.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:3927",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example@localhost",
        "192.168.1.7:3927",
        "",
        "[::1",
        "127.0.0.1:port",
    ],
)
def test_a_name_that_was_made_to_point_here_is_refused(shell: Site, host: str) -> None:
    response = shell.http.get("/health", headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (421, "wrong_host")


def test_two_hosts_are_no_host(shell: Site) -> None:
    headers = [("Host", "127.0.0.1:3927"), ("Host", "evil.example")]
    assert shell.http.get("/health", headers=headers).status_code == 421


def test_names_that_are_set_are_answered_to(tmp_path: Path) -> None:
    with new_site(
        tmp_path, {"server.allowed_hosts": ["memory.example", "proxy.example:8443"]}, parts=()
    ) as site:
        for host, status in {
            "memory.example": 200,
            "Memory.Example:3927": 200,
            "proxy.example:8443": 200,
            "proxy.example:3927": 421,
            "other.example": 421,
        }.items():
            assert site.http.get("/health", headers={"Host": host}).status_code == status, host


@pytest.mark.parametrize(
    ("bind", "host", "known"),
    [
        ("0.0.0.0:3927", "10.1.2.3:3927", True),  # a probe by address, as Kubernetes sends it
        ("0.0.0.0:3927", "[fd00::7]:3927", True),
        ("[::]:3927", "10.1.2.3", True),
        ("0.0.0.0:3927", "evil.example", False),
        ("10.1.2.3:3927", "10.1.2.3:3927", True),
        ("10.1.2.3:3927", "10.1.2.4:3927", False),
        ("memory.lan:3927", "memory.lan:3927", True),
    ],
)
def test_literal_addresses_are_answered_to_where_the_server_listens_on_all(
    bind: str, host: str, known: bool
) -> None:
    assert AllowedNames.of(bind_of(bind), (), ()).answers_to(host) is known


def test_a_bind_knows_what_it_is() -> None:
    assert bind_of("[::]:0") == Bind(host="::", port=0)
    assert Bind(host="::", port=0).wildcard
    assert str(Bind(host="::1", port=80)) == "[::1]:80"


@pytest.mark.parametrize("origin", [URL, "http://127.0.0.1:3927/", "HTTP://127.0.0.1:3927"])
def test_pages_of_the_server_itself_may_use_it(shell: Site, origin: str) -> None:
    response = shell.http.get("/health", headers={"Origin": origin})
    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:3927",
        "http://127.0.0.1:3928",
        "http://127.0.0.1",
        "x",
    ],
)
def test_pages_of_other_origins_may_not(shell: Site, origin: str) -> None:
    headers = {"Origin": origin, **bearer(shell.key())}
    response = shell.http.get("/metrics", headers=headers)
    assert (response.status_code, response.json()["code"]) == (403, "wrong_origin")
    assert "access-control-allow-origin" not in response.headers


def test_two_origins_are_refused(shell: Site) -> None:
    headers = [("Origin", URL), ("Origin", "http://evil.example")]
    assert shell.http.get("/health", headers=headers).status_code == 403


def test_an_origin_that_is_set_may_read_answers_but_brings_no_cookies(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.allowed_origins": [FRIEND]}, parts=()) as site:
        response = site.http.get("/metrics", headers={"Origin": FRIEND, **bearer(site.key())})
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == FRIEND
        assert "Origin" in response.headers["vary"]
        assert "access-control-allow-credentials" not in response.headers
        assert site.http.get("/health", headers={"Origin": "https://friend.example.evil"}).status_code == 403


def test_such_a_page_can_read_why_it_was_refused(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.allowed_origins": [FRIEND]}, parts=()) as site:
        response = site.http.get("/metrics", headers={"Origin": FRIEND})
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (401, FRIEND)


def test_a_browser_that_asks_first_is_told_without_a_key(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.allowed_origins": [FRIEND]}, parts=()) as site:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        response = site.http.options("/mcp", headers={"Origin": FRIEND, **asked})
        assert response.status_code == 204
        assert response.headers["access-control-allow-origin"] == FRIEND
        assert "Authorization" in response.headers["access-control-allow-headers"]
        assert "X-CSRF-Token" not in response.headers["access-control-allow-headers"]
        assert (
            site.http.options("/mcp", headers={"Origin": "https://evil.example", **asked}).status_code == 403
        )


def test_a_star_allows_nobody(tmp_path: Path) -> None:
    with new_site(
        tmp_path, {"server.allowed_origins": ["*"], "server.allowed_hosts": ["*"]}, parts=()
    ) as site:
        assert site.http.get("/health", headers={"Origin": "https://evil.example"}).status_code == 403
        assert site.http.get("/health", headers={"Host": "evil.example"}).status_code == 421


def test_a_websocket_from_a_page_of_another_origin_is_refused(shell: Site) -> None:
    headers = {"Origin": "http://evil.example", **bearer(shell.key())}
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        shell.http.websocket_connect(f"{WS}/ws", headers=headers),
    ):
        pass
    assert refused.value.status_code == 403


@pytest.mark.parametrize("path", ["/health", "/metrics", "/login", "/no/such/thing", "/static/login.js"])
def test_every_response_has_the_headers_that_protect_browsers(shell: Site, path: str) -> None:
    headers = shell.http.get(path).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-cache" if path.startswith("/static/") else "no-store")
    assert "server" not in headers

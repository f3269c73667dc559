"""Logging in with a key: the cookie, what it needs for changes, and its end."""

import json
import stat
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import anyio
import pytest
from starlette.requests import Request
from starlette.testclient import WebSocketDenialResponse
from starlette.types import Message

from tests.transports.cli.harness import invoke
from tests.transports.http.support.harness import URL, WS, Site, bearer, new_site, whoami
from vestige.core.errors import ConfigError
from vestige.settings.settings import load_settings
from vestige.transports.http.auth.cookies import COOKIE, SECRET_NAME, Logins, secret_of
from vestige.transports.http.auth.login import Handlers

STATIC = ("login.html", "login.js", "login.css")


def test_who_logged_in_has_the_rights_of_his_key(shell: Site) -> None:
    key, text = shell.mint("write", label="Ada", scopes=["/a"])
    told = shell.log_in(text)
    assert told == {
        "label": "Ada",
        "permissions": ["read", "write"],
        "scopes": ["/a"],
        "domains": None,
        "csrf": told["csrf"],
    }
    seen = shell.http.get("/whoami").json()
    assert (seen["name"], seen["via"], seen["key"], seen["scopes"]) == ("Ada", "cookie", key.id, ["/a"])
    assert shell.http.get("/login/session").json() == told


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(shell: Site) -> None:
    response = shell.http.post("/login", json={"api_key": shell.key()})
    cookie = SimpleCookie(response.headers["set-cookie"])[COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "strict"
    assert (cookie["path"], cookie["max-age"], cookie["domain"]) == ("/", "28800", "")
    assert not cookie["secure"]  # plain HTTP on this machine alone


@pytest.mark.parametrize("bind", ["0.0.0.0:3927", "192.0.2.1:3927"])
def test_the_cookie_goes_over_tls_only_where_others_reach_the_server(tmp_path: Path, bind: str) -> None:
    with new_site(tmp_path, {"server.bind": bind}, parts=()) as site:
        response = site.http.post("/login", json={"api_key": site.key()})
        assert SimpleCookie(response.headers["set-cookie"])[COOKIE]["secure"]


def test_a_change_with_a_cookie_needs_its_token(shell: Site) -> None:
    csrf = shell.log_in(shell.key())["csrf"]
    response = shell.http.post("/whoami")
    assert (response.status_code, response.json()["code"]) == (403, "csrf")
    assert shell.http.post("/whoami", headers={"X-CSRF-Token": csrf[:-1]}).status_code == 403
    assert shell.http.post("/whoami", headers={"X-CSRF-Token": csrf}).status_code == 200


def test_the_token_of_one_login_is_none_for_another(shell: Site) -> None:
    mine = shell.log_in(shell.key(label="mine"))["csrf"]
    shell.log_in(shell.key(label="yours"))
    assert shell.http.post("/whoami", headers={"X-CSRF-Token": mine}).status_code == 403


def test_a_change_with_a_key_needs_none(shell: Site) -> None:
    assert shell.http.post("/whoami", headers=bearer(shell.key())).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-2] + "AA",
        lambda text: "x" + text,
        lambda text: text.replace(".", ""),
        lambda text: "x.y",
        lambda text: "",
    ],
)
def test_a_cookie_that_was_changed_opens_nothing(shell: Site, change: Callable[[str], str]) -> None:
    shell.log_in(shell.key())
    text = shell.http.cookies[COOKIE]
    shell.http.cookies.clear()
    assert shell.http.get("/whoami", headers={"Cookie": f"{COOKIE}={change(text)}"}).status_code == 401


def test_a_cookie_signed_by_somebody_else_opens_nothing(shell: Site) -> None:
    key, _ = shell.mint()
    forged = Logins(b"guess" * 20, hours=8, entropy=shell.context.entropy).begin(
        key.id, shell.world.clock.now
    )
    assert shell.http.get("/whoami", headers={"Cookie": f"{COOKIE}={forged.text}"}).status_code == 401


@pytest.mark.parametrize("raw", [b"\xff.\xfe", b"\xe9", b'"\\355\\240\\200.x"', b".", b"=.=", b"a" * 4_000])
def test_a_cookie_of_any_bytes_opens_nothing(shell: Site, raw: bytes) -> None:
    headers = [(b"Cookie", COOKIE.encode() + b"=" + raw)]
    assert shell.http.get("/whoami", headers=headers).status_code == 401
    assert shell.http.post("/logout", headers=headers).status_code == 204


def test_a_login_ends_with_its_key(shell: Site) -> None:
    key, text = shell.mint()
    shell.log_in(text)
    shell.revoke(key)
    assert shell.http.get("/whoami").status_code == 401


def test_a_login_ends_in_its_time_however_it_is_used(shell: Site) -> None:
    shell.log_in(shell.key())
    cookie = {"Cookie": f"{COOKIE}={shell.http.cookies[COOKIE]}"}
    shell.http.cookies.clear()
    for _ in range(7):
        shell.world.clock.advance(hours=1)
        assert shell.http.get("/whoami", headers=cookie).status_code == 200
    shell.world.clock.advance(hours=1)
    assert shell.http.get("/whoami", headers=cookie).status_code == 401


def test_a_store_that_is_away_tells_whoever_logs_in_nothing_about_the_installation(shell: Site) -> None:
    key = shell.key()
    shell.world.app.engine.store.close()
    response = shell.http.post("/login", json={"api_key": key})
    assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
    assert "details" not in response.json()
    page = shell.http.post("/login", data={"api_key": key})
    assert page.status_code == 503
    assert "The store is not available." in page.text
    assert "Unknown, revoked" not in page.text


def test_a_wrong_key_logs_nobody_in_and_counts_as_a_failure(shell: Site) -> None:
    wrong = {"api_key": "vst_" + "x" * 30}
    responses = [shell.http.post("/login", json=wrong) for _ in range(15)]
    assert [response.status_code for response in responses] == [401] * 14 + [429]
    assert not any("set-cookie" in response.headers for response in responses)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"key": "x"}', b'{"api_key": 7}', b'{"api_key": null}', b"\xff"]
)
def test_a_body_without_a_key_is_refused_without_repeating_it(shell: Site, body: bytes) -> None:
    response = shell.http.post("/login", content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_input")


def test_a_login_is_small_and_of_a_known_type(shell: Site) -> None:
    assert shell.http.post("/login", json={"api_key": "x" * 5_000}).status_code == 413
    response = shell.http.post("/login", content=b"x", headers={"Content-Type": "text/plain"})
    assert response.status_code == 415


def test_a_login_that_does_not_come_to_an_end_is_given_up(shell: Site) -> None:
    async def silent() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def run() -> int:
        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "headers": headers, "state": {"request_id": "test"}}
        handlers = Handlers(shell.context, shell.auth, body_seconds=0.01)
        return (await handlers.enter(Request(scope, silent))).status_code

    assert anyio.run(run) == 408


def test_a_form_works_without_a_script(shell: Site) -> None:
    response = shell.http.post("/login", data={"api_key": shell.key(label="Ada")})
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert shell.http.get("/whoami").json()["name"] == "Ada"


@pytest.mark.parametrize("origin", [URL, None])
def test_a_form_is_taken_from_our_page_and_from_who_tells_no_origin(shell: Site, origin: str | None) -> None:
    headers = {"Origin": origin} if origin else {}
    assert shell.http.get("/login").headers["referrer-policy"] == "same-origin"  # or browsers would tell none
    response = shell.http.post("/login", data={"api_key": shell.key()}, headers=headers)
    assert response.status_code == 303
    assert shell.http.get("/whoami").status_code == 200


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://127.0.0.1:8000", "https://127.0.0.1:3927"]
)
def test_a_form_of_another_page_logs_nobody_in(shell: Site, origin: str) -> None:
    response = shell.http.post("/login", data={"api_key": shell.key()}, headers={"Origin": origin})
    assert (response.status_code, response.json()["code"]) == (403, "wrong_origin")
    assert "set-cookie" not in response.headers


def test_a_form_with_a_wrong_key_shows_the_page_with_the_reason(shell: Site) -> None:
    response = shell.http.post("/login", data={"api_key": "wrong"})
    assert response.status_code == 401
    assert response.headers["content-type"].startswith("text/html")
    assert '<p id="failure" role="alert">Unknown, revoked or expired API key.</p>' in response.text


def test_a_form_that_was_sent_too_often_shows_the_page_with_that_reason(shell: Site) -> None:
    for _ in range(15):
        response = shell.http.post("/login", data={"api_key": "wrong"})
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    assert '<p id="failure" role="alert">This address sent too many invalid keys.' in response.text
    assert f"Try again in {response.headers['retry-after']} s.</p>" in response.text


def test_without_a_script_the_page_shows_who_is_logged_in_until_he_logs_out(shell: Site) -> None:
    form = '<form id="login" method'
    assert form in shell.http.get("/login").text
    key = shell.key("write", label="<b>Ada</b>", scopes=["/a"])
    page = shell.http.post("/login", data={"api_key": key}, follow_redirects=True).text
    assert form not in page
    assert 'id="session" aria-live="polite">' in page
    assert '<strong id="label">&lt;b&gt;Ada&lt;/b&gt;</strong>' in page
    assert '<span id="permissions">read, write</span>, has access to' in page
    assert '<span id="reach">/a</span>' in page
    empty = {"Content-Type": "application/x-www-form-urlencoded"}
    left = shell.http.post("/logout", headers=empty, follow_redirects=True)
    assert (left.status_code, form in left.text) == (200, True)


def test_the_page_holds_no_script_or_style_of_its_own(shell: Site) -> None:
    page = shell.http.get("/login")
    assert page.headers["content-type"].startswith("text/html")
    assert "<style" not in page.text
    assert "<script>" not in page.text
    assert " style=" not in page.text
    assert "onclick" not in page.text
    assert '<link rel="icon" href="data:,">' in page.text  # else the browser asks for one that is not there
    for name in STATIC[1:]:
        assert f"/static/{name}" in page.text
        assert shell.http.get(f"/static/{name}").status_code == 200


@pytest.mark.parametrize(
    "path", ["/static/../context.py", "/static/%2e%2e/context.py", "/static/", "/static"]
)
def test_only_files_of_ours_are_served(shell: Site, path: str) -> None:
    assert shell.http.get(path).status_code in (401, 404)


def test_the_address_alone_leads_to_the_page(shell: Site) -> None:
    response = shell.http.get("/")
    assert (response.status_code, response.headers["location"]) == (307, "/login")


def test_a_cookie_opens_a_websocket_from_our_own_page_only(shell: Site) -> None:
    shell.log_in(shell.key(label="Ada"))
    cookie = {"Cookie": f"{COOKIE}={shell.http.cookies[COOKIE]}"}
    with shell.http.websocket_connect(f"{WS}/whoami/ws", headers={"Origin": URL, **cookie}) as socket:
        assert socket.receive_json()["name"] == "Ada"
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        shell.http.websocket_connect(f"{WS}/whoami/ws", headers=cookie),
    ):
        pass
    assert refused.value.status_code == 403


def test_a_cookie_from_an_allowed_origin_opens_no_websocket(tmp_path: Path) -> None:
    friend = "https://friend.example"
    with new_site(tmp_path, {"server.allowed_origins": [friend]}, parts=(whoami,)) as site:
        site.log_in(site.key())
        headers = {"Origin": friend, "Cookie": f"{COOKIE}={site.http.cookies[COOKIE]}"}
        with (
            pytest.raises(WebSocketDenialResponse),
            site.http.websocket_connect(f"{WS}/whoami/ws", headers=headers),
        ):
            pass


def test_a_login_with_the_deprecated_token_ends_when_the_token_changes(tmp_path: Path) -> None:
    with new_site(tmp_path / "one", {"auth.token": "old"}, parts=(whoami,)) as site:
        site.log_in("old")
        cookie = {"Cookie": f"{COOKIE}={site.http.cookies[COOKIE]}"}
        assert site.http.get("/whoami", headers=cookie).json()["permissions"] == ["read", "write"]
    with new_site(tmp_path / "two", {"auth.token": "new"}, parts=(whoami,)) as site:
        assert site.http.get("/whoami", headers=cookie).status_code == 401


def test_without_authentication_the_page_learns_that_no_key_is_needed(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.enabled": False}, parts=()) as site:
        told = site.http.get("/login/session").json()
        assert (told["label"], told["csrf"]) == ("anyone", "")


def test_settings_are_shown_without_what_opens_the_server(tmp_path: Path) -> None:
    secrets = {"VESTIGE_AUTH_TOKEN": "canary-1", "VESTIGE_SESSION_SECRET": "canary-2"}
    shown = invoke(["config"], environ={"VESTIGE_DATA_DIR": str(tmp_path), **secrets})
    assert shown.exit_code == 0
    assert "canary" not in shown.stdout + shown.stderr
    values = {one["name"]: one["value"] for one in json.loads(shown.stdout)["settings"]}
    assert values["auth.token"] == values["auth.session_secret"] == "********"


def test_a_settings_file_with_a_token_that_others_may_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "vestige.toml"
    file.write_text('[auth]\ntoken = "canary"\n', encoding="utf-8")
    for mode, told in ((0o600, None), (0o644, file)):
        file.chmod(mode)
        settings = load_settings({"data_dir": str(tmp_path)}, environ={"HOME": str(tmp_path)})
        assert settings.exposed_file == told


# -- the secret ------------------------------------------------------------------------------------


def test_the_secret_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    settings = load_settings({"data_dir": str(tmp_path / "new")}, environ={"HOME": str(tmp_path)})
    made = secret_of(settings, lambda count: b"r" * count)
    assert made == b"r" * 64
    file = tmp_path / "new" / SECRET_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret_of(settings, lambda count: b"other" * count) == made
    file.unlink()
    assert secret_of(settings, lambda count: b"s" * count) != made  # everybody is logged out


def test_a_secret_that_is_set_is_used_and_leaves_no_file(tmp_path: Path) -> None:
    flags = {"data_dir": str(tmp_path), "auth.session_secret": "c2Vj" * 22}
    settings = load_settings(flags, environ={"HOME": str(tmp_path)})
    assert secret_of(settings, lambda count: b"") == b"sec" * 22
    assert not (tmp_path / SECRET_NAME).exists()


@pytest.mark.parametrize("weak", ["c2Vj", "not base64 at all!", "é"])
def test_a_secret_that_is_too_short_is_refused_without_repeating_it(tmp_path: Path, weak: str) -> None:
    flags = {"data_dir": str(tmp_path), "auth.session_secret": weak}
    with pytest.raises(ConfigError) as refused:
        secret_of(load_settings(flags, environ={"HOME": str(tmp_path)}), lambda count: b"")
    assert weak not in str(refused.value.value())


def test_who_leaves_in_the_middle_of_a_login_is_no_failure(
    shell: Site, caplog: pytest.LogCaptureFixture
) -> None:
    statuses: list[int] = []
    pieces: Iterator[Message] = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )
    headers = [(b"host", b"127.0.0.1:3927"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/login",
        "query_string": b"",
        "headers": headers,
        "server": ("127.0.0.1", 3927),
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
    }

    async def receive() -> Message:
        return next(pieces)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def leave() -> None:
        await shell.http.app(scope, receive, send)

    assert shell.http.portal
    shell.http.portal.call(leave)
    assert statuses == [499]
    assert not [record for record in caplog.records if record.exc_info]


def test_a_ticket_logs_in_once(shell: Site) -> None:
    key, _ = shell.mint("read", label="a machine")
    ticket = shell.auth.logins.ticket(key.id, shell.world.clock.now).text
    first = shell.http.post("/login", json={"ticket": ticket})
    assert (first.status_code, first.json()["label"]) == (200, "a machine")
    assert shell.http.get("/whoami").json()["name"] == "a machine"
    second = shell.http.post("/login", json={"ticket": ticket})
    assert (second.status_code, second.json()["code"]) == (401, "unauthenticated")
    assert "used already" in second.json()["detail"]


@pytest.mark.parametrize("wrong", ["old", "forged", "cookie", "revoked", "number"])
def test_another_ticket_does_not_log_in(shell: Site, wrong: str) -> None:
    key, _ = shell.mint("read", label="a machine")
    now, logins = shell.world.clock.now, shell.auth.logins
    ticket: object = logins.ticket(key.id, now).text
    if wrong == "old":
        shell.world.clock.advance(hours=61 / 3600)
    elif wrong == "forged":
        ticket = f"{ticket}x"
    elif wrong == "cookie":
        ticket = logins.begin(key.id, now).text
    elif wrong == "revoked":
        shell.revoke(key)
    else:
        ticket = 7
    response = shell.http.post("/login", json={"ticket": ticket})
    assert response.status_code == (400 if wrong == "number" else 401)
    assert "set-cookie" not in response.headers


def test_a_ticket_opens_nothing_as_a_cookie_or_a_key(shell: Site) -> None:
    key, _ = shell.mint("read", label="a machine")
    ticket = shell.auth.logins.ticket(key.id, shell.world.clock.now).text
    assert shell.http.get("/whoami", headers={"Cookie": f"{COOKIE}={ticket}"}).status_code == 401
    assert shell.http.get("/whoami", headers=bearer(ticket)).status_code == 401

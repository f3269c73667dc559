"""Who is let in: keys by two headers, what a request can narrow, and what a failure costs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient, WebSocketDenialResponse

from testbed.failures import each
from tests.transports.http.support.harness import URL, WS, Site, bearer, new_site, whoami
from vestige.core.caller import LOCAL_USER
from vestige.core.errors import InvalidInput
from vestige.transports.http.auth.gate import WRONG_KEY, narrowed_caller
from vestige.transports.http.problems import UNAUTHENTICATED

UNKNOWN = "vst_" + "x" * 30
TOKEN = "correct horse battery staple"
LIMITED: dict[str, Any] = {"server.requests_per_minute": 3}


def asked(site: Site, **headers: str) -> tuple[int, dict[str, Any]]:
    response = site.http.get("/whoami", headers={name.replace("_", "-"): v for name, v in headers.items()})
    return response.status_code, response.json()


def test_without_a_credential_nothing_is_told(shell: Site) -> None:
    response = shell.http.get("/whoami", headers={"X-Request-Id": "mine"})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json() == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "A valid API key is needed.",
        "code": "unauthenticated",
        "hint": "Send `Authorization: Bearer vst_…`. `vestige keys create --label NAME` makes a key.",
        "requestId": "mine",
    }


def why(site: Site, **headers: str) -> tuple[str, str]:
    status, told = asked(site, **headers)
    assert (status, told["code"]) == (401, "unauthenticated")
    return told["detail"], told["hint"]


def test_a_key_that_opens_nothing_is_told_from_none_but_not_why_it_does_not(shell: Site) -> None:
    key, revoked = shell.mint(label="revoked")
    shell.revoke(key)
    expired = shell.key(label="expired", expires_at=shell.world.clock.now + timedelta(hours=1))
    shell.world.clock.advance(hours=2)
    wrong = {why(shell, **bearer(text)) for text in (UNKNOWN, revoked, expired, "mistyped")}
    assert wrong == {(WRONG_KEY.message, WRONG_KEY.hint)}
    assert why(shell) == (UNAUTHENTICATED.message, UNAUTHENTICATED.hint)
    assert why(shell, Authorization="Bearer ") == why(shell, X_API_Key="") == why(shell)
    assert why(shell, Cookie="vestige_session=nonsense")[0] == "This login has ended."


def test_a_store_that_is_away_tells_strangers_nothing_about_the_installation(tmp_path: Path) -> None:
    with new_site(tmp_path, parts=()) as site:
        site.world.app.engine.store.close()
        response = site.http.get("/api/v1/stats", headers=bearer(UNKNOWN))
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
        assert response.json()["detail"] == "The store is not available."
        assert "details" not in response.json()


def test_what_is_not_there_is_not_told_apart_without_a_key(shell: Site) -> None:
    assert shell.http.get("/no/such/thing").status_code == 401


@pytest.mark.parametrize(
    ("header", "value", "via"),
    [
        ("Authorization", "Bearer {}", "bearer"),
        ("Authorization", "bearer  {} ", "bearer"),
        ("X-API-Key", "{}", "api-key"),
    ],
)
def test_a_key_opens_with_its_rights(shell: Site, header: str, value: str, via: str) -> None:
    key, text = shell.mint("write", label="the cook", scopes=["/kitchen"], domains=["food"])
    status, told = asked(shell, **{header: value.format(text)})
    assert status == 200
    assert told == {
        "name": "the cook",
        "permissions": ["read", "write"],
        "scopes": ["/kitchen"],
        "domains": ["food"],
        "home": "/kitchen",
        "via": via,
        "key": key.id,
        "valid": True,
    }


@pytest.mark.parametrize("wrong", [UNKNOWN, "", "vst_", "x" * 5_000, "vst_\xe9", "' OR 1=1 --"])
def test_what_is_no_key_opens_nothing(shell: Site, wrong: str) -> None:
    headers = {b"X-API-Key": wrong.encode("latin-1")}
    assert shell.http.get("/whoami", headers=headers).status_code == 401


def test_a_key_is_not_found_by_what_the_store_keeps_of_it(shell: Site) -> None:
    key, _ = shell.mint()
    assert [asked(shell, X_API_Key=known)[0] for known in (key.hash, key.id, key.label)] == [401] * 3


def test_a_key_with_one_letter_changed_opens_nothing(shell: Site) -> None:
    text = shell.key()
    changed = text[:-1] + ("A" if text[-1] != "A" else "B")
    assert asked(shell, Authorization=f"Bearer {changed}")[0] == 401


def test_a_revoked_key_opens_nothing_from_then_on(shell: Site) -> None:
    key, text = shell.mint()
    assert asked(shell, **bearer(text))[0] == 200
    shell.revoke(key)
    assert asked(shell, **bearer(text))[0] == 401


def test_a_key_opens_until_it_expires(shell: Site) -> None:
    clock = shell.world.clock
    text = shell.key(expires_at=clock.now + timedelta(hours=2))
    clock.advance(hours=1)
    assert asked(shell, **bearer(text))[0] == 200
    clock.advance(hours=1)
    assert asked(shell, **bearer(text))[0] == 401


def test_the_first_credential_decides_whatever_it_is_worth(shell: Site) -> None:
    good, other = shell.key(label="good"), shell.key(label="other")
    assert asked(shell, Authorization=f"Bearer {UNKNOWN}", X_API_Key=good)[0] == 401
    assert asked(shell, Authorization="Basic dXNlcjpwYXNz", X_API_Key=good)[0] == 401
    assert asked(shell, Authorization="", X_API_Key=good)[0] == 401
    assert asked(shell, Authorization=f"Bearer {other}", X_API_Key=good)[1]["name"] == "other"
    shell.log_in(good)
    assert asked(shell, X_API_Key=UNKNOWN)[0] == 401
    assert asked(shell, X_API_Key=other)[1]["name"] == "other"
    assert asked(shell)[1]["name"] == "good"


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key"])
def test_two_credentials_of_a_kind_open_nothing(shell: Site, name: str) -> None:
    text = shell.key()
    value = f"Bearer {text}" if name == "Authorization" else text
    assert shell.http.get("/whoami", headers=[(name, value), (name, value)]).status_code == 401


def test_a_key_in_the_address_opens_nothing(shell: Site) -> None:
    text = shell.key()
    response = shell.http.get("/whoami", params={"api_key": text, "token": text, "access_token": text})
    assert response.status_code == 401


def test_without_authentication_everybody_may_do_everything(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.enabled": False}, parts=(whoami,)) as site:
        status, told = asked(site)
        assert (status, told["name"], told["via"], told["key"]) == (200, "anyone", "open", "")
        assert told["permissions"] == ["admin", "read", "write"]


# -- the deprecated token --------------------------------------------------------------------------


def test_the_deprecated_token_reads_and_writes_everything_and_no_more(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.token": TOKEN}, parts=(whoami,)) as site:
        for headers in (bearer(TOKEN), {"X-API-Key": TOKEN}):
            status, told = asked(site, **headers)
            assert (status, told["via"], told["permissions"]) == (200, "token", ["read", "write"])
            assert (told["scopes"], told["domains"]) == (None, None)
        assert asked(site, **bearer(TOKEN[:-1]))[0] == 401
        assert asked(site, **bearer(site.key()))[1]["via"] == "bearer"


def test_an_empty_token_is_none(shell: Site) -> None:
    assert asked(shell, Authorization="Bearer ")[0] == 401
    assert asked(shell, X_API_Key="")[0] == 401


# -- narrowing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["key", "token", "cookie", "open"])
def test_headers_narrow_what_is_reached_however_one_came_in(tmp_path: Path, mode: str) -> None:
    settings = {"auth.token": TOKEN, "auth.enabled": mode != "open"}
    with new_site(tmp_path, settings, parts=(whoami,)) as site:
        shown = {"key": bearer(site.key()), "token": bearer(TOKEN)}.get(mode, {})
        if mode == "cookie":
            site.log_in(site.key())
        status, told = asked(site, X_Vestige_Scope="/a/b/", X_Vestige_Domain="work", **shown)
        assert status == 200
        assert (told["scopes"], told["domains"], told["home"]) == (["/a/b"], ["work"], "/a/b")


@pytest.mark.parametrize(
    ("scopes", "header", "reached"),
    [
        (["/a"], "/a/b", ["/a/b"]),
        (["/a", "/c"], "/c", ["/c"]),
        (["/a"], "/", None),
        (["/a"], "/ab", None),
        (["/a/b"], "/a", None),
        (["/a"], "/c", None),
    ],
)
def test_a_scope_can_only_be_narrowed(
    shell: Site, scopes: list[str], header: str, reached: list[str] | None
) -> None:
    status, told = asked(shell, X_Vestige_Scope=header, **bearer(shell.key(scopes=scopes)))
    assert (status, told.get("scopes")) == ((200, reached) if reached else (403, None))


def test_narrowing_to_the_root_takes_nothing_and_names_the_home(shell: Site) -> None:
    for key in (shell.key(), shell.key(domains=["work"])):
        _, before = asked(shell, **bearer(key))
        status, told = asked(shell, X_Vestige_Scope="/", **bearer(key))
        assert (status, before["home"]) == (200, "/elsewhere")
        assert told == {**before, "home": "/"}


@pytest.mark.parametrize(("header", "status"), [("work", 200), ("play", 200), ("secret", 403), ("WORK", 403)])
def test_a_domain_can_only_be_narrowed(shell: Site, header: str, status: int) -> None:
    found, told = asked(shell, X_Vestige_Domain=header, **bearer(shell.key(domains=["work", "play"])))
    assert found == status
    assert told.get("domains") == ([header] if status == 200 else None)


@each("name", ["X-Vestige-Scope", "X-Vestige-Domain"])
@each("values", [[b""], [b"/a", b"/b"], [b"\xff\xfe"], [b"x\0y"]])
def test_a_filter_that_cannot_be_read_is_refused_rather_than_left_out(name: str, values: list[bytes]) -> None:
    headers = Headers(raw=[(name.lower().encode(), value) for value in values])
    with pytest.raises(InvalidInput):
        narrowed_caller(LOCAL_USER, headers)


def test_a_filter_that_cannot_be_read_is_told_as_a_bad_request(shell: Site) -> None:
    status, told = asked(shell, X_Vestige_Scope="", **bearer(shell.key()))
    assert (status, told["code"]) == (400, "invalid_input")


def test_a_filter_may_be_written_in_any_script(shell: Site) -> None:
    headers = [(b"Authorization", f"Bearer {shell.key()}".encode()), (b"X-Vestige-Domain", "кухня".encode())]
    assert shell.http.get("/whoami", headers=headers).json()["domains"] == ["кухня"]


# -- WebSockets ------------------------------------------------------------------------------------


def test_a_websocket_needs_a_key_as_well(shell: Site) -> None:
    with shell.http.websocket_connect(f"{WS}/whoami/ws", headers=bearer(shell.key(label="ear"))) as socket:
        assert socket.receive_json()["name"] == "ear"
    for headers in ({}, bearer(UNKNOWN)):
        with (
            pytest.raises(WebSocketDenialResponse) as refused,
            shell.http.websocket_connect(f"{WS}/whoami/ws", headers=headers),
        ):
            pass
        assert refused.value.status_code == 401


def test_a_stream_can_ask_whether_its_key_is_still_good(shell: Site) -> None:
    key, text = shell.mint()
    with shell.http.websocket_connect(f"{WS}/whoami/ws", headers=bearer(text)) as socket:
        assert socket.receive_json()["valid"] is True
        shell.revoke(key)
        socket.send_text("and now?")
        assert socket.receive_json()["valid"] is False


# -- failures --------------------------------------------------------------------------------------


def test_failures_are_answered_later_and_later_and_then_not_at_all(shell: Site) -> None:
    answers = [asked(shell, X_API_Key=f"guess {number}")[0] for number in range(20)]
    assert answers == [401] * 14 + [429] * 6
    assert shell.slept == sorted(shell.slept)
    assert (shell.slept[0], max(shell.slept)) == (0.1, 2.0)
    assert len(shell.slept) == 9  # the first five were free
    response = shell.http.get("/whoami", headers={"X-API-Key": "guess"})
    assert 0 < int(response.headers["retry-after"]) <= 30
    told = response.json()
    assert told["detail"] == "This address sent too many invalid keys."
    assert "`vestige keys list`" in told["hint"]
    assert told["hint"].endswith(f"Try again in {response.headers['retry-after']} s.")
    shell.world.clock.advance(hours=1)
    assert asked(shell, X_API_Key="guess")[0] == 401


def test_a_valid_key_is_let_in_whatever_others_at_its_address_do(shell: Site) -> None:
    text = shell.key()
    for _ in range(30):
        asked(shell, X_API_Key=UNKNOWN)
    assert asked(shell, X_API_Key=UNKNOWN)[0] == 429
    assert asked(shell, X_API_Key=text)[0] == 200


def test_the_deprecated_token_cannot_be_tried_out_while_its_address_is_locked(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.token": TOKEN}, parts=(whoami,)) as site:
        for _ in range(15):
            asked(site, X_API_Key="guess")
        assert asked(site, X_API_Key=TOKEN)[0] == 429
        site.world.clock.advance(hours=0.01)  # 36 seconds
        assert asked(site, X_API_Key=TOKEN)[0] == 200


def test_requests_without_a_credential_are_no_attempts(shell: Site) -> None:
    assert {asked(shell)[0] for _ in range(30)} == {401}
    assert shell.slept == []


@pytest.mark.parametrize("shown", [{}, {"Cookie": "vestige_session=nonsense"}], ids=["nothing", "a cookie"])
def test_refusals_are_limited_by_address_and_take_nothing_from_a_key_there(
    tmp_path: Path, shown: dict[str, str]
) -> None:
    with new_site(tmp_path, {"server.requests_per_minute": 10}, parts=(whoami,)) as site:
        answers = [asked(site, **shown)[0] for _ in range(12)]
        assert answers == [401] * 10 + [429] * 2
        response = site.http.get("/whoami", headers=shown)
        assert (response.json()["code"], response.headers["retry-after"]) == ("rate_limited", "6")
        text = site.key()
        assert [asked(site, **bearer(text))[0] for _ in range(10)] == [200] * 10
        site.world.clock.sleep(6)
        assert [asked(site, **shown)[0] for _ in range(2)] == [401, 429]


def test_well_formed_keys_that_are_unknown_are_limited_too(tmp_path: Path) -> None:
    with new_site(tmp_path, LIMITED, parts=(whoami,)) as site:
        text = site.key()
        answers = [asked(site, **bearer(UNKNOWN)) for _ in range(4)]
        assert [status for status, _ in answers] == [401, 401, 401, 429]
        assert answers[-1][1]["detail"] == "This address sent too many invalid keys."
        assert asked(site, **bearer(text))[0] == 200


def test_refusals_of_one_address_cost_another_nothing(tmp_path: Path) -> None:
    with new_site(tmp_path, LIMITED, parts=(whoami,)) as site:
        assert [asked(site)[0] for _ in range(4)] == [401, 401, 401, 429]
        elsewhere = TestClient(site.http.app, base_url=URL, client=("198.51.100.1", 50_000))
        assert elsewhere.get("/whoami").status_code == 401


def test_a_websocket_without_a_key_is_limited_as_well(tmp_path: Path) -> None:
    with new_site(tmp_path, LIMITED, parts=(whoami,)) as site:
        statuses = []
        for _ in range(4):
            with (
                pytest.raises(WebSocketDenialResponse) as refused,
                site.http.websocket_connect(f"{WS}/whoami/ws"),
            ):
                pass
            statuses.append(refused.value.status_code)
        assert statuses == [401, 401, 401, 429]


# -- when keys were used ---------------------------------------------------------------------------


def test_when_a_key_was_used_is_written_when_the_server_ends(tmp_path: Path) -> None:
    with new_site(tmp_path, parts=(whoami,)) as site:
        key, text = site.mint()
        store = site.world.app.engine.store
        site.world.clock.advance(hours=3)
        asked(site, **bearer(text))
        assert store.list_keys([key.id])[0].last_used is None  # off the path of the request
        site.http.__exit__(None, None, None)
        assert store.list_keys([key.id])[0].last_used == site.world.clock.now
        site.http.__enter__()


def test_a_store_that_fails_is_told_as_such_and_not_as_a_bad_key(shell: Site) -> None:
    text = shell.key()
    shell.world.app.engine.store.close()
    status, told = asked(shell, **bearer(text))
    assert status >= 500
    assert told["code"].startswith("store")

"""Logging out: the login is over at every server of the store, or it is told that it is not."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from testbed.world import open_world
from tests.transports.http.support.harness import Site, open_site, whoami
from tests.transports.http.support.holders import cookie
from vestige.transports.http.auth.cookies import COOKIE

REFUSE = "CREATE TRIGGER refuse BEFORE INSERT ON ended_logins BEGIN SELECT RAISE(ABORT, 'not now'); END"


def database(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """Do something to the file of a store that the store would not do."""
    with closing(sqlite3.connect(folder / "vestige.db")) as db:
        answer = db.execute(statement).fetchall()
        db.commit()
    return answer


def test_after_logging_out_even_a_copy_of_the_cookie_opens_nothing(shell: Site) -> None:
    shell.log_in(shell.key())
    kept = shell.http.cookies[COOKIE]
    assert shell.http.post("/logout").status_code == 204
    assert COOKIE not in shell.http.cookies
    assert shell.http.get("/whoami").status_code == 401
    assert shell.http.get("/whoami", headers={"Cookie": f"{COOKIE}={kept}"}).status_code == 401


def test_logging_out_holds_at_every_server_of_the_store_and_after_a_restart(tmp_path: Path) -> None:
    with (
        open_world(tmp_path) as world,
        open_site(world, parts=(whoami,)) as one,
        open_site(world, parts=(whoami,)) as other,
    ):
        gone, kept = (cookie(one, one.key(label=name)) for name in ("gone", "kept"))
        assert other.http.get("/whoami", headers=gone).json()["name"] == "gone"
        assert one.http.post("/logout", headers=gone).status_code == 204
        for site in (one, other):
            assert site.http.get("/whoami", headers=gone).status_code == 401
            assert site.http.get("/whoami", headers=kept).json()["name"] == "kept"
    with open_world(tmp_path) as world, open_site(world, parts=(whoami,)) as restarted:
        assert restarted.http.get("/whoami", headers=gone).status_code == 401
        assert restarted.http.get("/whoami", headers=kept).json()["name"] == "kept"


def test_logging_out_of_the_deprecated_token_holds_everywhere_too(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"auth.token": "old"}
    with (
        open_world(tmp_path, **settings) as world,
        open_site(world, parts=(whoami,)) as one,
        open_site(world, parts=(whoami,)) as other,
    ):
        gone, kept = cookie(one, "old"), cookie(one, "old")
        assert one.http.post("/logout", headers=gone).status_code == 204
        for site in (one, other):
            assert site.http.get("/whoami", headers=gone).status_code == 401
            assert site.http.get("/whoami", headers=kept).json()["name"] == "VESTIGE_AUTH_TOKEN"


def test_where_nothing_can_be_written_one_is_logged_out_here_and_told_that_it_is_only_here(
    tmp_path: Path,
) -> None:
    with (
        open_world(tmp_path) as world,
        open_site(world, parts=(whoami,)) as one,
        open_site(world, parts=(whoami,)) as other,
    ):
        gone, kept = cookie(one, one.key()), cookie(one, one.key())
        database(tmp_path, REFUSE)
        response = one.http.post("/logout", headers=gone)
        assert (response.status_code, response.json()["code"]) == (503, "logged_out_here_only")
        assert 'vestige_session=""' in response.headers["set-cookie"]
        assert one.http.get("/whoami", headers=gone).status_code == 401
        assert one.http.get("/whoami", headers=kept).status_code == 200
        assert other.http.get("/whoami", headers=gone).status_code == 200  # as was told
        assert one.http.post("/logout", headers=gone).status_code == 503, "it is not over everywhere yet"
        database(tmp_path, "DROP TRIGGER refuse")
        assert one.http.post("/logout", headers=gone).status_code == 204
        assert other.http.get("/whoami", headers=gone).status_code == 401


def test_while_the_store_is_away_one_is_logged_out_here_and_others_are_not(shell: Site) -> None:
    gone, kept = cookie(shell, shell.key()), cookie(shell, shell.key())
    shell.world.app.engine.store.close()
    response = shell.http.post("/logout", headers=gone)
    assert (response.status_code, response.json()["code"]) == (503, "logged_out_here_only")
    assert "details" not in response.json()
    assert shell.http.get("/whoami", headers=gone).status_code == 401
    assert shell.http.get("/whoami", headers=kept).status_code == 503


def test_a_copy_of_a_cookie_that_is_over_has_nothing_written(tmp_path: Path) -> None:
    with open_world(tmp_path) as world, open_site(world, parts=()) as site:
        gone = cookie(site, site.key())
        assert site.http.post("/logout", headers=gone).status_code == 204
        database(tmp_path, REFUSE)
        assert site.http.post("/logout", headers=gone).status_code == 204


def test_an_ended_login_is_known_to_be_over_until_no_clock_would_take_it(tmp_path: Path) -> None:
    """A server whose clock is behind still takes cookies that have expired at the others."""
    with open_world(tmp_path) as world, open_site(world, parts=(whoami,)) as site:
        began, gone = world.clock.now, cookie(site, site.key())
        site.http.post("/logout", headers=gone)
        world.clock.advance(hours=8.5)
        site.http.post("/logout", headers=cookie(site, site.key()))
        world.clock.now = began
        assert site.http.get("/whoami", headers=gone).status_code == 401
        world.clock.advance(hours=9.5)
        site.http.post("/logout", headers=cookie(site, site.key()))
        assert len(database(tmp_path, "SELECT id FROM ended_logins")) == 2, "the first is needed no more"


def test_logging_out_without_a_login_is_no_error(shell: Site) -> None:
    assert shell.http.post("/logout").status_code == 204
    assert shell.http.post("/logout", headers={"Cookie": f"{COOKIE}=nonsense"}).status_code == 204


def test_another_page_logs_nobody_out(shell: Site) -> None:
    shell.log_in(shell.key())
    assert shell.http.post("/logout", headers={"Origin": "http://127.0.0.1:8000"}).status_code == 403
    assert shell.http.get("/whoami").status_code == 200

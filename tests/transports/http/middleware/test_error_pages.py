"""A browser that asks for something wrong gets a page with the way on; a program gets problem+json."""

import pytest

from tests.transports.http.support.harness import Site, bearer

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_browser_without_a_login_is_shown_the_way_to_it(site: Site) -> None:
    page = site.http.get("/api/v1/memories", headers=BROWSER)
    assert page.status_code == 401
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert '<a href="/login">Log in</a>' in page.text
    assert page.headers["www-authenticate"]
    assert "accept" in page.headers["vary"].lower()
    assert int(page.headers["content-length"]) == len(page.content)
    assert "content-security-policy" in page.headers


def test_a_browser_whose_login_has_ended_is_shown_the_way_to_it(site: Site) -> None:
    site.log_in(site.key())
    assert site.http.get("/api/v1/memories", headers=BROWSER).status_code == 200
    site.world.clock.advance(days=400)
    page = site.http.get("/api/v1/memories", headers=BROWSER)
    assert page.status_code == 401
    assert "This login has ended." in page.text
    assert '<a href="/login">Log in</a>' in page.text


def test_a_wrong_path_is_a_page_with_links(site: Site) -> None:
    page = site.http.get("/memries", headers={**BROWSER, **bearer(site.key())})
    assert page.status_code == 404
    assert "There is nothing at this address." in page.text
    assert '<a href="/api/v1/docs">The API</a>' in page.text


def test_text_of_an_error_is_escaped(site: Site) -> None:
    page = site.http.get("/api/v1/memories/<b>$title", headers={**BROWSER, **bearer(site.key())})
    assert page.status_code == 404
    assert "<b>" not in page.text
    assert "&lt;b&gt;$title" in page.text


def test_the_short_address_of_the_api_leads_to_its_page(site: Site) -> None:
    found = site.http.get("/docs")
    assert (found.status_code, found.headers["location"]) == (307, "/api/v1/docs")


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json, text/html;q=0.5"])
def test_a_program_gets_json(site: Site, accept: str | None) -> None:
    headers = {"Accept": accept} if accept else {}
    assert site.http.get("/memries", headers=headers).headers["content-type"] == "application/problem+json"


def test_a_browser_gets_no_page_for_what_it_sends(site: Site) -> None:
    sent = site.http.post("/api/v1/memories", headers=BROWSER, json={})
    assert sent.headers["content-type"] == "application/problem+json"


def test_a_head_request_of_a_browser_has_no_body(site: Site) -> None:
    found = site.http.head("/memries", headers=BROWSER)
    assert (found.status_code, found.content) == (401, b"")


def test_a_client_states_its_zone_in_a_header(site: Site) -> None:
    for zone, found in ((None, "UTC"), ("Asia/Tokyo", "Asia/Tokyo")):
        headers = bearer(site.key(label=found)) | ({"X-Vestige-Timezone": zone} if zone else {})
        assert site.http.get("/api/v1/timeline", headers=headers).json()["timezone"] == found
    wrong = site.http.get(
        "/api/v1/timeline", headers=bearer(site.key(label="x")) | {"X-Vestige-Timezone": "Mars"}
    )
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_input")

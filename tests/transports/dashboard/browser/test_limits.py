"""What keys of less may see and do, hostile memories, a lost connection, two windows."""

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.transports.dashboard.browser.conftest import Open
from tests.transports.dashboard.browser.support.browser import PAGES, PATIENCE_MS, Site, Watched
from tests.transports.dashboard.browser.support.garden import HOSTILE, Garden
from vestige.core.caller import Invocation
from vestige.transports.http.auth.cookies import COOKIE

WRITES = (
    "Remember", "Edit", "Pin", "Promote", "Demote", "Suppress", "Delete…", "Dream now", "Consolidate",
    "Review now", "Plan a merge", "The newer one holds", "Check", "Back up now", "Create", "Discover", "New",
    "Mute", "Rename",
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile(garden: Garden) -> str:
    """A memory that hides something waits for a person; this one was approved."""
    waiting = garden.world.remember(HOSTILE, tags=["<b>tag</b>"], force_create=True)
    approval = Invocation(name="review.approve", arguments={"id": waiting}, request_id="test")
    return str(garden.world.app.call_operation(approval)["memoryId"])


def test_a_key_that_may_only_read_sees_no_buttons_that_fail(
    site: Site, garden: Garden, windows: Open
) -> None:
    watched = windows(site.login("read"))
    for path in (*PAGES, f"/memories/{garden.ids[0]}"):
        page = watched.complete(path)
        for name in WRITES:
            assert page.get_by_role("button", name=name, exact=True).count() == 0, (path, name)
    assert watched.wrong == []


def test_a_key_of_a_scope_sees_that_scope_only(site: Site, garden: Garden, windows: Open) -> None:
    mine = garden.world.remember("Only the pharmacy project knows this.", scope="/project/pharmacy")
    watched = windows(site.login("read", scopes=["/project/pharmacy"]))
    page = watched.open("/memories")
    expect(page.get_by_role("row")).to_have_count(1)
    expect(page.locator(f"a[href='/memories/{mine}']")).to_be_visible()
    for path in PAGES:
        watched.complete(path)
        for text in ("PostgreSQL", "Kubernetes", "This page failed", "Your key may not see this"):
            assert page.locator("main").get_by_text(text).count() == 0, (path, text)
    assert watched.wrong == []
    page.goto(f"{site.url}/memories/{garden.ids[0]}")
    expect(page.get_by_role("alert")).to_be_visible()


@pytest.mark.parametrize(
    "permissions", [("read",), ("read", "write"), ("read", "write", "admin")], ids="/".join
)
def test_no_page_fails_or_offers_what_is_for_the_whole_store_to_a_limited_key(
    permissions: tuple[str, ...], site: Site, garden: Garden, windows: Open
) -> None:
    """The server refuses these to a key for some scopes, whatever it may do there."""
    garden.world.remember("Only the pharmacy project knows this.", scope="/project/pharmacy")
    watched = windows(site.login(*permissions, scopes=["/project/pharmacy"]))
    for path in PAGES:
        page = watched.complete(path)
        for name in ("Discover", "Check", "Back up now", "Create", "Revoke…", "Trace"):
            assert page.get_by_role("button", name=name, exact=True).count() == 0, (path, name)
        expect(page.get_by_text("This page failed")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)
    assert watched.wrong == []


def test_a_hostile_memory_is_shown_as_text(watched: Watched, hostile: str) -> None:
    for path in (
        f"/memories/{hostile}",
        "/memories",
        "/",
        "/search?q=evil+link",
        "/timeline",
        "/trace?q=evil",
    ):
        page = watched.open(path)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script, main svg[onload]").count() == 0
    expect(watched.open(f"/memories/{hostile}").locator(".memory-text").first).to_contain_text("<script>")


def test_a_memory_of_a_megabyte_is_shown_in_part(watched: Watched, garden: Garden) -> None:
    large = garden.world.remember("lorem ipsum " * 83_000, force_create=True)
    page = watched.open(f"/memories/{large}")
    assert len(page.locator(".memory-text").first.inner_text()) < 10_000
    page.get_by_role("button", name="Show all").first.click()
    expect(page.locator(".memory-text").first).to_contain_text("lorem ipsum " * 800)


@pytest.mark.parametrize(
    ("path", "heading"),
    [("/?as_of=yesterday", "Home"), ("/timeline?days=x", "Timeline"),
     ("/contradictions?offset=-x", "Contradictions"), ("/memories/%E0%A4%A", "Memory"),
     ("/memories/%3Cscript%3E", "Memory"), ("/domains/%22", "Domain")],
)  # fmt: skip
def test_an_address_that_makes_no_sense_shows_a_page_nevertheless(
    path: str, heading: str, site: Site, cookie: str, windows: Open
) -> None:
    watched = windows(cookie)
    page = watched.open(path)
    expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    expect(page.get_by_text("This page failed")).to_have_count(0)
    assert [line for line in watched.wrong if "404" not in line] == []


def test_a_breach_of_the_content_policy_would_fail_a_test(site: Site, cookie: str, windows: Open) -> None:
    watched = windows(cookie)
    page = watched.open("/settings")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))")
    page.evaluate("new Image().src = 'https://elsewhere.example/pixel.png'")
    expect(page.locator("main h1")).to_be_visible()
    assert any("script-src" in line for line in watched.wrong)
    assert any("img-src" in line or "elsewhere" in line for line in watched.wrong)
    watched.wrong.clear()


def test_a_login_that_the_server_ended_leads_back_to_the_login(site: Site, windows: Open) -> None:
    """The cookie is still there, but its key is revoked."""
    watched = windows(site.login())
    page = watched.open("/memories")
    keys = site.world.call("keys", action="list")["keys"]
    site.world.call("keys", action="revoke", id=keys[-1]["id"])
    page.keyboard.press("t")
    expect(page.get_by_label("API key")).to_be_visible()
    assert "next=" in page.url


def test_a_change_goes_on_after_another_tab_has_logged_in_again(
    site: Site, garden: Garden, windows: Open
) -> None:
    watched = windows(site.login())
    page = watched.open(f"/memories/{garden.ids[5]}")
    _log_in(watched, site.login())
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    made = site.world.call("keys", action="create", label="a guest", permissions=["read", "write"])
    _log_in(watched, site.auth.logins.begin(made["id"], site.world.app.engine.now()).text)
    page.get_by_role("button", name="Unpin").click()
    expect(page.locator(".notices")).to_contain_text("logged in with the key “a guest” now")
    assert garden.call("memory", action="get", id=garden.ids[5])["node"]["pinned"]
    page.get_by_role("button", name="Unpin").click()
    expect(page.get_by_role("button", name="Pin", exact=True)).to_be_visible()


def _log_in(watched: Watched, cookie: str) -> None:
    """What another tab of the same browser leaves behind."""
    watched.context.add_cookies([{"name": COOKIE, "value": cookie, "url": watched.site.url}])


def _connected(watched: Watched) -> list[WebSocketRoute]:
    """Open the feed; the connections that it has made, which the test may close."""
    served: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        served.append(route)
        route.connect_to_server()

    watched.page.route_web_socket("**/ws", pass_on)
    watched.open("/feed")
    expect(watched.page.locator(".connection.live")).to_be_visible()
    return served


@pytest.mark.parametrize("code", [4401, 1001], ids=["told so", "found out"])
def test_a_page_whose_login_has_ended_does_not_claim_to_reconnect(
    code: int, site: Site, windows: Open
) -> None:
    watched = windows(site.login())
    page = watched.page
    page.clock.install()
    served = _connected(watched)
    watched.context.clear_cookies()
    served[0].close(code=code)
    page.clock.run_for(1100)
    out = page.get_by_role("link", name="logged out")
    expect(out).to_have_attribute("href", "/login?next=%2Ffeed")
    page.clock.run_for(60_000)
    assert len(served) == 1
    out.click()
    expect(page.get_by_label("API key")).to_be_visible()


def test_a_new_memory_appears_in_two_windows_at_once(
    site: Site, cookie: str, garden: Garden, windows: Open
) -> None:
    both = [windows(cookie), windows(cookie)]
    for watched in both:
        watched.open("/feed")
        expect(watched.page.locator(".connection.live")).to_be_visible()
    garden.world.remember("A wren nests behind the server room.", force_create=True)
    for watched in both:
        expect(watched.page.locator(".feed")).to_contain_text("A wren nests")
        assert watched.wrong == []


def test_what_was_missed_while_the_connection_was_lost_is_shown_when_it_is_back(
    watched: Watched, garden: Garden
) -> None:
    page = watched.page
    page.clock.install()
    served = _connected(watched)
    page.keyboard.press("h")
    newest = page.locator("section.panel").filter(has=page.get_by_role("heading", name="Newest memories"))
    expect(newest.get_by_role("listitem")).to_have_count(8)
    served[0].close(code=1001)
    expect(page.locator(".connection.lost")).to_be_visible()
    garden.world.remember("A bittern booms in the reeds.", force_create=True)
    page.clock.run_for(1100)
    expect(page.locator(".connection.live")).to_be_visible()
    page.clock.run_for(1000)
    expect(newest).to_contain_text("A bittern booms")


def test_a_lost_connection_is_opened_again(watched: Watched, garden: Garden) -> None:
    page = watched.page
    page.clock.install()
    served = _connected(watched)
    served[0].close(code=1001)
    expect(page.locator(".connection.lost")).to_be_visible()
    page.clock.run_for(1100)
    expect(page.locator(".connection.live")).to_be_visible()
    assert len(served) == 2
    # The route of the second socket hands its messages on from this process, and can miss the first one.
    for bird in ("heron", "egret", "stork", "crane"):
        garden.world.remember(f"A {bird} stands beside the cooling pond.", force_create=True)
        try:
            expect(page.locator(".feed")).to_contain_text(f"A {bird} stands", timeout=PATIENCE_MS / 6)
            break
        except AssertionError:
            continue
    expect(page.locator(".feed")).to_contain_text("stands beside the cooling pond")

"""The frame of the dashboard: login, navigation, keys, palette, themes."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.transports.dashboard.browser.conftest import Open
from tests.transports.dashboard.browser.support.browser import Site, Watched
from tests.transports.dashboard.browser.support.garden import Garden
from vestige.transports.cli.commands.clients.dashboard import LABEL, link_to
from vestige.transports.http.auth.cookies import Logins


def test_the_home_page_shows_the_numbers_of_the_store(watched: Watched, garden: Garden) -> None:
    page = watched.open("/")
    stats = garden.call("system_status")
    figures = page.locator(".figures")
    expect(figures.get_by_role("link", name=f"{stats['totalMemories']} memories")).to_be_visible()
    expect(figures).to_contain_text(f"{stats['connections']}links")
    expect(figures).to_contain_text(f"{stats['dueForReview']}due for review")
    assert page.title() == "Home · Vestige"


def test_a_page_without_a_login_asks_for_a_key_and_comes_back(site: Site, windows: Open) -> None:
    watched = windows("")
    page = watched.page
    page.goto(f"{site.url}/memories?order=oldest")
    key = page.get_by_label("API key")
    key.wait_for()
    assert "next=%2Fmemories%3Forder%3Doldest" in page.url
    call_key = site.world.call("keys", action="create", label="typed", permissions=["read"])["key"]
    key.fill(call_key)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_visible()
    assert urlsplit(page.url).query == "order=oldest"


def test_a_login_leads_to_pages_of_this_server_only(site: Site, windows: Open) -> None:
    watched = windows("")
    page = watched.page
    page.goto(f"{site.url}/login?next=//evil.example/")
    page.get_by_label("API key").fill(
        site.world.call("keys", action="create", label="typed again", permissions=["read"])["key"]
    )
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("Logged in with")).to_be_visible()
    assert [line for line in watched.wrong if "evil" in line] == []


def test_the_link_of_the_command_logs_in_once_and_leaves_the_address(site: Site, windows: Open) -> None:
    engine = site.world.app.engine
    link = link_to(engine, site.url, engine.now())
    watched = windows("")
    page = watched.page
    page.goto(link)
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    assert urlsplit(page.url).fragment == ""
    expect(page.locator(".who summary")).to_have_text(LABEL)
    assert watched.wrong == []
    other = windows("").page
    other.goto(link)
    expect(other.get_by_role("alert")).to_contain_text("used already")


def test_a_ticket_is_no_cookie_and_a_cookie_no_ticket(site: Site) -> None:
    now = site.world.app.engine.now()
    logins = Logins(b"x" * 64, hours=1, entropy=site.world.app.engine.entropy)
    assert logins.read(logins.ticket("k", now).text, now) is None
    assert logins.read_ticket(logins.begin("k", now).text, now) is None


def test_links_keys_and_the_history_lead_from_page_to_page(watched: Watched) -> None:
    page = watched.open("/")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Timeline").click()
    expect(page.get_by_role("heading", name="Timeline", level=1)).to_be_focused()
    page.keyboard.press("m")
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Timeline", level=1)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Memories", level=1)).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#quick")).to_be_focused()
    page.keyboard.type("vacuum")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Search", level=1)).to_be_visible()
    expect(page.locator(".hit").first).to_contain_text("vacuum")


def test_the_palette_finds_pages_and_memories(watched: Watched) -> None:
    page = watched.open("/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Command or memory")
    expect(field).to_be_focused()
    field.fill("dream")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Dreams", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    field.fill("nightly vacuum")
    option = page.get_by_role("option").filter(has_text="three in the morning")
    option.click()
    expect(page.locator(".memory-text").first).to_contain_text("nightly vacuum")


def test_a_chosen_theme_stays(watched: Watched) -> None:
    page = watched.open("/")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Change the theme").click()
    after = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    watched.open("/settings")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after


def test_an_ended_login_leads_back_to_the_login(site: Site, windows: Open) -> None:
    watched = windows(site.login())
    page = watched.open("/")
    watched.context.clear_cookies()
    page.keyboard.press("m")
    expect(page.get_by_label("API key")).to_be_visible()
    assert urlsplit(page.url).path == "/login"


@pytest.mark.parametrize("path", ["/", "/memories", "/search?q=vacuum", "/inbox"])
def test_a_narrow_screen_needs_no_sideways_scrolling(
    path: str, site: Site, cookie: str, windows: Open
) -> None:
    watched = windows(cookie, viewport={"width": 375, "height": 700})
    page = watched.open(path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    expect(page.get_by_role("navigation", name="Main pages").get_by_role("link")).to_have_count(5)

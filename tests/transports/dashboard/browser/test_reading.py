"""What pages say to a reader: in words, with what they leave out, and on a small screen."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.transports.dashboard.browser.conftest import Open
from tests.transports.dashboard.browser.support.browser import Site, Watched, serving
from tests.transports.dashboard.browser.support.garden import Garden, open_garden

TOPIC_NAMES = """async () => {
    const own = document.querySelector("script[type=module]").src.replace("app.js", "ui.js");
    const { topicName } = await import(own);
    return [{ label: "topic-12ab", id: "topic-12ab" }, { label: "tea", domain: "topic-1" }].map(topicName);
}"""


def test_duplicates_that_are_kept_apart_stay_away_until_that_is_undone(
    watched: Watched, garden: Garden
) -> None:
    page = watched.complete("/inbox")
    groups = page.locator(".inbox-item").filter(has_text="duplicates")
    group = groups.filter(has_text="Anna leads")
    count = groups.count()
    group.click()
    page.keyboard.press("r")
    expect(group).to_have_count(0)
    expect(groups).to_have_count(count - 1)
    watched.complete("/inbox")
    expect(groups).to_have_count(count - 1)
    groups.first.click()
    page.keyboard.press("r")
    expect(groups).to_have_count(count - 2)
    page.keyboard.press("u")
    expect(groups).to_have_count(count - 1)
    assert garden.call("find_duplicates")["totalClusters"] == count


@pytest.mark.parametrize(
    ("path", "follows"),
    [("/memories", True), ("/timeline", True), ("/search?q=tea", True), ("/contradictions", True),
     ("/", False), ("/schedule", False), ("/session", False), ("/map", False), ("/domains", False)],
)  # fmt: skip
def test_a_page_that_does_not_follow_the_time_machine_says_so(
    watched: Watched, path: str, follows: bool
) -> None:
    at = (datetime.now(UTC) - timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    page = watched.open(f"{path}{'&' if '?' in path else '?'}as_of={at}")
    expect(page.get_by_text("This page shows the present.")).to_have_count(0 if follows else 1)
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_text("This page shows the present.")).to_have_count(0)


def test_a_link_to_a_place_of_the_page_goes_there(watched: Watched) -> None:
    page = watched.open("/timeline?days=90")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    column = page.locator("a.column").first
    day = page.locator(str(column.get_attribute("href")))
    expect(day).not_to_be_in_viewport()
    column.click()
    expect(day).to_be_in_viewport()


def test_a_page_that_stays_open_tells_how_long_ago_something_was_now(watched: Watched) -> None:
    page = watched.page
    page.clock.install()
    watched.open("/")
    shown = page.locator(".memory-row time").first
    before = shown.inner_text()
    page.clock.fast_forward(30 * 24 * 3_600_000)
    expect(shown).not_to_have_text(before)


def test_the_log_of_a_memory_is_told_in_words(watched: Watched, garden: Garden) -> None:
    reviewed = next(
        one for one in garden.ids if garden.world.get(one)["reps"] and one != garden.named["suppressed"]
    )
    page = watched.open(f"/memories/{reviewed}")
    total = garden.call("memory", action="history", id=reviewed)["totalEvents"]
    log = page.locator("details").filter(has_text=f"{total} event")
    log.locator("summary").click()
    rows = log.locator("li .change-what")
    expect(rows).to_have_count(total)
    told = " ".join(rows.all_inner_texts())
    assert "evidence" in told
    assert not set('{}[]"_') & set(told)


def test_every_review_is_on_the_curve(watched: Watched, garden: Garden) -> None:
    reviewed = next(one for one in garden.ids if garden.world.get(one)["reps"])
    events = garden.call("memory", action="history", id=reviewed)["events"]
    ratings = [one["details"]["evidence"] for one in events if one["kind"] == "memory.remarked"]
    page = watched.open(f"/memories/{reviewed}")
    dots = page.locator(".curve .dot title")
    expect(dots).to_have_count(len(ratings))
    for dot, rating in zip(dots.all(), ratings, strict=True):
        assert (dot.text_content() or "").startswith(f"review: {rating}, ")
    assert ratings


def test_the_session_of_a_memory_leads_to_all_that_it_wrote(watched: Watched, garden: Garden) -> None:
    memory = garden.world.get(garden.ids[9])
    session = memory["sessionId"]
    total = garden.call("memory", action="list", session_id=session, limit=1)["total"]
    page = watched.open(f"/memories/{memory['id']}")
    page.get_by_role("link", name=session, exact=True).click()
    expect(page.locator(".lead")).to_have_text(f"{total} memories fit the filter")
    page.get_by_role("button", name=f"session {session} ✕").click()
    expect(page.locator(".lead")).not_to_contain_text("filter")
    assert 1 < total < len(garden.ids)


def test_the_code_that_a_memory_is_about_is_named(watched: Watched, garden: Garden) -> None:
    cited = {"path": "shop/orders.py", "start": 3, "end": 9, "symbol": "total", "verified_at": "some day"}
    memory = garden.world.remember(
        "The total of an order is computed in one place.",
        metadata={"citations": [cited, "nonsense", {"path": "shop/tax.py", "start": 7}]}, force_create=True,
    )  # fmt: skip
    page = watched.open(f"/memories/{memory}")
    expect(page.locator(".facts li")).to_have_text(["shop/orders.py:3–9 total", "shop/tax.py:7"])
    garden.call("memory", action="delete", id=memory)


def test_a_review_is_alone_on_its_page(watched: Watched) -> None:
    page = watched.open("/schedule?review=1")
    expect(page.get_by_role("heading", name="Review", exact=True)).to_be_visible()
    expect(page.locator(".figures, .calendar")).to_have_count(0)
    page.get_by_role("button", name="End").click()
    expect(page.locator(".calendar")).to_be_visible()


def test_filters_fold_on_a_small_screen(site: Site, cookie: str, windows: Open) -> None:
    watched = windows(cookie, viewport={"width": 375, "height": 700})
    page = watched.open("/memories")
    order = page.get_by_label("Order")
    expect(order).to_be_hidden()
    page.get_by_text("Filter and order").click()
    order.select_option("oldest")
    expect(page.get_by_role("table", name="Memories")).to_be_visible()
    assert "order=oldest" in page.url
    assert watched.wrong == []


def test_operate_shows_the_size_of_the_store(watched: Watched, garden: Garden) -> None:
    page = watched.open("/operate")
    size = garden.call("system_status")["sizeBytes"]
    shown = page.locator(".facts div").filter(has=page.get_by_text("Size", exact=True)).locator("dd")
    number, unit = shown.inner_text().split()
    assert float(number) * {"kB": 1e3, "MB": 1e6}[unit] == pytest.approx(size, rel=0.2)


def test_an_empty_store_has_no_average(windows: Open, tmp_path: Path) -> None:
    with open_garden(tmp_path, planted=False) as empty, serving(empty.world) as site:
        watched = windows(site.login(), site)
        for path, figure in (("/", "retention"), ("/schedule", "average retention")):
            page = watched.open(path)
            expect(page.locator(".figure").filter(has_text=figure).first).to_contain_text("–")
        assert watched.wrong == []
        watched.page.goto("about:blank")


def test_proposals_do_not_push_domains_away_from_the_reader(watched: Watched) -> None:
    held: list[Route] = []
    page = watched.page
    page.route("**/api/v1/domains/proposals", lambda route: held.append(route))
    with page.expect_response("**/api/v1/domains"):
        page.goto(f"{watched.site.url}/domains")
    expect(page.locator(".skeleton")).to_be_visible()
    expect(page.locator(".cards")).to_have_count(0)
    held[0].continue_()
    expect(page.locator(".cards .panel")).not_to_have_count(0)


def test_a_domain_without_a_name_is_not_called_by_its_id(watched: Watched) -> None:
    assert watched.open("/domains").evaluate(TOPIC_NAMES) == ["unnamed topic", "tea"]

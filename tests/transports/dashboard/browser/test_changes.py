"""What was never recalled, moving to another scope, where events come from, revoking a key, undo in the
inbox."""

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.transports.dashboard.browser.conftest import Open
from tests.transports.dashboard.browser.support.browser import Site, Watched
from tests.transports.dashboard.browser.support.garden import Garden
from vestige.engine.care import keys
from vestige.engine.context import Call


@pytest.fixture
def wharf(garden: Garden) -> list[str]:
    """Three memories of a scope that nothing else is in."""
    return [
        garden.world.remember(
            f"Berth {name} of the wharf has a crane.", scope="/project/wharf", force_create=True
        )
        for name in ("one", "two", "three")
    ]


def listed(garden: Garden, **filters: Any) -> int:
    return int(garden.call("memory", action="list", limit=1, **filters)["total"])


def test_memories_that_were_never_recalled_are_listed_and_can_be_selected(
    watched: Watched, garden: Garden, wharf: list[str]
) -> None:
    garden.call("search", query="Which berth of the wharf is number two?", scope="/project/wharf", limit=1)
    garden.world.app.settle()
    never = listed(garden, scope="/project/wharf", recalled=False)
    assert never == 2
    page = watched.open("/memories?scope=/project/wharf")
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_label("Recalled").select_option("never")
    expect(page.get_by_role("row")).to_have_count(2)
    assert "recalled=false" in page.url
    assert (
        json.loads(page.request.get(page.get_by_role("link", name="JSON").evaluate("a => a.href")).text())[
            "total"
        ]
        == never
    )
    page.get_by_role("button", name=f"Select all {never}").click()
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("dialog").locator(".effect")).to_contain_text("2 memories of 2 will change.")
    page.keyboard.press("Escape")
    page.get_by_label("Recalled").select_option("at least once")
    expect(page.get_by_role("row")).to_have_count(1)


def test_a_selection_moves_to_another_scope_and_back(
    watched: Watched, garden: Garden, wharf: list[str]
) -> None:
    total = listed(garden, scope="/project/wharf")
    page = watched.open("/memories?scope=/project/wharf")
    page.get_by_role("button", name=f"Select all {total}").click()
    page.get_by_role("button", name="Move", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Scope").fill("/project/harbour")
    dialog.get_by_label("Scope").blur()
    expect(dialog.locator(".effect")).to_have_text(f"{total} memories of {total} will change.")
    dialog.get_by_role("button", name="Move").click()
    expect(page.get_by_text("No memory fits this filter.")).to_be_visible()
    assert listed(garden, scope="/project/harbour") == total
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("row")).to_have_count(total)
    assert listed(garden, scope="/project/harbour") == 0


def test_one_memory_moves_to_another_scope_and_back(
    watched: Watched, garden: Garden, wharf: list[str]
) -> None:
    page = watched.open(f"/memories/{wharf[0]}")
    page.get_by_role("button", name="Move…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("datalist option[value='/project/wharf']")).to_have_count(1)
    dialog.get_by_label("Scope").fill("/project/harbour")
    dialog.get_by_role("button", name="Move").click()
    facts = page.locator("section.panel").filter(has=page.get_by_role("heading", name="Provenance"))
    expect(facts.get_by_role("link", name="/project/harbour")).to_be_visible()
    expect(page.locator(".revisions")).to_contain_text("From /project/wharf to /project/harbour.")
    page.get_by_role("button", name="Undo").click()
    expect(facts.get_by_role("link", name="/project/wharf")).to_be_visible()
    assert garden.world.get(wharf[0])["scope"] == "/project/wharf"


def test_a_key_is_not_moved_to_where_it_may_not_write(
    site: Site, garden: Garden, wharf: list[str], windows: Open
) -> None:
    """It says so in the preview, before anything happens."""
    watched = windows(site.login("read", "write", scopes=["/project/wharf"]))
    page = watched.open("/memories")
    page.get_by_label("Select", exact=True).first.check()
    page.get_by_role("button", name="Move", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Scope").fill("/project/harbour")
    dialog.get_by_label("Scope").blur()
    expect(dialog.get_by_role("alert")).to_contain_text("/project/harbour")
    assert listed(garden, scope="/project/harbour") == 0


def test_a_key_for_domains_gets_no_button_that_its_server_refuses(
    site: Site, garden: Garden, windows: Open
) -> None:
    domain = garden.call("domains", action="list")["domains"][0]["id"]
    watched = windows(site.login("read", "write", domains=[domain]))
    page = watched.open("/memories")
    page.get_by_label("Select", exact=True).first.check()
    buttons = page.get_by_role("toolbar").get_by_role("button")
    expect(buttons.filter(has_text="Delete for good")).to_be_visible()
    for name in ("Suppress", "Archive", "Pin", "Move"):
        expect(buttons.filter(has_text=name)).to_have_count(0)


def test_the_feed_says_where_an_event_came_from_to_who_may_know_it(
    site: Site, garden: Garden, windows: Open
) -> None:
    call = Call(engine=garden.world.app.engine)
    _, text = keys.mint(call, "laptop of Ada", ("read", "write"))
    administrator, reader = windows(site.login()), windows(site.login("read"))
    for watched in (administrator, reader):
        expect(watched.open("/feed").locator(".connection.live")).to_be_visible()
    asked = {"content": "The tide table hangs in the office.", "session_id": "monday"}
    answer = administrator.page.request.post(
        f"{site.url}/api/v1/memories", data=asked, headers={"Authorization": f"Bearer {text}"}
    )
    assert answer.status == 201, answer.text()
    told, rest = (
        watched.page.locator(".feed-row").filter(has_text="The tide table")
        for watched in (administrator, reader)
    )
    expect(told).to_contain_text("laptop of Ada")
    expect(told.get_by_role("link", name="session monday")).to_have_attribute(
        "href", "/memories?session=monday"
    )
    expect(rest).to_be_visible()
    expect(rest).not_to_contain_text("laptop of Ada")


def test_revoking_a_key_asks_first_and_names_it(watched: Watched, garden: Garden, site: Site) -> None:
    call = Call(engine=garden.world.app.engine)
    made, _ = keys.mint(call, "the lost phone", ("read",), ["/project/wharf"])
    page = watched.open("/operate")
    row = page.locator(".key-row").filter(has_text="the lost phone")
    row.get_by_role("button", name="Revoke…").click()
    dialog = page.get_by_role("dialog", name="Revoke the key “the lost phone”?")
    expect(dialog).to_contain_text("/project/wharf")
    expect(dialog).to_contain_text("This cannot be undone")
    page.keyboard.press("Enter")  # what has the focus closes it
    expect(dialog).to_have_count(0)
    expect(row).to_be_visible()
    row.get_by_role("button", name="Revoke…").click()
    dialog.get_by_role("button", name="Revoke “the lost phone”").click()
    expect(row).to_have_count(0)
    known = garden.world.app.engine.store.list_keys([made.id])
    assert known[0].revoked_at is not None


def test_undo_of_the_first_of_two_decisions_leads_back_to_its_item(watched: Watched, garden: Garden) -> None:
    held = [
        garden.call("smart_ingest", content=f"The {name} of the pier is rusty.", review=True)["nodeId"]
        for name in ("gate", "rail", "lamp", "bench")
    ]
    page = watched.open("/inbox")
    proposed = page.locator(".inbox-item").filter(has_text="proposed memory")
    current = page.locator(".inbox-item[aria-current=true] bdi")
    expect(proposed).to_have_count(4)
    proposed.nth(1).click()
    names = proposed.locator("bdi").all_inner_texts()
    for left in (3, 2):
        page.keyboard.press("r")
        expect(proposed).to_have_count(left)
    expect(current).to_have_text(names[3])
    page.keyboard.press("k")
    expect(current).to_have_text(names[0])
    page.locator(".notice").first.get_by_role("button", name="Undo").click()
    expect(proposed).to_have_count(3)
    expect(current).to_have_text(names[1])
    page.locator(".notice").filter(has_text="Rejected").get_by_role("button", name="Undo").click()
    expect(proposed).to_have_count(4)
    expect(current).to_have_text(names[2])
    for one in held:
        garden.call("review", action="delete", id=one)


def test_the_inbox_has_a_twin_with_everything_that_it_lists(watched: Watched, garden: Garden) -> None:
    held = garden.call("smart_ingest", content="The gate of the pier is rusty.", review=True)["nodeId"]
    page = watched.complete("/inbox")
    twin = json.loads(page.request.get(page.get_by_role("link", name="JSON").evaluate("a => a.href")).text())
    kinds = {
        "proposed memory": twin["proposedMemories"]["texts"],
        "contradiction": twin["contradictions"]["contradictions"],
        "domain proposal": twin["domainProposals"]["proposals"],
        "duplicates": twin["duplicates"]["clusters"],
        "insight": twin["insights"]["insights"],
    }
    for name, waits in kinds.items():
        expect(page.locator(".inbox-item").filter(has_text=name)).to_have_count(len(waits))
    assert held in [one["id"] for one in twin["proposedMemories"]["texts"]]
    garden.call("review", action="delete", id=held)

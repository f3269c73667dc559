"""Lists that the server counts and cuts: contradictions and duplicates by the page, suppressed ones alone."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from testbed.world import HandClock, World, open_world
from tests.transports.dashboard.browser.conftest import Open
from tests.transports.dashboard.browser.support.browser import Site, serving
from vestige.operations.registry.groups import registry

PAIRS, PAGE = 52, 20
NAMES = [first + second for first in ("oak", "elm", "fir", "yew") for second in "abcdefghijklm"]


class OtherMachine(HandClock):
    """Another machine with ids of its own."""

    def new_id(self) -> str:
        return "0190" + super().new_id()[4:]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    settings: dict[str, Any] = {"mechanisms.autopilot": False}
    with open_world(tmp_path_factory.mktemp("pairs"), **settings) as opened:
        for number, name in enumerate(NAMES):
            for value in (5, 8):
                opened.remember(f"The retry limit of {name} in {name[::-1]} is {value}.", force_create=True)
            for copy in (".", "!"):
                opened.remember(f"{name.title()} sings number {number} on Sundays{copy}", force_create=True)
        opened.call("suppress", id=opened.remember("The wedding at the lake was cancelled."))
        yield opened


@pytest.fixture(scope="module")
def own(world: World) -> Iterator[Site]:
    with serving(world) as running:
        yield running


def test_contradictions_are_paged_by_the_server_and_the_address_keeps_the_page(
    world: World, own: Site, windows: Open
) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/contradictions")
    total = world.call("contradictions")["total"]
    assert total == PAIRS
    expect(page.get_by_text(f"{total} pairs among")).to_be_visible()
    pager = page.get_by_role("navigation", name="Parts of the list")
    expect(pager).to_contain_text(f"1–{PAGE} of {total}")
    expect(pager.get_by_role("button", name="Newer")).to_be_disabled()
    pager.get_by_role("button", name="Older").click()
    expect(pager).to_contain_text(f"{PAGE + 1}–{2 * PAGE} of {total}")
    pager.get_by_role("button", name="Older").click()
    expect(pager).to_contain_text(f"{2 * PAGE + 1}–{total} of {total}")
    expect(page.locator("article.pair")).to_have_count(total - 2 * PAGE)
    last = world.call("contradictions", limit=PAGE, offset=2 * PAGE)["contradictions"][-1]
    expect(page.locator("article.pair").last).to_contain_text(last["stronger"]["preview"])
    page.reload()
    expect(pager).to_contain_text(f"{2 * PAGE + 1}–{total} of {total}")
    page.go_back()
    expect(pager).to_contain_text(f"{PAGE + 1}–{2 * PAGE} of {total}")
    assert watched.wrong == []


def test_a_page_behind_the_last_one_becomes_the_last_one(own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/contradictions?offset=400")
    expect(page.get_by_role("navigation", name="Parts of the list")).to_contain_text(
        f"{2 * PAGE + 1}–{PAIRS} of {PAIRS}"
    )
    assert watched.wrong == []


def test_duplicates_are_paged_by_the_server(world: World, own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/duplicates")
    found = world.call("find_duplicates", limit=PAGE)
    total = found["totalClusters"]
    assert total > PAGE
    pager = page.get_by_role("navigation", name="Parts of the list")
    expect(pager).to_contain_text(f"1–{PAGE} of {total}")
    pager.get_by_role("button", name="More").click()
    expect(pager).to_contain_text(f"{PAGE + 1}–{min(total, 2 * PAGE)} of {total}")
    second = world.call("find_duplicates", limit=PAGE, offset=PAGE)["clusters"][0]
    expect(page.locator("article.pair").first).to_contain_text(second["members"][0]["contentPreview"])
    assert watched.wrong == []


def test_the_inbox_says_how_much_more_waits_than_it_lists(world: World, own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/inbox")
    waiting = PAIRS + world.call("find_duplicates")["totalClusters"]
    expect(page.locator(".inbox-item")).to_have_count(100)
    expect(page.get_by_text(f"{waiting - 100} more wait: the first 50 of a kind are listed.")).to_be_visible()
    assert watched.wrong == []


def test_the_projects_with_memories_lead_to_those_memories(world: World, own: Site, windows: Open) -> None:
    world.remember("The harbour is dredged in May.", scope="/project/harbour")
    watched = windows(own.login(), own)
    page = watched.open("/projects")
    page.get_by_role("link", name="/project/harbour").click()
    expect(page.get_by_text("1 memory fits the filter")).to_be_visible()
    expect(page.get_by_role("table", name="Memories")).to_contain_text("dredged in May")
    world.call("memory", action="delete", id=world.call("memory", action="list", limit=1)["results"][0]["id"])
    assert watched.wrong == []


def test_a_new_memory_does_not_move_the_list_under_the_reader(world: World, own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/memories")
    expect(page.locator(".connection.live")).to_be_visible()
    total = world.call("memory", action="list", limit=1)["total"]
    box = page.get_by_role("table", name="Memories")
    box.evaluate("box => { box.scrollTop = 4000 }")
    last = world.call("memory", action="list", limit=1, offset=100)["results"][0]
    row = box.get_by_role("row").filter(has=page.locator(f"a[href='/memories/{last['id']}']"))
    before = row.bounding_box()
    world.remember("The ferry leaves at seven.", force_create=True)
    expect(page.get_by_text("changed meanwhile")).to_be_visible()
    assert row.bounding_box() == before
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".lead")).to_have_text(f"{total + 1} memories")
    expect(row).to_have_attribute("aria-rowindex", "102")
    world.call("memory", action="delete", id=world.call("memory", action="list", limit=1)["results"][0]["id"])
    assert watched.wrong == []


def test_that_the_list_has_changed_is_said_until_it_is_shown(world: World, own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/memories")
    expect(page.locator(".connection.live")).to_be_visible()
    first = world.remember("The ferry leaves at eight.", force_create=True)
    expect(page.get_by_text("changed meanwhile")).to_be_visible()
    page.get_by_role("table", name="Memories").evaluate("box => { box.scrollTop = box.scrollHeight }")
    for offset in (4 * PAIRS - 10, 4 * PAIRS):  # on the second page of the server, and on the third
        shown = world.call("memory", action="list", limit=1, offset=offset)["results"][0]["id"]
        expect(page.locator(f"a[href='/memories/{shown}']")).to_be_visible()
    with page.expect_response(lambda answer: "/memories?" in answer.url) as again:
        world.call("memory", action="edit", id=first, content="The ferry leaves at nine.")
    again.value.finished()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.get_by_text("changed meanwhile")).to_be_visible()
    world.call("memory", action="delete", id=first)
    assert watched.wrong == []


def test_suppressed_memories_can_be_listed_alone(world: World, own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/memories")
    total = world.call("memory", action="list", limit=1)["total"]
    expect(page.get_by_text(f"{total} memories", exact=True)).to_be_visible()
    page.get_by_label("Suppressed").select_option("only these")
    expect(page.get_by_text("1 memory fits the filter")).to_be_visible()
    expect(page.get_by_role("table", name="Memories").get_by_role("row")).to_have_count(1)
    page.get_by_label("Suppressed").select_option("also")
    expect(page.get_by_text(f"{total + 1} memories fit the filter")).to_be_visible()
    assert watched.wrong == []


def test_operate_lists_the_backups_and_the_peers_that_the_operations_list(
    world: World, own: Site, windows: Open, tmp_path: Path
) -> None:
    sync = registry.operations["sync"]
    watched = windows(own.login(), own)
    page = watched.open("/operate")
    expect(page.get_by_text("Not synchronised with another machine.")).to_be_visible()
    with open_world(tmp_path / "other", clock=OtherMachine(datetime.now(UTC))) as other:
        other.app.run(sync, {"folder": str(tmp_path / "shared")}, lambda *_: None)
        node = other.app.engine.store.node
    world.app.run(sync, {"folder": str(tmp_path / "shared")}, lambda *_: None)
    for number in range(9):
        world.call("backup", path=f"before-{number}.db")
    world.clock.advance(hours=1)  # after the times of those files, which the system sets
    page = watched.open("/operate")
    backups, peers = (page.locator("section.panel").filter(has=page.get_by_role("heading", name=name))
                      for name in ("Backups", "Sync"))  # fmt: skip
    expect(peers.locator(".file-row")).to_have_count(1)
    expect(peers.locator(".file-row")).to_contain_text(node)
    expect(peers).to_contain_text(str(tmp_path / "shared"))
    expect(backups.locator(".file-row")).to_have_count(8)
    backups.get_by_role("button", name="Older").click()
    expect(backups.locator(".file-row")).to_have_count(1)
    backups.get_by_role("button", name="Back up now").click()
    expect(backups).to_contain_text("1–8 of 10")
    listed = world.call("installation", action="backups")["backups"]
    assert backups.locator(".file-row code").all_inner_texts() == [one["file"] for one in listed[:8]]
    expect(backups.locator(".file-row").filter(has_text=listed[0]["file"])).to_contain_text("last")
    assert watched.wrong == []

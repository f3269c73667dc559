"""What was never recalled, moving to another scope, where events come from, revoking a key, undo in the
inbox."""

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.transports.dashboard.browser.support.browser import Watched
from tests.transports.dashboard.browser.support.garden import Garden


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

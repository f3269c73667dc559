"""InsightToast, on a clock that the test moves: which events, which words, how long."""

from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.transports.dashboard.browser.support.browser import Watched

HEAR = """event => {
    const own = document.querySelector("script[type=module]").src.replace("app.js", "live.js");
    return import(own).then(live => live.hear(event));
}"""
SOON_MS = 100
"""In which a toast is drawn and its time begins; the clock stands still unless a test moves it."""
SHOWN = [
    ("DreamCompleted",
     {"memories_replayed": 1, "connections_found": 1, "insights_generated": 0, "duration_ms": 2400},
     "Dream consolidated", "Replayed 1 memory · 1 new connection in 2.4s", 7000),
    ("DreamCompleted",
     {"memories_replayed": 12, "connections_found": 3, "insights_generated": 2, "duration_ms": 900},
     "Dream consolidated", "Replayed 12 memories · 3 new connections · 2 insights in 0.9s", 7000),
    ("ConsolidationCompleted",
     {"nodes_processed": 8, "decay_applied": 2, "embeddings_generated": 0, "duration_ms": 1100},
     "Consolidation swept", "8 memories · 2 decayed in 1.1s", 6000),
    ("ConnectionDiscovered", {"connection_type": "semantic", "weight": 0.8712}, "Bridge discovered",
     "semantic · weight 0.87", 4500),
    ("MemoryPromoted", {"id": "a", "new_retention": 0.734}, "Promoted", "retention 73%", 4500),
    ("MemoryDemoted", {"id": "a", "new_retention": 0.2}, "Demoted", "retention 20%", 4500),
    ("MemorySuppressed", {"id": "a", "suppression_count": 2, "estimated_cascade": 8}, "Forgetting",
     "suppression #2 · Rac1 cascade ~8 neighbors", 5500),
    ("MemoryUnsuppressed", {"id": "a", "remaining_count": 0}, "Recovered", "fully restored", 5000),
    ("Rac1CascadeSwept", {"seeds": 1, "neighbors_affected": 4}, "Rac1 cascade",
     "1 seed · 4 neighbors affected", 6000),
    ("MemoryDeleted", {"id": "0123456789abcdef"}, "Memory deleted", "01234567", 4000),
]  # fmt: skip
SILENT = (
    "Connected", "Heartbeat", "SearchPerformed", "RetentionDecayed", "ActivationSpread", "ImportanceScored",
    "MemoryCreated", "MemoryUpdated", "DreamStarted", "DreamProgress", "ConsolidationStarted",
)  # fmt: skip


@pytest.fixture
def page(watched: Watched) -> Page:
    watched.page.clock.install()
    watched.open("/settings")
    page = watched.page
    expect(page.locator(".connection.live")).to_be_visible()
    page.clock.pause_at(datetime.fromtimestamp(page.evaluate("Date.now()") / 1000 + 5, UTC))
    return page


def hear(page: Page, kind: str, data: dict[str, Any]) -> None:
    page.evaluate(HEAR, {"type": kind, "data": data})
    page.clock.run_for(SOON_MS)


@pytest.mark.parametrize(("kind", "data", "title", "body", "dwell"), SHOWN)
def test_an_event_is_told_in_its_words_for_its_time(
    page: Page, kind: str, data: dict[str, Any], title: str, body: str, dwell: int
) -> None:
    hear(page, kind, data)
    toast = page.locator(".toast")
    expect(toast.locator(".toast-title")).to_have_text(title)
    expect(toast.locator(".toast-body")).to_have_text(body)
    page.clock.run_for(dwell - 2 * SOON_MS)
    expect(toast).to_have_count(1)
    page.clock.run_for(2 * SOON_MS)
    expect(toast).to_have_count(0)


def test_what_happens_all_the_time_is_silent(page: Page) -> None:
    for kind in SILENT:
        hear(page, kind, {"timestamp": "2026-01-01T00:00:00Z", "memory_count": 1, "avg_retention": 0.5})
    hear(page, "MemoryDeleted", {"id": "last-one"})
    expect(page.locator(".toast")).to_have_count(1)


def test_at_most_four_are_shown_and_the_oldest_goes(page: Page) -> None:
    for number in range(6):
        hear(page, "MemoryDeleted", {"id": f"number-{number}"})
    expect(page.locator(".toast-body")).to_have_text(["number-2", "number-3", "number-4", "number-5"])


def test_discoveries_are_told_once_in_one_and_a_half_seconds(page: Page) -> None:
    found = {"connection_type": "semantic", "weight": 0.5}
    hear(page, "ConnectionDiscovered", found)
    hear(page, "ConnectionDiscovered", found)
    expect(page.locator(".toast")).to_have_count(1)
    page.clock.run_for(1500 - SOON_MS)
    hear(page, "ConnectionDiscovered", found)
    expect(page.locator(".toast")).to_have_count(2)


def test_a_toast_waits_while_it_is_looked_at(page: Page) -> None:
    hear(page, "MemoryDeleted", {"id": "held"})
    toast = page.locator(".toast")
    page.clock.run_for(3000)
    toast.hover()
    page.clock.run_for(SOON_MS)
    expect(toast).to_have_class("toast event-MemoryDeleted paused")
    page.clock.run_for(60_000)
    expect(toast).to_have_count(1)
    page.mouse.move(5, 5)
    page.clock.run_for(SOON_MS)
    expect(toast).not_to_have_class("toast event-MemoryDeleted paused")
    page.clock.run_for(500)
    expect(toast).to_have_count(1)
    page.clock.run_for(500)
    expect(toast).to_have_count(0)


def test_a_focused_toast_waits_and_then_has_a_last_moment(page: Page) -> None:
    hear(page, "MemoryDeleted", {"id": "focused"})
    toast = page.locator(".toast")
    page.clock.run_for(4000 - SOON_MS - 20)
    toast.focus()
    page.clock.run_for(60_000)
    expect(toast).to_have_count(1)
    page.evaluate("document.activeElement.blur()")
    page.clock.run_for(100)
    expect(toast).to_have_count(1)
    page.clock.run_for(200)
    expect(toast).to_have_count(0)


def test_four_examples_follow_each_other_after_eight_tenths_of_a_second(page: Page) -> None:
    page.get_by_role("button", name="Preview Pulse").click()
    page.clock.run_for(SOON_MS)
    for shown in (1, 2, 3):
        expect(page.locator(".toast")).to_have_count(shown)
        page.clock.run_for(600)
        expect(page.locator(".toast")).to_have_count(shown)
        page.clock.run_for(200)
    expect(page.locator(".toast")).to_have_count(4)


@pytest.mark.parametrize("how", ["click", "Enter", "Space"])
def test_a_toast_is_dismissed_by_click_and_by_key(page: Page, how: str) -> None:
    hear(page, "MemoryDeleted", {"id": "dismissed"})
    toast = page.locator(".toast")
    if how == "click":
        toast.click()
    else:
        toast.focus()
        page.keyboard.press(how)
    expect(toast).to_have_count(0)


def test_preview_pulse_shows_four_examples(page: Page) -> None:
    page.get_by_role("button", name="Preview Pulse").click()
    page.clock.run_for(SOON_MS)
    expect(page.locator(".toast")).to_have_count(1)
    page.clock.run_for(2500)
    expect(page.locator(".toast-title")).to_have_text(
        ["Dream consolidated", "Bridge discovered", "Forgetting", "Consolidation swept"]
    )
    region = page.get_by_role("status", name="Events")
    expect(region).to_have_attribute("aria-live", "polite")


def test_toasts_are_at_the_top_of_a_small_screen(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    hear(page, "MemoryDeleted", {"id": "small"})
    box = page.locator(".toast").bounding_box()
    assert box is not None
    assert box["y"] < 100

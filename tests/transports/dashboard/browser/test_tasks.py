"""What people come for, from start to end: the twelve tasks of the dashboard."""

import json
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from tests.transports.dashboard.browser.support.browser import Site, Watched
from tests.transports.dashboard.browser.support.garden import Garden
from vestige.core.caller import Invocation

UNDO = "Undo"


def notice(page: Page) -> None:
    """Wait for what a change says, and dismiss it."""
    page.locator(".notice").last.wait_for()
    page.locator(".notice").last.get_by_role("button", name="Dismiss").click()


def test_what_the_agent_gets_at_the_next_session_start(watched: Watched, garden: Garden) -> None:
    query = "deployment window"
    before = garden.world.get(garden.named["new"])["timesRetrieved"]
    page = watched.open(f"/session?q={quote(query)}")
    exact = garden.call("session_context", queries=[query], preview=True)
    expect(page.locator(".exact")).to_have_text(exact["context"])
    costs = page.locator(".session-item > .num").all_inner_texts()
    assert costs == [str(one["tokens"]) for one in exact["items"]]
    line = page.locator(".session-item").filter(has_text="Thursday evening")
    line.get_by_role("button", name="Mute").click()
    expect(line).to_have_count(0)
    page.get_by_role("button", name=UNDO).click()
    expect(line).to_have_count(1)
    assert garden.world.get(garden.named["new"])["timesRetrieved"] == before


def test_why_the_agent_did_not_know_something(watched: Watched, garden: Garden) -> None:
    hidden = garden.world.get(garden.named["suppressed"])["content"]
    page = watched.open(f"/search?q={quote(hidden)}")
    assert page.locator(".hits .hit").filter(has_text=hidden).count() == 0
    page.get_by_role("button", name="Why did the agent not know it?").click()
    found = page.locator(".why-not .hit").filter(has_text=hidden)
    expect(found).to_contain_text("left out by its suppression")
    found.get_by_role("button", name="Lift the suppression").click()
    page.locator(".notice").wait_for()
    assert garden.world.get(garden.named["suppressed"])["suppressionCount"] == 0
    page.get_by_role("button", name=UNDO).click()
    expect(page.locator(".notice").filter(has_text="Undone")).to_be_visible()
    assert garden.world.get(garden.named["suppressed"])["suppressionCount"] == 1


def test_every_rank_is_explained_by_the_numbers_of_the_search(watched: Watched, garden: Garden) -> None:
    query = "how long are logs kept"
    page = watched.open(f"/search?q={quote(query)}")
    first = garden.call("search", query=query, explain=True, record=False)["results"][0]
    hit = page.locator(".hit").first
    expect(hit).to_contain_text(first["content"])
    for stage in first["explain"]["stages"]:
        row = hit.locator("tr", has=page.locator(f"td[title='{stage['stage']}']"))
        expect(row).to_contain_text(f"{stage['score']:.3f}")


def test_something_outdated_is_ended_and_its_history_shown(watched: Watched, garden: Garden) -> None:
    memory = garden.ids[0]
    page = watched.open(f"/memories/{memory}")
    expect(page.locator(".diff ins")).to_contain_text("It was thirty before.")
    expect(page.locator(".facts").first).to_contain_text("meeting-0.md")
    page.get_by_role("button", name="Outdated…").click()
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".notice").filter(has_text="It is true until")).to_be_visible()
    assert garden.world.get(memory)["validUntil"]
    expect(page.get_by_text("True until", exact=True)).to_be_visible()
    page.get_by_role("button", name=UNDO).click()
    expect(page.get_by_text("True until", exact=True)).to_have_count(0)
    assert "validUntil" not in garden.world.get(memory)


def test_the_inbox_is_worked_off_with_keys_alone(watched: Watched, garden: Garden) -> None:
    page = watched.open("/inbox")
    expect(page.locator(".inbox-item").first).to_contain_text("contradiction")
    page.keyboard.press("j")
    expect(page.locator(".inbox-item").nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    page.keyboard.press("a")
    page.locator(".notice").wait_for()
    assert garden.call("contradictions")["total"] == 0
    expect(page.locator(".inbox-item").first).not_to_contain_text("contradiction")
    page.keyboard.press("u")
    expect(page.locator(".inbox-item").first).to_contain_text("contradiction")
    assert garden.call("contradictions")["total"] == 1


def test_nothing_slips_in_above_what_a_person_is_about_to_decide(watched: Watched, garden: Garden) -> None:
    before = garden.call("smart_ingest", content="The attic holds the old ledgers.", review=True)["nodeId"]
    held: list[Route] = []
    page, waiting = watched.page, watched.page.locator(".inbox-item")
    page.route("**/api/v1/review?*", lambda route: held.append(route))
    with page.expect_response("**/api/v1/contradictions*"), page.expect_response("**/api/v1/insights*"):
        page.goto(f"{watched.site.url}/inbox")
    expect(waiting).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute("**/api/v1/review?*")
    expect(waiting.first).to_contain_text("proposed memory")
    contradiction = waiting.filter(has_text="contradiction")
    contradiction.click()
    later = garden.call("smart_ingest", content="The cellar keeps the wine cool.", review=True)["nodeId"]
    expect(waiting.filter(has_text="The cellar keeps")).to_be_visible()
    expect(contradiction).to_have_attribute("aria-current", "true")
    for waits in (before, later):
        garden.call("review", action="delete", id=waits)


def test_a_proposed_memory_is_edited_approved_taken_back_and_rejected(
    watched: Watched, garden: Garden
) -> None:
    said = [
        {"role": "assistant", "text": "The build runs on port 7001."},
        {"role": "user", "text": "No, the build runs on port 7002."},
    ]
    assert garden.call("capture", turns=said, session_id="s1")["waiting"] == 1
    page = watched.open("/inbox")
    expect(page.locator(".inbox-item").first).to_contain_text("proposed memory")
    page.keyboard.press("e")
    page.get_by_label("Text").fill("The build listens on port 7002.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".inbox-detail .memory-text")).to_have_text("The build listens on port 7002.")
    page.locator(".inbox-item").first.focus()
    page.keyboard.press("a")
    expect(page.locator(".inbox-item").first).not_to_contain_text("proposed memory")
    assert garden.call("review", action="list")["texts"] == []
    page.keyboard.press("u")
    expect(page.locator(".inbox-item").first).to_contain_text("proposed memory")
    page.keyboard.press("r")
    expect(page.locator(".inbox-item").first).not_to_contain_text("proposed memory")
    (kept,) = garden.call("review", action="list", status="all")["texts"]
    assert kept["status"] == "rejected"


def test_the_inbox_shows_and_changes_what_waits(watched: Watched, garden: Garden) -> None:
    page = watched.open("/inbox")
    page.get_by_text("What waits here").click()
    page.get_by_label("Another scope").fill("/project/shed")
    page.get_by_label("Waits there").select_option("all")
    page.get_by_role("button", name="Choose").click()
    row = page.get_by_label("Waits in /project/shed")
    expect(row).to_have_value("all")
    assert garden.call("review", action="policy", scope="/project/shed/roof")["policy"] == "all"
    row.select_option("default")
    expect(row).to_have_count(0)
    assert garden.call("review", action="policy", scope="/project/shed/roof")["policy"] == "low_trust"


def test_a_long_proposed_memory_is_shown_and_edited_whole(watched: Watched, garden: Garden) -> None:
    text = "The archive keeps tapes of 1998. " + "Shelf after shelf is dusty. " * 60 + "The last is red."
    held = garden.call("smart_ingest", content=text, review=True)["nodeId"]
    page = watched.open("/inbox")
    expect(page.locator(".inbox-detail .memory-text")).to_contain_text("The last is red.")
    page.keyboard.press("e")
    changed = text.replace("1998", "1999")
    expect(page.get_by_label("Text")).to_have_value(text)
    page.get_by_label("Text").fill(changed)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".inbox-detail .memory-text")).to_contain_text("1999")
    assert garden.call("review", action="show", id=held)["content"] == changed
    garden.call("review", action="delete", id=held)


def test_an_edit_of_the_tags_leaves_the_text_as_it_is(watched: Watched, garden: Garden) -> None:
    text = "The pantry has a shelf for jam."
    memory_id = garden.call("smart_ingest", content=text, tags=["jam"])["nodeId"]
    page = watched.open(f"/memories/{memory_id}")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Text")).to_have_value(text, timeout=10_000)
    page.get_by_label("Tags, with commas").fill("jam, shelf")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".notice")).to_be_visible()
    kept = garden.world.get(memory_id)
    assert (kept["content"], kept["tags"]) == (text, ["jam", "shelf"])
    garden.call("memory", action="delete", id=memory_id)


def test_a_clean_up_shows_what_it_would_do_and_can_be_undone(watched: Watched, garden: Garden) -> None:
    page = watched.open("/memories?tags=billing")
    total = garden.call("memory", action="list", tags=["billing"])["total"]
    page.get_by_role("button", name=f"Select all {total}").click()
    expect(page.get_by_text(f"{total} selected")).to_be_visible()
    page.get_by_role("button", name="Suppress").click()
    dialog = page.get_by_role("dialog")
    shown = garden.call("memory", action="bulk", change="suppress", tags=["billing"])
    expect(dialog.locator(".effect")).to_have_text(f"{shown['changed']} memories of {total} will change.")
    expect(dialog).to_contain_text(f"{shown['links']} link")
    earlier = {run["id"] for run in garden.call("memory", action="bulk_runs")["runs"]}
    dialog.get_by_role("button", name="Suppress").click()
    expect(page.get_by_text("No memory fits this filter.")).to_be_visible()

    def run() -> dict[str, Any]:
        """The one of this test: others of the same moment may be listed before it."""
        runs = garden.call("memory", action="bulk_runs")["runs"]
        (own,) = [one for one in runs if one["id"] not in earlier]
        return dict(own)

    assert run()["memories"] == total
    page.get_by_role("button", name=UNDO).click()
    expect(page.get_by_role("table", name="Memories")).to_have_attribute("aria-rowcount", str(total))
    assert "undoneAt" in run()


def test_memories_that_match_later_are_not_changed_unseen(watched: Watched, garden: Garden) -> None:
    first = garden.world.remember("The heron counts frogs.", tags=["heron"], force_create=True)
    page = watched.open("/memories?tags=heron")
    page.get_by_role("button", name="Select all 1").click()
    page.get_by_role("button", name="Delete for good").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".effect")).to_have_text("1 memory of 1 will change.")
    second = garden.world.remember("The heron counts newts.", tags=["heron"], force_create=True)
    dialog.get_by_role("button", name="Delete for good").click()
    expect(page.locator(".notice.failed")).to_contain_text("2 memories match now")
    expect(dialog.locator(".effect")).to_have_text("2 memories of 2 will change.")
    assert garden.world.get(first)
    dialog.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("No memory fits this filter.")).to_be_visible()
    assert garden.call("memory", action="get_batch", ids=[first, second])["found"] == 0
    watched.wrong[:] = [line for line in watched.wrong if "409" not in line]


def test_a_clean_up_goes_by_keys_alone(watched: Watched, garden: Garden) -> None:
    page = watched.open("/memories?tags=interface")
    page.get_by_role("table", name="Memories").focus()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_role("button", name="Add a tag").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Tag")).to_be_focused()
    page.keyboard.type("reviewed")
    page.keyboard.press("Enter")
    page.locator(".notice").wait_for()
    assert garden.call("memory", action="list", tags=["reviewed"])["total"] == 2


def test_faded_memories_are_archived_after_a_preview_and_restored(watched: Watched, garden: Garden) -> None:
    page = watched.open("/operate")
    before = garden.call("system_status")["totalMemories"]
    page.get_by_label("Retention below").select_option("0.5")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Archive ").click()
    page.locator(".notice").filter(has_text="restores them").wait_for()
    assert garden.call("system_status")["totalMemories"] < before
    page.get_by_role("button", name=UNDO).click()
    expect(page.locator(".notice").filter(has_text="Undone")).to_be_visible()
    assert garden.call("system_status")["totalMemories"] == before


def test_a_decision_is_found_with_its_alternatives_and_saved(watched: Watched) -> None:
    page = watched.open("/decisions?codebase=shop")
    decision = page.get_by_role("article").filter(has_text="Use PostgreSQL for orders")
    expect(decision).to_contain_text("DynamoDB")
    with page.expect_download() as saving:
        decision.get_by_role("button", name="Save as Markdown").click()
    text = saving.value.path().read_text(encoding="utf-8")
    assert text.startswith("# Use PostgreSQL for orders\n\nDate: ")
    assert "Status: accepted" in text


def test_why_a_decision_changed_is_in_its_earlier_versions(watched: Watched, garden: Garden) -> None:
    made = garden.call(
        "codebase", action="remember_decision", codebase="harbour", decision="Store tides in CSV files",
        rationale="A spreadsheet reads them.",
    )["nodeId"]  # fmt: skip
    text = garden.world.get(made)["content"].replace("CSV files", "SQLite")
    garden.call("memory", action="edit", id=made, content=text)
    page = watched.open("/decisions?codebase=harbour")
    decision = page.get_by_role("article").filter(has_text="SQLite")
    earlier = decision.locator("details")
    earlier.get_by_text("earlier version").click()
    expect(earlier.locator(".markdown").first).to_contain_text("Store tides in CSV files")
    garden.call("memory", action="delete", id=made)


def test_what_is_new_since_the_last_look_at_the_session_is_marked(watched: Watched, garden: Garden) -> None:
    page = watched.open("/session?q=lighthouse")
    page.get_by_role("button", name="Keep to compare").click()
    pinned = garden.world.remember("The lighthouse lamp turns twice a minute.", force_create=True)
    garden.call("memory", action="pin", id=pinned)
    watched.open("/session?q=lighthouse")
    line = page.locator(".session-item").filter(has_text="lighthouse lamp")
    expect(line.get_by_text("new", exact=True)).to_be_visible()
    garden.call("memory", action="delete", id=pinned, even_pinned=True)


def test_the_feed_is_paused_and_filtered(watched: Watched, garden: Garden) -> None:
    page = watched.open("/feed")
    expect(page.locator(".connection.live")).to_be_visible()
    garden.call("search", query="a question before the pause")
    expect(page.locator(".feed")).to_contain_text("a question before the pause")
    page.get_by_role("button", name="Pause").click()
    garden.call("search", query="a question in the pause")
    go_on = page.get_by_role("button", name="Go on (1 new)")
    expect(go_on).to_be_visible()
    expect(page.locator(".feed")).not_to_contain_text("a question in the pause")
    go_on.click()
    expect(page.locator(".feed")).to_contain_text("a question in the pause")
    stored = garden.world.remember("The owl box is under the east gable.", force_create=True)
    expect(page.locator(".feed")).to_contain_text("owl box")
    page.locator("main").get_by_label("Event").select_option("SearchPerformed")
    expect(page.locator(".feed")).not_to_contain_text("owl box")
    expect(page.locator(".feed")).to_contain_text("a question in the pause")
    garden.call("memory", action="delete", id=stored)


def test_a_spreading_is_replayed_with_its_numbers(watched: Watched, garden: Garden) -> None:
    question = "connection pool"
    found = garden.call(
        "search", query=question, retrieval_mode="exhaustive", limit=50, explain=True, record=False
    )["results"]
    page = watched.open(f"/activation?q={quote(question)}")
    own = [one for one in found if "association" not in one]
    woken = [one for one in found if "association" in one]
    shown = page.get_by_role("heading", name="found by the question").locator("xpath=ancestor::section")
    scores = [f"{one['combinedScore']:.3f}" for one in own[:12]]
    expect(shown.locator(".num")).to_have_text(scores)
    further = page.get_by_role("heading", name="woken along links").locator("xpath=ancestor::section")
    expect(further.locator(".num")).to_have_text([f"{one['association']['activation']:.3f}" for one in woken])
    assert woken


def test_a_dream_shows_what_it_changed(watched: Watched, garden: Garden) -> None:
    page = watched.open("/dreams")
    runs = garden.call("insights", action="runs")["runs"]
    expect(page.locator(".run")).to_have_count(len(runs))
    insights = garden.call("insights", action="list")["insights"]
    expect(page.get_by_role("button", name="Dismiss", exact=True)).to_have_count(len(insights))
    page.get_by_role("button", name="Dream now").click()
    expect(page.locator(".run")).to_have_count(len(runs) + 1)
    assert len(garden.call("insights", action="runs")["runs"]) == len(runs) + 1


def test_a_run_shows_which_memories_it_changed(watched: Watched, garden: Garden) -> None:
    page = watched.open("/dreams?kind=dream")
    run = garden.call("insights", action="runs", kind="dream")["runs"][-1]
    row = page.locator(".run").last
    expect(row).to_contain_text(f"{run['counts']['linked']} new link")
    row.get_by_text("What changed").click()
    expect(row.locator(".run-changes li").first).to_be_visible()
    linked = row.locator(".run-changes li").filter(has_text="linked")
    expect(linked).to_have_count(run["counts"]["linked"])
    linked.first.get_by_role("link").first.click()
    expect(page.locator(".memory-text").first).to_be_visible()


def test_numbers_of_the_home_page_lead_to_lists_of_that_many(watched: Watched, garden: Garden) -> None:
    page = watched.open("/")
    links = [
        *page.locator(".figures a").filter(has_text="memories").all(),
        *page.locator(".figures a").filter(has_text="pinned").all(),
        *page.locator(".figures a").filter(has_text="in 30 days").all(),
        *page.locator(".bar-row").filter(has=page.locator("a")).all(),
    ]
    expect(page.locator(".figure-value").filter(has_text="…")).to_have_count(0)
    pairs = []
    for link in links:
        text = link.locator(".figure-value, .bar-count").inner_text()
        anchor = link if link.get_attribute("href") else link.locator("a")
        pairs.append((int(text), anchor.get_attribute("href") or ""))
    assert len(pairs) > 10
    for count, address in pairs:
        watched.open(address)
        expect(page.locator(".lead")).to_contain_text(f"{count} {'memory' if count == 1 else 'memories'}")


def test_the_map_shows_the_links_of_the_chosen_memory_and_lists_every_one(
    watched: Watched, garden: Garden
) -> None:
    page = watched.open("/map")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    shown = garden.call("domains", action="map", limit=2000)
    first = shown["nodes"][0]
    linked = garden.call("explore_connections", action="associations", **{"from": first["id"]}, limit=50)
    drawn = {one["id"] for one in shown["nodes"]}
    weights = [rounded(one["weight"]) for one in linked["associations"] if one["memory"]["id"] in drawn]
    expect(page.get_by_role("heading", name="Nearby")).to_be_visible()
    expect(page.locator(".map-side .num")).to_have_text(weights[:8])
    page.get_by_text("The map as a list").click()
    listed = page.locator("details h3 .muted").all_inner_texts()
    assert sum(map(int, listed)) == shown["total"]


def test_agents_are_watched_live_and_an_event_leads_to_its_memory(watched: Watched, garden: Garden) -> None:
    page = watched.open("/feed")
    expect(page.locator(".connection.live")).to_be_visible()
    garden.call("search", query="which agent asks this")
    stored = garden.world.remember("The kestrel camera watches the north roof.", force_create=True)
    expect(page.locator(".feed")).to_contain_text("which agent asks this")
    page.locator(".feed").get_by_role("link", name="The kestrel camera").first.click()
    expect(page.locator(".memory-text").first).to_have_text("The kestrel camera watches the north roof.")
    assert page.url.endswith(stored)


def test_around_a_memory_links_lead_on(watched: Watched, garden: Garden) -> None:
    page = watched.open(f"/memories/{garden.ids[0]}")
    expect(page.locator(".graph a")).not_to_have_count(0)
    target = garden.ids[4]
    page.locator(f".graph a[href='/memories/{target}']").press("Enter")
    expect(page.locator(".memory-text").first).to_have_text(garden.world.get(target)["content"])
    watched.open(f"/activation?from={garden.ids[0]}&to={target}")
    expect(page.locator(".path")).to_contain_text("1 step")


def test_the_forecast_and_the_review_with_keys(watched: Watched, garden: Garden) -> None:
    page = watched.open("/schedule")
    health = garden.call("memory_health", forecast=True)
    for one in health["forecast"]:
        expect(page.locator(".figures")).to_contain_text(
            f"{one['below30pct']}below 30% in {one['days']} days"
        )
    days = garden.call("memory_health", calendar=True)["calendar"]
    cells = page.locator(".calendar [role=listitem]")
    expect(cells).to_have_count(len(days))
    shown = [cell.get_attribute("aria-label") or "" for cell in cells.all()]
    for one, text in zip(days, shown, strict=True):
        assert ("reviews" not in one) or f" {one['reviews']} reviewed" in text
        assert ("due" not in one) or f" {one['due']} fall due, {one['fading']} fade" in text
    page.get_by_role("button", name="Review now").click()
    first = garden.call("memory", action="list", order="due", due=True, limit=1)["results"][0]
    expect(page.locator(".review .memory-text")).to_have_text(first["content"])
    page.keyboard.press("3")
    expect(page.locator(".review .memory-text")).not_to_have_text(first["content"])
    assert garden.world.get(first["id"])["reps"] == 1


def test_the_store_is_checked_backed_up_and_keys_are_managed(watched: Watched, garden: Garden) -> None:
    page = watched.open("/operate")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Checked: store")).to_be_visible()
    page.get_by_role("button", name="Back up now").click()
    made = page.locator(".file-row").filter(has_text="vestige-")
    expect(made).to_contain_text("last")
    page.get_by_label("Label").fill("for a test")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".secret code")).to_contain_text("vst_")
    row = page.locator(".key-row").filter(has_text="for a test")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke “for a test”").click()
    expect(row).to_have_count(0)


def test_a_leaked_phrase_is_traced_through_revisions_and_purged(watched: Watched, garden: Garden) -> None:
    leaked = garden.world.remember("The door code of the depot is heliotrope.", force_create=True)
    garden.call("memory", action="edit", id=leaked, content="The door code of the depot is in the safe.")
    page = watched.open("/trace?q=heliotrope")
    row = page.locator(".trace-row")
    expect(row).to_contain_text("revision 1")
    expect(row).not_to_contain_text("revision 2")
    row.get_by_role("button", name="Purge").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(row).to_have_count(1)
    row.get_by_role("button", name="Purge").click()
    page.get_by_role("dialog").get_by_role("button", name="Purge every trace").click()
    expect(page.get_by_text("No memory holds it.")).to_be_visible()
    receipt = page.get_by_role("heading", name="Receipt of the purge").locator("xpath=ancestor::section")
    expect(receipt).to_contain_text(leaked)
    assert garden.call("memory", action="get_batch", ids=[leaked])["missing"] == [leaked]


def test_the_time_machine_takes_every_page_back(watched: Watched, garden: Garden) -> None:
    page = watched.open("/memories")
    past = datetime.now(UTC) - timedelta(days=60)
    page.get_by_role("button", name="Time machine").click()
    page.get_by_label("Days back").fill("305")
    expect(page.locator(".machine-at")).to_contain_text("ago")
    at = past.isoformat()
    then = garden.call("memory", action="list", as_of=at, created_to=at, limit=1)["total"]
    expect(page.locator(".lead")).to_contain_text(f"{then} memories")
    assert 0 < then < garden.call("memory", action="list", limit=1)["total"]
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Timeline").click()
    assert "as_of=" in page.url
    page.get_by_role("button", name="Back to now").click()
    assert "as_of=" not in page.url


def test_every_setting_is_shown_with_its_source(watched: Watched, garden: Garden, site: Site) -> None:
    asked = Invocation(name="system_settings", arguments={}, request_id="test")
    settings = garden.world.app.call_operation(asked)["settings"]
    page = watched.open("/settings")
    rows = page.locator(".settings tbody tr")
    expect(rows).to_have_count(sum(one["source"] != "default" for one in settings))
    page.get_by_label("defaults too").check()
    expect(rows).to_have_count(len(settings))
    names = {"default": "default", "flag": "command line"}
    for one, row in zip(settings, rows.all_inner_texts(), strict=True):
        value = (
            one["value"]
            if isinstance(one["value"], str)
            else f"{json.dumps(one['value'])}".removesuffix(".0")
        )
        assert [*row.split("\t")[:3]] == [one["name"], value or "empty", names[one["source"]]]
    page.get_by_label("Filter the settings").fill("autopilot")
    expect(rows.first).to_contain_text("mechanisms.autopilot")


def rounded(number: float) -> str:
    """Two places, as a browser rounds: a half goes up."""
    return str(Decimal(number).quantize(Decimal("0.01"), ROUND_HALF_UP))


def counted(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


@pytest.mark.parametrize("number", range(0, 40, 4))
def test_every_number_of_a_memory_is_that_of_the_operation(
    watched: Watched, garden: Garden, site: Site, number: int
) -> None:
    memory = garden.world.get(garden.ids[number])
    page = watched.open(f"/memories/{memory['id']}")
    facts = page.locator(".facts")
    expect(facts.first).to_contain_text(memory["id"])
    shown = " ".join(facts.all_inner_texts())
    for text in (
        f"{100 * memory['retentionStrength']:.0f}%",
        f"{100 * memory['retrievalStrength']:.1f}%",
        f"{memory['stability']:.1f} days",
        f"{memory['difficulty']:.1f}",
        rounded(memory["storageStrength"]),
        f"{memory['reps']} · {counted(memory['lapses'], 'lapse')}",
        f"revision {memory['revision']}",
        f"{100 * memory['accessibility']:.1f}%",
        f"{counted(memory['timesRetrieved'], 'time')}, useful {memory['timesUseful']}",
    ):
        assert text in shown, text
    held = garden.call("domains", action="explain", id=memory["id"])["scores"]
    assert page.locator(".domain-row .num").all_inner_texts() == [f"{one['score']:.3f}" for one in held]
    linked = garden.call("explore_connections", action="associations", **{"from": memory["id"]}, limit=50)
    weights = page.locator(".memory-row .num[title=weight]").all_inner_texts()
    assert weights == [rounded(one["weight"]) for one in linked["associations"]]
    state = garden.call("memory", action="state", id=memory["id"])["components"]
    faded = f"now {100 * state['retrieval']:.1f}%, retention {100 * state['retention']:.1f}%"
    expect(page.get_by_text(faded)).to_be_visible()

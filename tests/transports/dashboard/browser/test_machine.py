"""What belongs to the machine of the server: sessions of coding agents, and the index of a project."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from testbed.world import World
from tests.engine.recall.sessions.transcripts import LOGIN, plant, world_at_home
from tests.transports.dashboard.browser.conftest import Open
from tests.transports.dashboard.browser.support.browser import Site, serving
from tests.transports.parity.project_examples import project_example


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machine")


@pytest.fixture(scope="module")
def machine(home: Path) -> Iterator[World]:
    with world_at_home(home) as opened:
        plant(home / "home")
        project_example(opened, home / "shop")
        yield opened


@pytest.fixture(scope="module")
def own(machine: World) -> Iterator[Site]:
    with serving(machine) as running:
        yield running


def test_sessions_are_indexed_listed_searched_and_read(machine: World, own: Site, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open("/sessions")
    page.get_by_role("button", name="Index the sessions of this machine").click()
    rows = page.locator(".session-row")
    expect(rows.first).to_be_visible()
    listed = machine.call("sessions", action="list")
    expect(rows).to_have_count(listed["total"])
    for row, one in zip(rows.all_inner_texts(), listed["sessions"], strict=True):
        assert str(one["prompts"]) in row
        assert one["client"] in row
    page.get_by_label("Question").fill("flaky login test")
    page.get_by_role("button", name="Search").click()
    found = machine.call("recall_sessions", query="flaky login test", limit=20)["sessions"]
    expect(rows).to_have_count(len(found))
    expect(rows.first).to_contain_text(found[0]["passages"][0]["text"])
    rows.first.get_by_role("link").click()
    read = machine.call("read_session", session=found[0]["sessionId"])
    expect(page.locator(".entry")).to_have_count(len(read["entries"]))
    expect(page.locator(".entry").first).to_contain_text(read["entries"][0]["text"])
    assert found[0]["sessionId"] == LOGIN
    assert watched.wrong == []


def test_a_project_shows_its_index_and_what_an_agent_would_get(
    machine: World, own: Site, home: Path, windows: Open
) -> None:
    folder, task = str(home / "shop"), "greeting for one person"
    watched = windows(own.login(), own)
    page = watched.open(f"/projects?path={quote(folder)}")
    status = machine.call("project", action="status", path=folder)
    expect(page.locator(".facts")).to_contain_text(f"{status['files']} in {status['sections']} sections")
    expect(page.locator(".facts")).to_contain_text(status["freshness"]["word"])
    page.get_by_label("Question about the code").fill(task)
    page.get_by_role("button", name="Search").click()
    hit = machine.call("project", action="search", query=task, path=folder)["hits"][0]
    place = f"{hit['path']}:{hit['startLine']}–{hit['endLine']}"
    expect(page.locator(".code-hit").first).to_contain_text(place)
    package = machine.call("project_recall", task=task, path=folder)
    expect(page.locator(".exact")).to_have_text(package["text"])
    expect(page.locator(".answer")).to_contain_text(
        f"{package['tokens']:,} of {package['tokenBudget']:,} tokens"
    )
    assert watched.wrong == []


def test_a_key_for_some_scopes_is_told_that_it_does_not_see_them(own: Site, windows: Open) -> None:
    watched = windows(own.login("read", scopes=["/project/pharmacy"]), own)
    for path, what in (("/sessions", "sessions"), ("/projects", "projects")):
        page = watched.open(path)
        expect(page.get_by_text(f"Your key does not see {what}.")).to_be_visible()
        assert page.locator("main input").count() == 0
    assert watched.wrong == []


def test_a_folder_without_an_index_says_so(own: Site, home: Path, windows: Open) -> None:
    watched = windows(own.login(), own)
    page = watched.open(f"/projects?path={quote(str(home))}")
    expect(page.get_by_text("There is no index to show.")).to_be_visible()
    expect(page.get_by_text("vestige project init")).to_be_visible()

"""Every page, in both themes: it shows something true, breaks no rule of accessibility and writes nothing to
the console; also on an empty store. `test_large` opens them on a large one."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from testbed.project import PROJECT
from tests.transports.conformance.node import packages
from tests.transports.dashboard.browser.support.browser import PAGES, Site, Watched, serving, window
from tests.transports.dashboard.browser.support.garden import Garden, open_garden

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SERIOUS = ("serious", "critical")
PICTURES = PROJECT / "build" / "dashboard"
"""Where pictures of all pages are left to be looked at."""
DOCUMENTED = {
    ("/", "dark"): "home", ("/search?q=nodes", "light"): "search", ("/inbox", "dark"): "inbox",
    ("/map", "light"): "map",
}  # fmt: skip
"""Pictures of the documentation; `VESTIGE_TEST_SNAPSHOTS=write` writes them again."""


@pytest.fixture(scope="session")
def axe() -> str:
    listing = Path(__file__).with_name("package.json")
    return (packages(listing) / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def faults(watched: Watched, axe: str) -> list[str]:
    # Not as a script of the page, which its content policy forbids, but through the tools of the browser.
    watched.page.evaluate(axe)
    found: dict[str, Any] = watched.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_page_is_accessible_and_quiet(
    browser: "Browser", site: Site, garden: Garden, cookie: str, axe: str, theme: Any
) -> None:
    wrong: list[str] = []
    PICTURES.mkdir(parents=True, exist_ok=True)
    with window(browser, site, cookie, color_scheme=theme, reduced_motion="reduce") as watched:
        for path in (*PAGES, f"/memories/{garden.ids[0]}", "/search?q=nodes&why=1"):
            watched.open(path)
            wrong += [f"{path} {fault}" for fault in faults(watched, axe)]
            expect(watched.page.locator(".state.failed")).to_have_count(0)
            name = path.strip("/").split("?")[0].replace("/", "-") or "home"
            watched.page.screenshot(path=PICTURES / f"{name}-{theme}.png", full_page=True)
        wrong += watched.wrong
    for (path, wanted), name in DOCUMENTED.items():
        if wanted == theme and os.environ.get("VESTIGE_TEST_SNAPSHOTS") == "write":
            with window(browser, site, cookie, color_scheme=theme, reduced_motion="reduce") as fresh:
                fresh.open(path).screenshot(path=PROJECT / "docs" / "pictures" / f"dashboard-{name}.png")
    assert wrong == []


def test_every_page_of_an_empty_store_says_so(browser: "Browser", tmp_path: Path) -> None:
    with (
        open_garden(tmp_path, planted=False) as empty,
        serving(empty.world) as site,
        window(browser, site, site.login()) as watched,
    ):
        for path in PAGES:
            watched.open(path)
            expect(watched.page.locator(".state.failed")).to_have_count(0)
        assert watched.wrong == []


WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
DOUBLE = """() => {
    const all = [...document.querySelectorAll("body *")];
    const sizes = all.map(one => parseFloat(getComputedStyle(one).fontSize));
    all.forEach((one, index) => { one.style.fontSize = `${2 * sizes[index]}px`; });
}"""


@pytest.mark.parametrize("width", [320, 375, 640], ids=["zoom-400", "phone", "zoom-200"])
def test_no_page_is_wider_than_a_small_window(
    browser: "Browser", site: Site, garden: Garden, cookie: str, width: int
) -> None:
    wide: list[str] = []
    with window(browser, site, cookie, viewport={"width": width, "height": 430}) as watched:
        for path in (*PAGES, f"/memories/{garden.ids[0]}", "/search?q=nodes&why=1", "/schedule?review=1"):
            watched.open(path)
            if watched.page.evaluate(WIDER) > 0:
                wide.append(path)
    assert wide == []


def test_no_page_is_wider_than_its_window_when_letters_are_twice_as_large(
    browser: "Browser", site: Site, garden: Garden, cookie: str
) -> None:
    wide: list[str] = []
    with window(browser, site, cookie) as watched:
        for path in (*PAGES, f"/memories/{garden.ids[0]}"):
            watched.open(path)
            watched.page.evaluate(DOUBLE)
            if watched.page.evaluate(WIDER) > 0:
                wide.append(path)
    assert wide == []

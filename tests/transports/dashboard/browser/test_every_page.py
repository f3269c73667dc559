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
            watched.complete(path)
            wrong += [f"{path} {fault}" for fault in faults(watched, axe)]
            expect(watched.page.locator(".state.failed")).to_have_count(0)
            name = path.strip("/").split("?")[0].replace("/", "-") or "home"
            watched.page.screenshot(path=PICTURES / f"{name}-{theme}.png", full_page=True)
        wrong += watched.wrong
    for (path, wanted), name in DOCUMENTED.items():
        if wanted == theme and os.environ.get("VESTIGE_TEST_SNAPSHOTS") == "write":
            with window(browser, site, cookie, color_scheme=theme, reduced_motion="reduce") as fresh:
                fresh.complete(path).screenshot(path=PROJECT / "docs" / "pictures" / f"dashboard-{name}.png")
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
CUT = """() => {
    const controls = document.querySelectorAll("a[href], button, input, select, textarea, summary");
    const cut = [];
    for (const one of controls) {
        const box = one.getBoundingClientRect();
        if (!box.width || !one.checkVisibility() || one.closest(".skip, .hidden")) continue;
        let [left, right] = [0, document.documentElement.clientWidth];
        let scrolls = false; // what lies outside of such a box can be scrolled to
        for (let up = one.parentElement; up && !scrolls; up = up.parentElement) {
            const flow = getComputedStyle(up).overflowX;
            scrolls = flow === "auto" || flow === "scroll";
            if (flow === "visible" || scrolls) continue;
            const frame = up.getBoundingClientRect();
            [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
        }
        const outside = !scrolls && (box.left < left - 1 || box.right > right + 1);
        // Long words of a memory may end in dots; the name of a button may not.
        const names = one.matches("button, summary, .bottom a") && !one.matches(".tag, .who *, .inbox-item");
        const short = names && one.scrollWidth > one.clientWidth + 1;
        if (outside || short) cut.push(`${box.left}-${box.right} ${one.outerHTML.slice(0, 120)}`);
    }
    return cut;
}"""
DOUBLE = """() => {
    const all = [...document.querySelectorAll("body *")];
    const sizes = all.map(one => parseFloat(getComputedStyle(one).fontSize));
    all.forEach((one, index) => { one.style.fontSize = `${2 * sizes[index]}px`; });
}"""


@pytest.mark.parametrize("width", [320, 375, 640], ids=["zoom-400", "phone", "zoom-200"])
def test_no_page_is_wider_than_a_small_window_and_no_control_is_cut_off(
    browser: "Browser", site: Site, garden: Garden, cookie: str, width: int
) -> None:
    wrong: list[str] = []
    asked = ("/search?q=nodes&why=1", "/schedule?review=1", "/memories?new=1")
    with window(browser, site, cookie, viewport={"width": width, "height": 430}) as watched:
        for path in (*PAGES, f"/memories/{garden.ids[0]}", f"/memories/{garden.ids[0]}?edit=1", *asked):
            watched.open(path)
            wrong += [f"{path} is too wide"] if watched.page.evaluate(WIDER) > 0 else []
            wrong += [f"{path} cuts {one}" for one in watched.page.evaluate(CUT)]
    assert wrong == []


@pytest.mark.parametrize("width", [375, 640], ids=["phone", "zoom-200"])
def test_what_is_opened_in_a_small_window_fits(
    browser: "Browser", site: Site, garden: Garden, cookie: str, width: int
) -> None:
    wrong: list[str] = []
    with window(browser, site, cookie, viewport={"width": width, "height": 430}) as watched:
        page = watched.open("/memories")

        def look(what: str) -> None:
            wrong.extend([f"{what} is too wide"] if page.evaluate(WIDER) > 0 else [])
            wrong.extend(f"{what} cuts {one}" for one in page.evaluate(CUT))

        page.get_by_role("button", name="Menu").click()
        look("the menu")
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("button", name="Select all").click()
        look("the bulk actions")
        page.get_by_role("button", name="Suppress").click()
        expect(page.locator("dialog .effect")).to_be_visible()
        look("the preview of a bulk action")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Time machine").click()
        look("the time machine")
        page.locator(".who summary").click()
        look("the login")
        page.locator(".who summary").click()
        for key in ("?", "Control+k"):
            page.keyboard.press(key)
            expect(page.get_by_role("dialog")).to_be_visible()
            look(f"what {key} opens")
            page.keyboard.press("Escape")
        page.goto(f"{site.url}/memories/{garden.ids[0]}")
        watched.settle()
        for name in ("Outdated…", "Delete…"):
            page.get_by_role("button", name=name).click()
            look(name)
            page.keyboard.press("Escape")
    assert wrong == []


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

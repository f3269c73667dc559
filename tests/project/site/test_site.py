"""The documentation site: built strictly, complete, and loading nothing from other hosts."""

import functools
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mkdocs.exceptions import Abort

from supply.site import build, recordings
from supply.site.pages import linked, navigation, sources, unlisted
from testbed import chromium
from testbed.project import PROJECT

pytestmark = pytest.mark.slow

LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\"")
EVERY_KIND = (
    "index.html",
    "docs/quickstart.html",
    "docs/howto/install.html",
    "docs/concepts/search.html",
    "docs/reference/operations.html",
    "docs/benchmarks.html",
    "docs/architecture.html",
    "docs/adr/index.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    build.build_site(folder)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def in_navigation() -> list[str]:
    """The pages of the navigation, as paths of HTML files."""
    texts = {
        name: path.read_text(encoding="utf-8")
        for name, path in sources(PROJECT).items()
        if name.endswith(".md")
    }

    def pages(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        else:
            for one in part.values() if isinstance(part, dict) else part:
                yield from pages(one)

    names = (page.removesuffix(".md") for page in pages(navigation(PROJECT, texts)))
    return [re.sub(r"(^|/)README$", r"\1index", name) + ".html" for name in names]


def test_every_page_of_the_navigation_is_built_and_every_built_page_is_in_it(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert built - {"404.html"} == set(in_navigation())
    assert len(built) > 100
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_every_page_of_the_documentation_is_listed_on_its_index() -> None:
    assert unlisted(PROJECT) == set()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = [a or b for a, b in LOADED.findall(page.read_text(encoding="utf-8"))]
        assert [one for one in loaded if re.match(r"(https?:)?//", one)] == [], page.name
    for style in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(https?:)?//", style.read_text(encoding="utf-8")) == []


def test_plots_and_recordings_are_on_the_site(site: Path) -> None:
    assert (site / "benchmarks/results/peers-found.svg").exists()
    assert 'src="../benchmarks/results/peers-found.svg"' in (site / "docs/compare.html").read_text("utf-8")
    for name in recordings.RECORDINGS:
        assert (site / "docs/pictures" / f"{name}.svg").exists()


def test_a_dead_link_or_anchor_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build.stage

    def staged(project: Path, target: Path) -> dict[str, str]:
        texts = real(project, target)
        (target / "docs/quickstart.md").write_text("# Q\n\n[x](index.md#nowhere)\n", encoding="utf-8")
        return texts

    monkeypatch.setattr(build, "stage", staged)
    with pytest.raises(Abort):
        build.build_site(tmp_path / "site")
    with pytest.raises(SystemExit, match="does not exist"):
        linked("[x](gone.md)", "docs/index.md", [], PROJECT, None)


def test_a_link_to_a_file_outside_the_site_becomes_text_or_leads_to_the_repository() -> None:
    text = "[code](../supply/dist.py), [page](quickstart.md), `[no](link)`"
    site = ["docs/quickstart.md"]
    page = "[page](../docs/quickstart.md), `[no](link)`"
    assert linked(text, "docs/index.md", site, PROJECT, None) == f"code, {page}"
    home = "https://example.org/v"
    code = f"[code]({home}/blob/main/supply/dist.py)"
    assert linked(text, "docs/index.md", site, PROJECT, home) == f"{code}, {page}"


def opened(pages: list[str], address: str) -> list[str]:
    """Open pages in a browser; returns everything that went wrong."""
    wrong: list[str] = []
    with chromium.browser() as browser:
        if browser is None:
            pytest.skip(chromium.NOT_TESTED)
        page = browser.new_page()
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("request", lambda sent: None if sent.url.startswith(address) else wrong.append(sent.url))
        page.on("response", lambda got: wrong.append(got.url) if got.status >= 400 else None)
        for name in pages:
            page.goto(address + name)
            page.wait_for_selector("h1")
            page.wait_for_function("!document.querySelector('pre.diagram, div.diagram:not(:has(svg))')")
    return wrong


def test_a_page_of_every_kind_opens_in_a_browser(address: str) -> None:
    assert opened(list(EVERY_KIND), address) == []


@pytest.mark.nightly
def test_every_page_of_the_navigation_opens_in_a_browser(address: str) -> None:
    assert opened(in_navigation(), address) == []


def test_the_search_of_the_site_finds_a_page(address: str) -> None:
    with chromium.browser() as browser:
        if browser is None:
            pytest.skip(chromium.NOT_TESTED)
        page = browser.new_page()
        page.goto(f"{address}index.html")
        page.fill("input[name=query]", "uninstall")
        page.wait_for_selector(".md-search-result__link[href*='uninstall.html']")


def test_the_recordings_show_what_the_commands_print_today() -> None:
    """If this fails, look at the new output, then run `make pictures`."""
    assert recordings.outdated() == []


def test_a_recording_differs_by_its_words_not_by_its_numbers() -> None:
    assert recordings.comparable("1. Tea 0.853 (01a1ed3c)") == recordings.comparable("2. Tea 0.9 (99a1ed3d)")
    assert recordings.comparable("Remembered.") != recordings.comparable("Updated.")

"""The files of the dashboard over HTTP: headers, compression, versions, vendored libraries, size."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from supply.vendor import digest, entries
from testbed.project import PROJECT
from tests.transports.http.support.harness import Site, new_site
from vestige.transports.dashboard.pages import ASSETS, FILES, PAGES, assets, shell, version

POLICY = (
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
    "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'",
)  # fmt: skip
SOURCES = sorted(FILES.joinpath("js").rglob("*.js"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with new_site(tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.mark.parametrize("path", [*PAGES, "/memories/x", "/domains/x"])
def test_every_address_of_a_page_answers_with_the_shell_and_needs_no_key(site: Site, path: str) -> None:
    response = site.http.get(path)
    assert response.status_code == 200
    assert response.content == shell().content
    assert set(POLICY) <= set(response.headers["content-security-policy"].split("; "))
    assert response.headers["cross-origin-opener-policy"] == "same-origin"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/memories/x/y", "/nothing", "/memories/x/../../api/v1/stats"])
def test_other_addresses_are_no_pages(site: Site, path: str) -> None:
    assert site.http.get(path).status_code in (401, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pages_can_only_be_read(site: Site, method: str) -> None:
    assert site.http.request(method, "/memories/x").status_code == 405


def test_what_pages_show_needs_a_key(site: Site) -> None:
    assert site.http.get("/api/v1/stats").status_code == 401


def test_files_of_this_version_are_kept_for_ever_and_others_asked_for_again(site: Site) -> None:
    now = site.http.get(f"{ASSETS}/{version()}/app.css")
    assert "immutable" in now.headers["cache-control"]
    old = site.http.get(f"{ASSETS}/0123456789abcdef/app.css")
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")


def test_a_file_is_compressed_for_who_can_read_it_and_not_sent_twice(site: Site) -> None:
    url = f"{ASSETS}/{version()}/app.css"
    packed = site.http.get(url, headers={"Accept-Encoding": "gzip"})
    plain = site.http.get(url, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content == (FILES / "app.css").read_bytes()
    again = site.http.get(url, headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["index.html", "../pages.py", "%2e%2e/pages.py", "js", "vendor/manifest.json"]
)
def test_only_files_of_the_dashboard_are_served(site: Site, path: str) -> None:
    assert site.http.get(f"{ASSETS}/{version()}/{path}").status_code == 404


def test_the_shell_has_no_script_or_style_of_its_own() -> None:
    page = shell().content.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", page) == []
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_script_writes_html_or_runs_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function"
    assert re.findall(forbidden, text) == []
    assert re.findall(r"https?://", text) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_import_names_a_file_that_is_served(path: Path) -> None:
    for name in re.findall(r'(?:from|import) "([^"]+)"', path.read_text(encoding="utf-8")):
        found = (path.parent / name).resolve().relative_to(FILES)
        assert found.as_posix() in assets()


def test_the_vendored_libraries_are_those_of_the_manifest() -> None:
    folder = FILES / "vendor"
    listed = entries(folder)
    assert {one.name: digest((folder / one.name).read_bytes()) for one in listed} == {
        one.name: one.sha256 for one in listed
    }
    assert {path.name for path in folder.iterdir()} == {"manifest.json"} | {one.name for one in listed}
    assert all(one.licence for one in listed)


def test_the_dashboard_is_smaller_than_100_kilobytes_on_the_wire() -> None:
    whole = sum(len(gzip.compress(one.content, mtime=0)) for one in assets().values())
    assert whole < 100_000


def test_the_files_are_in_the_package() -> None:
    assert FILES.is_relative_to(PROJECT / "src" / "vestige")
    assert {"index.html", "app.css", "js/app.js", "vendor/preact.js"} <= set(assets())

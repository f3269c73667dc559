"""One browser and one server with a grown store for each module.

Playwright keeps an event loop running in its thread until it is closed. A browser for the whole session would
let every later test of the same process fail that starts a loop of its own."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from testbed import chromium
from tests.transports.dashboard.browser.support.browser import Site, Watched, serving, window
from tests.transports.dashboard.browser.support.garden import Garden, open_garden

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Open = Callable[..., Watched]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "transports/dashboard/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium.browser() as opened:
        if opened is None:
            pytest.skip(chromium.NOT_TESTED)
        yield opened


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garden]:
    with open_garden(tmp_path_factory.mktemp("garden")) as grown:
        yield grown


@pytest.fixture(scope="module")
def site(garden: Garden) -> Iterator[Site]:
    with serving(garden.world) as running:
        yield running


@pytest.fixture(scope="module")
def cookie(site: Site) -> str:
    return site.login()


@pytest.fixture
def watched(browser: "Browser", site: Site, cookie: str) -> Iterator[Watched]:
    """A window with a login that may do everything. Its console must stay empty, its requests at home."""
    with window(browser, site, cookie) as opened:
        yield opened
        assert opened.wrong == []


@pytest.fixture
def windows(browser: "Browser", site: Site) -> Iterator[Open]:
    """More windows, each with a login and options of its own."""
    opened: list[Any] = []

    def another(login: str, at: Site = site, **options: Any) -> Watched:
        made = window(browser, at, login, **options)
        opened.append(made)
        return made.__enter__()

    yield another
    for one in reversed(opened):
        one.__exit__(None, None, None)

"""A server in a thread of this process on a store of a test, and pages of it in a browser that is watched:
what it writes to the console, requests to elsewhere and reports of the content policy fail a test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from playwright.sync_api import expect

from testbed.world import World
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.transports.http.app import build_app
from vestige.transports.http.auth.cookies import COOKIE, secret_of
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE_SECONDS = 30
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
PAGES = (
    "/", "/inbox", "/session", "/intentions", "/search?q=connection+pool", "/memories", "/timeline?days=90",
    "/map", "/decisions", "/projects", "/sessions", "/trace?q=forty", "/contradictions", "/duplicates",
    "/domains", "/schedule", "/dreams", "/activation?q=connection+pool",
    "/importance?text=Never+deploy+on+Friday", "/feed", "/operate", "/settings",
)  # fmt: skip


@dataclass(kw_only=True)
class Site:
    """A running server."""

    url: str
    world: World
    auth: Auth
    server: uvicorn.Server

    def login(self, *permissions: str, **limits: Any) -> str:
        """The cookie of a new key."""
        call = Call(engine=self.world.app.engine)
        key, _ = keys.mint(call, "a person", permissions or ("read", "write", "admin"), **limits)
        return self.auth.logins.begin(key.id, self.world.app.engine.now()).text


@contextmanager
def serving(world: World) -> Iterator[Site]:
    # The clock of the store stands still for the tests of other things; a server needs one that runs.
    world.clock.now = datetime.now(UTC)
    engine, context = world.app.engine, _context(world)
    auth = Auth(context, secret_of(engine.settings, engine.entropy))
    config = uvicorn.Config(
        build_app(context, auth), host="127.0.0.1", port=0, log_config=None, ws="websockets-sansio",
        http="h11", timeout_graceful_shutdown=1,
    )  # fmt: skip
    server, ready = uvicorn.Server(config), threading.Event()
    startup = server.startup

    async def start(sockets: Any = None) -> None:
        await startup(sockets)
        ready.set()

    server.startup = start  # type: ignore[method-assign]  # says when it listens
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_SECONDS)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Site(url=f"http://127.0.0.1:{port}", world=world, auth=auth, server=server)
    finally:
        context.stopping.set()
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert engine is world.app.engine


def _context(world: World) -> ServerContext:
    engine = world.app.engine
    return ServerContext(
        app=world.app,
        settings=engine.settings,
        registry=registry,
        monotonic=engine.monotonic,
        entropy=engine.entropy,
        limiter=anyio.CapacityLimiter(8),
    )


@dataclass(kw_only=True)
class Watched:
    """A window of the browser, and what was wrong in it."""

    context: "BrowserContext"
    page: "Page"
    site: Site
    wrong: list[str] = field(default_factory=list)

    def open(self, path: str) -> "Page":
        """Open a page, and wait until it has loaded what it shows."""
        self.page.goto(f"{self.site.url}{path}")
        self.settle()
        return self.page

    def scripting(self) -> Callable[[], float]:
        """A function that returns how many milliseconds of CPU the scripts of the page took since."""
        spent = self._metric("ScriptDuration")
        before = spent()
        return lambda: 1000 * (spent() - before)

    def busy(self) -> Callable[[], float]:
        """A function that returns how many seconds of CPU the page took since its address was opened, with
        style and layout. The browser counts from zero for each address."""
        return self._metric("TaskDuration")

    def _metric(self, name: str) -> Callable[[], float]:
        client = self.context.new_cdp_session(self.page)
        client.send("Performance.enable", {"timeDomain": "threadTicks"})

        def value() -> float:
            metrics = client.send("Performance.getMetrics")["metrics"]
            return next(float(one["value"]) for one in metrics if one["name"] == name)

        return value

    def settle(self) -> None:
        self.page.locator("main h1").first.wait_for()
        expect(self.page.locator(".skeleton")).to_have_count(0)

    def complete(self, path: str) -> "Page":
        """Open a page, and wait also for what it shows later than the rest: what compares all memories."""
        page = self.open(path)
        expect(page.get_by_text("Still comparing memories…")).to_have_count(0)
        expect(page.locator(".row-link strong, .figure-value").filter(has_text="…")).to_have_count(0)
        return page


@contextmanager
def window(browser: "Browser", site: Site, cookie: str, **options: Any) -> Iterator[Watched]:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
    context.set_default_timeout(PATIENCE_MS)
    if cookie:
        context.add_cookies([{"name": COOKIE, "value": cookie, "url": site.url}])
    page = context.new_page()
    watched = Watched(context=context, page=page, site=site)
    watch(watched, page)
    try:
        yield watched
    finally:
        context.close()


def watch(watched: Watched, page: "Page") -> None:
    own = urlsplit(watched.site.url).netloc

    def asked(url: str) -> None:
        if urlsplit(url).netloc not in (own, "") and not url.startswith(("data:", "blob:")):
            watched.wrong.append(f"request to {url}")

    page.on("console", lambda said: watched.wrong.append(f"console: {said.text}"))
    page.on("pageerror", lambda error: watched.wrong.append(f"error: {error}"))
    page.on("request", lambda request: asked(request.url))

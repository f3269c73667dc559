"""What the dashboard costs on a large store: every page, scrolling the list, moving the map.

    python -m benchmarks.dashboard [--memories 10000] [--rounds 3] [--quick] [--out FILE]

A store is filled with notes as over a year, with topics, a dream and a consolidation. `vestige serve` runs on
it as a process, and Chromium opens each page in a window of its own, so that nothing is cached there. All
times are CPU: what the page's thread took (scripts, style, layout) by the browser's own count, and what the
server's process took meanwhile, by the kernel's. The first visit of each page is the first after the start of
the server; the other column is the median of the visits after it.

A frame is one step of the wheel or the mouse. Its time is that of scripts between two steps, measured
outside of the page; a step that does nothing is measured as well, because the measuring itself takes time.
"""

import argparse
import json
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from benchmarks.conversation import generated
from benchmarks.engine import FILL_BATCH, InProcess
from benchmarks.http.serving import TEST_EMBEDDER, Serving, serve
from benchmarks.process import cpu_seconds, family_of
from benchmarks.progress import track
from benchmarks.report import Cell, Report, Target, publish
from testbed import chromium
from vestige.app.app import Clock, system_clock
from vestige.transports.dashboard.pages import PAGES
from vestige.transports.http.auth.cookies import COOKIE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MEMORIES = 10_000
ROUNDS = 3
PAGE_SECONDS, COUNTS_SECONDS = 2.0, 1.0
LIST_FRAME_MS, MAP_FRAME_MS = 8.0, 16.0
FRAMES = 250
MAP_FRAMES = 100
SPREAD = timedelta(days=365)
PATIENCE_MS = 120_000
ASKED = {
    "/search": "?q=what+did+she+say+about+the+mountains", "/activation": "?q=the+trip+to+the+mountains",
    "/importance": "?text=Never+deploy+on+a+Friday", "/trace": "?q=mountain", "/timeline": "?days=90",
}  # fmt: skip
"""What pages are asked that show nothing without a question."""

DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
STILL = f"async _ => {{ await {DRAWN}; }}"
SCROLL = f"async ([box, far]) => {{ box.scrollTop += far; await {DRAWN}; }}"
ZOOM = f"""async ([canvas, way]) => {{
    canvas.dispatchEvent(new WheelEvent("wheel", {{ deltaY: 60 * way, cancelable: true }}));
    await {DRAWN};
}}"""
DRAG = f"""async ([canvas, at]) => {{
    const say = (type, x) => canvas.dispatchEvent(
        new PointerEvent(type, {{ pointerId: 1, clientX: x, clientY: 300, bubbles: true }}));
    canvas.setPointerCapture = () => {{}};
    if (!at) say("pointerdown", 300);
    say("pointermove", 300 + 8 * (at % 20));
    await {DRAWN};
}}"""


class YearClock:
    """The machine's clock, some time back."""

    def __init__(self) -> None:
        self.back = SPREAD

    def parts(self) -> Clock:
        real = system_clock()
        return replace(real, now=lambda: real.now() - self.back)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What opening a page once took, in seconds of CPU."""

    page: float
    server: float

    @property
    def both(self) -> float:
        return self.page + self.server


def later(seen: Sequence[Visit]) -> Sequence[Visit]:
    """The visits after the first one, which also starts what the server keeps."""
    return seen[1:] or seen


@dataclass(kw_only=True)
class Window:
    """A page of the browser, with the counts that the browser keeps of it."""

    page: "Page"
    served: Serving

    def __post_init__(self) -> None:
        self._client = self.page.context.new_cdp_session(self.page)
        self._client.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds(self, name: str) -> float:
        found = self._client.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in found if one["name"] == name)

    def visit(self, path: str, until: Callable[["Page"], None]) -> Visit:
        """Open a page; the browser counts from zero for each address."""
        before = server_seconds(self.served)
        self.page.goto(f"{self.served.url}{path}")
        until(self.page)
        return Visit(page=self.seconds("TaskDuration"), server=server_seconds(self.served) - before)

    def frames(self, step: str, arguments: Sequence[object]) -> list[float]:
        """Milliseconds of scripts that each step took."""
        taken, before = [], self.seconds("ScriptDuration")
        for one in arguments:
            self.page.evaluate(step, one)
            now = self.seconds("ScriptDuration")
            taken.append(1000 * (now - before))
            before = now
        return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dashboard", description="The dashboard's cost."
    )
    parser.add_argument("--memories", type=int, default=MEMORIES, help=f"default {MEMORIES:,}")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"visits after the first, default {ROUNDS}"
    )
    parser.add_argument("--quick", action="store_true", help="with the test embedder instead of the model")
    parser.add_argument("--out", type=Path, help="write the results here as JSON and Markdown")
    given = parser.parse_args()
    settings = TEST_EMBEDDER if given.quick else {}
    with chromium.browser() as browser, tempfile.TemporaryDirectory(prefix="vestige-dashboard-") as folder:
        if browser is None:
            raise SystemExit(chromium.NOT_TESTED)
        report = run(browser, Path(folder), memories=given.memories, rounds=given.rounds, settings=settings)
    publish(report, given.out, page=True)


def run(
    browser: "Browser",
    folder: Path,
    *,
    memories: int = MEMORIES,
    rounds: int = ROUNDS,
    frames: int = FRAMES,
    settings: Mapping[str, str] | None = None,
) -> Report:
    """Fill a store in an empty folder, and measure everything on it."""
    model = fill(folder, memories, settings or {})
    with serve(folder, settings=settings) as served:
        visits = _visits(browser, served, rounds)
        counts = _counts(browser, served, rounds)
        taken = _frames(browser, served, frames)
    pages = [_row(path, seen) for path, seen in visits.items()]
    return Report(
        benchmark="dashboard",
        settings={"memories": memories, "rounds": rounds, "model": model, "browser": browser.version},
        tables={
            "Pages, CPU s": [*pages, _row("first counts of the home page", counts)],
            "Frames, ms of scripts": [_frame_row(name, each) for name, each in taken.items()],
        },
        targets=_targets(visits, counts, taken),
        notes=(
            "Each number is CPU. The first visits include the first comparison of all memories after the "
            "start of the server, which the server keeps: the page that is opened first pays for it.",
        ),
    )


def fill(folder: Path, memories: int, settings: Mapping[str, str]) -> str:
    """Make the store; the name of the model that made its vectors."""
    clock, kinds = YearClock(), ("fact", "concept", "event", "note", "person", "place")
    chosen: dict[str, object] = {"mechanisms.autopilot": False}
    if settings:
        chosen["embeddings.provider"] = "hashing"
    texts = [turn.content for turn in generated(memories)]
    with InProcess(folder, clock=clock.parts(), settings=chosen) as engine:
        for first in track(range(0, memories, FILL_BATCH), f"remembering {memories:,}"):
            clock.back = SPREAD * (1 - first / memories)
            items = [
                {
                    "content": text, "node_type": kinds[at % len(kinds)], "tags": [f"part-{first // 1000}"],
                    "source": f"notes-{at % 5}.md", "force_create": True,
                }
                for at, text in enumerate(texts[first : first + FILL_BATCH])
            ]  # fmt: skip
            engine.call("smart_ingest", {"items": items})
        clock.back = timedelta(hours=2)
        for tool, arguments in (("domains", {"action": "discover"}), ("dream", {}), ("consolidate", {})):
            engine.call(tool, arguments)
        return engine.embedder.signature.name


def server_seconds(served: Serving) -> float:
    """CPU time of the server so far."""
    return sum(cpu_seconds(pid) for pid in family_of(served.pid))


def complete(page: "Page") -> None:
    """Wait until a page shows everything, also what comes later than the rest."""
    page.locator("main h1").first.wait_for()
    page.wait_for_load_state("networkidle")
    for late in (".skeleton", "text=Still comparing memories…", ".row-link strong:text-is('…')"):
        page.locator(late).first.wait_for(state="detached")


@contextmanager
def _window(browser: "Browser", served: Serving) -> Iterator[Window]:
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([{"name": COOKIE, "value": _cookie(served), "url": served.url}])
        yield Window(page=context.new_page(), served=served)


def _cookie(served: Serving) -> str:
    key = served.headers["Authorization"].removeprefix("Bearer ")
    asked = urllib.request.Request(
        f"{served.url}/login",
        data=json.dumps({"api_key": key}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked) as answer:
        given = str(answer.headers["Set-Cookie"])
    return given.partition(";")[0].partition("=")[2]


def _asked(served: Serving, path: str) -> dict[str, object]:
    with urllib.request.urlopen(
        urllib.request.Request(f"{served.url}/api/v1{path}", headers=dict(served.headers))
    ) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def _addresses(served: Serving) -> list[str]:
    """Every page, with one memory and one domain."""
    found = [f"{path}{ASKED.get(path, '')}" for path in PAGES]
    for path, name, below in (
        ("/memories?limit=1", "results", "/memories"),
        ("/domains", "domains", "/domains"),
    ):
        listed = _asked(served, path)[name]
        if isinstance(listed, list) and listed:
            found.append(f"{below}/{listed[0]['id']}")
    return found


def _visits(browser: "Browser", served: Serving, rounds: int) -> dict[str, list[Visit]]:
    addresses = _addresses(served)
    visits: dict[str, list[Visit]] = {path: [] for path in addresses}
    for number in range(rounds + 1):
        for path in track(addresses, f"opening every page, {number + 1} of {rounds + 1}"):
            with _window(browser, served) as window:
                visits[path].append(window.visit(path, complete))
    return {_named(path): seen for path, seen in visits.items()}


def _named(path: str) -> str:
    """A page without its question, or the id of what it shows."""
    plain = urlsplit(path).path
    return plain if plain in PAGES else f"{plain.rpartition('/')[0]}/ID"


def _counts(browser: "Browser", served: Serving, rounds: int) -> list[Visit]:
    """What it takes until the home page shows how many memories there are."""
    total = _asked(served, "/stats")["totalMemories"]

    def counted(page: "Page") -> None:
        page.locator(".figure").filter(has_text=f"{total:,}").first.wait_for()

    taken = []
    for _ in range(rounds + 1):
        with _window(browser, served) as window:
            taken.append(window.visit("/", counted))
    return taken


def _frames(browser: "Browser", served: Serving, count: int) -> dict[str, list[float]]:
    taken = {}
    with _window(browser, served) as window:
        window.visit("/memories?order=oldest", complete)
        box = window.page.locator(".vlist").element_handle()
        rows = int(window.page.locator(".vlist").get_attribute("aria-rowcount") or 0)
        taken["a step that does nothing"] = window.frames(STILL, [None] * count)
        taken["the list, ten rows a step"] = window.frames(SCROLL, [[box, 400]] * count)
        box.evaluate("box => { box.scrollTop = 0 }")
        taken["the list, all rows in these steps"] = window.frames(
            SCROLL, [[box, 40 * rows // count]] * count
        )
    with _window(browser, served) as window:
        window.visit("/map", complete)
        canvas = window.page.locator(".map-box canvas").element_handle()
        steps = min(count, MAP_FRAMES)
        taken["the map, zoomed"] = window.frames(
            ZOOM, [[canvas, 1 if at % 8 > 3 else -1] for at in range(steps)]
        )
        taken["the map, dragged"] = window.frames(DRAG, [[canvas, at] for at in range(steps)])
    return taken


def _row(name: str, seen: Sequence[Visit]) -> dict[str, Cell]:
    return {
        "page": name,
        "first visit": seen[0].both,
        "later": median(one.both for one in later(seen)),
        "later, page": median(one.page for one in later(seen)),
        "later, server": median(one.server for one in later(seen)),
    }


def _frame_row(name: str, each: Sequence[float]) -> dict[str, Cell]:
    return {
        "what": name,
        "frames": len(each),
        "mean": float(np.mean(each)),
        "p95": float(np.percentile(each, 95)),
        "most": max(each),
    }


def _targets(
    visits: Mapping[str, Sequence[Visit]], counts: Sequence[Visit], taken: Mapping[str, Sequence[float]]
) -> list[Target]:
    firsts = {name: seen[0].both for name, seen in visits.items()}
    laters = {name: median(one.both for one in later(seen)) for name, seen in visits.items()}
    first, again = max(firsts, key=firsts.__getitem__), max(laters, key=laters.__getitem__)
    wanted = {name: LIST_FRAME_MS if "list" in name else MAP_FRAME_MS for name in list(taken)[1:]}
    return [
        _most(f"slowest page after a start ({first}), CPU s", firsts[first], PAGE_SECONDS),
        _most(f"slowest page later ({again}), CPU s", laters[again], PAGE_SECONDS),
        _most(
            "first counts of the home page, CPU s", median(one.both for one in later(counts)), COUNTS_SECONDS
        ),
        *(
            _most(f"{name}: p95 of a frame, ms", float(np.percentile(taken[name], 95)), limit)
            for name, limit in wanted.items()
        ),
    ]


def _most(name: str, value: float, limit: float) -> Target:
    return Target(name=name, value=value, limit=limit, at_least=False)


if __name__ == "__main__":
    main()

"""A store for the dashboard with three months of memories about a small software project, and what grew
around them: links, reviews, a contradiction, duplicates, domains, dreams, intentions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from testbed.world import HandClock, World, open_world

DAYS = 90
TOPICS: dict[str, tuple[str, Sequence[str]]] = {
    "database": (
        "PostgreSQL",
        (
            "The connection pool of PostgreSQL holds at most forty connections in production.",
            "PostgreSQL runs version 16 on the primary database and on both replicas.",
            "Slow queries of the database above 200 milliseconds are logged by PostgreSQL.",
            "The nightly vacuum of the PostgreSQL database starts at three in the morning.",
            "Backups of the PostgreSQL database are copied to a second region every six hours.",
            "The orders table of the database is partitioned by month since the spring.",
            "An index on customer_id of the orders table made the PostgreSQL report ten times faster.",
            "Replication of the PostgreSQL database lags two seconds behind during imports.",
            "Long transactions block the vacuum of PostgreSQL and let the database grow.",
            "The read replica of the database answers all reporting queries of PostgreSQL.",
        ),
    ),
    "interface": (
        "React",
        (
            "The settings page of the React interface loads its translations lazily.",
            "Buttons of the React interface use the design tokens of the theme.",
            "The React interface is tested in Chromium with Playwright for every change.",
            "Dark mode of the React interface follows the preference of the system.",
            "The React interface shows dates in the time zone of the reader.",
            "A virtual list keeps the React interface smooth with ten thousand rows.",
            "Forms of the React interface validate as soon as a field loses focus.",
            "The bundle of the React interface must stay below two hundred kilobytes.",
            "Icons of the React interface are drawn as inline vectors.",
            "Errors of the React interface are reported with the request id.",
        ),
    ),
    "deployment": (
        "Kubernetes",
        (
            "Every deployment to Kubernetes waits for a green pipeline and one approval.",
            "The Kubernetes cluster has three nodes in Frankfurt and one in Dublin.",
            "A failed deployment to Kubernetes is rolled back after five minutes.",
            "Secrets for the deployment come from the vault and never from Kubernetes manifests.",
            "The staging deployment in Kubernetes is rebuilt from scratch every Sunday.",
            "Memory limits of the Kubernetes pods were raised to 512 MiB after the crash.",
            "The deployment pipeline of Kubernetes takes eleven minutes on average.",
            "Canary deployments in Kubernetes get five percent of the traffic first.",
            "The Kubernetes ingress terminates TLS with certificates from the internal authority.",
            "Logs of the Kubernetes deployment are kept for thirty days.",
        ),
    ),
    "billing": (
        "invoices",
        (
            "Invoices of the billing service are sent on the first working day of the month.",
            "The billing service rounds invoices half up to two decimal places.",
            "Customers in Switzerland get invoices of the billing service in francs.",
            "The billing service retries a failed payment of invoices three times.",
            "Refunds of invoices need the approval of two people in the billing service.",
            "The billing service stores invoices for ten years as the law demands.",
            "Discounts on invoices expire after ninety days in the billing service.",
            "The billing service exports invoices to the accounting office every Friday.",
            "Overdue invoices of the billing service trigger a reminder after fourteen days.",
            "Tax rates on invoices come from a table that the billing service updates yearly.",
        ),
    ),
}
DECISIONS = (
    ("Use PostgreSQL for orders", "Orders need transactions over several tables.", ["MongoDB", "DynamoDB"]),
    (
        "Ship the interface as plain modules",
        "A build step costs more than it saves here.",
        ["Vite", "Webpack"],
    ),
)
HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked=1'>"
    "<svg onload='window.hacked=1'></svg> \u202eevil \u0000 [link](javascript:alert(1)) {{7*7}} ${7*7}"
).replace("\u0000", "")


class Garden:
    """The store, its ids by what they are for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ids: list[str] = []
        self.named: dict[str, str] = {}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.world.call(tool, **arguments)


def grow(world: World) -> Garden:
    """Fill an empty store; at the end the clock shows the time it had at the start plus `DAYS`."""
    garden, clock = Garden(world), world.clock
    begin, end = clock.now, clock.now + timedelta(days=DAYS)
    texts = [
        (topic, tag, text) for number in range(10) for topic, (tag, all_) in TOPICS.items()
        for text in (all_[number],)
    ]  # fmt: skip
    for number, (topic, tag, text) in enumerate(texts):
        clock.now = begin + timedelta(days=number * (DAYS - 6) / len(texts), hours=number % 9)
        kind = ("fact", "concept", "event", "note")[number % 4]
        garden.ids.append(
            world.remember(
                text, tags=[topic, tag.lower()], node_type=kind, force_create=True,
                source=f"meeting-{number % 5}.md", agent_id=("claude-code", "codex")[number % 2],
                session_id=f"session-{number // 8}",
            )
        )  # fmt: skip
        if number % 7 == 3:
            garden.call("mark_reviewed", id=garden.ids[number // 2], rating=1 + number % 4)
    _relations(garden)
    clock.now = end - timedelta(days=1)
    garden.call("domains", action="discover", min_cluster_size=5, force=True)
    garden.call("dream")
    clock.now = end - timedelta(hours=2)
    _intentions(garden)
    garden.call("consolidate")
    clock.now = end
    garden.named["suppressed"] = garden.ids[2]
    garden.call("suppress", id=garden.ids[2], reason="no longer relevant")
    return garden


def _relations(garden: Garden) -> None:
    world, ids = garden.world, garden.ids
    first = world.remember("The deployment window for releases is Tuesday morning.", tags=["deployment"])
    second = world.remember(
        "The deployment window for releases is not Tuesday morning but Thursday evening.",
        tags=["deployment"], force_create=True,
    )  # fmt: skip
    garden.named["old"], garden.named["new"] = first, second
    garden.call("memory", action="link", id=second, target=first, type="contradicts")
    for copy in ("Anna leads the billing team since January.", "Anna leads the billing team since January!"):
        garden.named["duplicate"] = world.remember(copy, tags=["people"], force_create=True)
    garden.call(
        "memory", action="edit", id=ids[0], content=f"{TOPICS['database'][1][0]} It was thirty before."
    )
    garden.call("memory", action="link", id=ids[0], target=ids[4])
    garden.call("memory", action="pin", id=ids[1])
    for decision, rationale, alternatives in DECISIONS:
        garden.call(
            "codebase", action="remember_decision", codebase="shop", decision=decision, rationale=rationale,
            alternatives=alternatives,
        )  # fmt: skip
    garden.call(
        "codebase", action="remember_pattern", codebase="shop", name="Repository classes",
        description="Each table has one repository class that holds its queries.", files=["shop/orders.py"],
    )  # fmt: skip


def _intentions(garden: Garden) -> None:
    garden.call(
        "intention", action="set", description="Rotate the certificates of the ingress",
        trigger={"type": "time", "in_minutes": 60}, priority="high",
    )  # fmt: skip
    garden.call(
        "intention", action="set", description="Ask for the load test before the next release",
        trigger={"type": "context", "topic": "release"},
    )  # fmt: skip


WORDS = (
    (
        "alder birch cedar elm fir hazel juniper larch maple oak pine rowan spruce willow yew aspen beech"
    ).split(),
    ("carries covers follows guards holds keeps marks meets opens orders reads sends shows stores").split(),
    ("bridge cabin ditch engine fence gate harbour island jetty kiln ladder mill nest orchard path").split(),
)


SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to vu wa ze ji ko lu".split()


def add_many(world: World, count: int) -> None:
    """Many short memories, in batches, spread over the last year."""
    start, (subjects, verbs, objects) = world.clock.now, WORDS
    kinds = ("fact", "concept", "event", "person", "place", "note", "pattern", "decision")

    def name(number: int) -> str:
        return "".join(SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(3))

    def text(number: int) -> str:
        subject, verb = subjects[number % len(subjects)], verbs[number % len(verbs)]
        way = f"{name(number * 7)} to {name(number * 13 + 5)}"
        return f"Entry {number}: the {subject} {verb} the {objects[number % len(objects)]} from {way}."

    for first in range(0, count, 100):
        world.clock.now = start - timedelta(days=365 * (count - first) / count)
        items = [
            {"content": text(number), "node_type": kinds[number % 8], "tags": [f"batch-{number // 1000}"],
             "force_create": True}
            for number in range(first, min(count, first + 100))
        ]  # fmt: skip
        world.call("smart_ingest", items=items)
    world.clock.now = start


@contextmanager
def open_garden(folder: Path, *, planted: bool = True) -> Iterator[Garden]:
    """A store whose last day is today."""
    clock = HandClock(datetime.now(UTC) - timedelta(days=DAYS if planted else 0))
    settings: dict[str, Any] = {"mechanisms.autopilot": False}
    with open_world(folder, clock=clock, **settings) as world:
        yield grow(world) if planted else Garden(world)

"""Writes the page of conformance results: `python -m tests.transports.conformance.report`."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from testbed.project import PROJECT
from tests.transports.conformance.node import packages
from tests.transports.conformance.server import fixture_server
from tests.transports.conformance.suite import ROUNDS, Scenario, known, run

PAGE = PROJECT / "docs" / "reference" / "mcp-conformance.md"
NOT_APPLICABLE = {
    "server-sse-polling": "Answers are not kept for a client that comes back for them (ADR 0022), so there "
    "is no stream to resume. The suite looks for a tool that begins one, and skips its checks without.",
    "http-custom-header-server-validation": "No tool of Vestige asks for an argument to be repeated in a "
    "header (`x-mcp-header`), so there is nothing to compare.",
    **dict.fromkeys(
        (f"sep-2640-skills-{name}" for name in ("directory", "enumeration", "manifest")),
        "The extension for skills is not offered.",
    ),
    **dict.fromkeys(
        (
            f"tasks-{name}"
            for name in (
                "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input",
                "request-headers", "dispatch-and-envelope", "status-notifications", "required-task-error",
                "mrtr-composition",
            )
        ),
        "The extension for tasks is not offered: long work reports its progress on its own request.",
    ),
}  # fmt: skip
"""Scenarios that cannot tell anything about this server, and why."""

HEAD = """\
# MCP conformance

What the official conformance suites say about this server over Streamable HTTP: the line for the handshake
era (0.1.16) and the pre-release that also knows the stateless one (0.2.0-alpha.12, once for each version of
the protocol). All scenarios for servers are run, also those that a suite does not score yet. `pass (3)` means
that three checks were made and none failed; an empty field, that the suite has no such scenario for that
version.

The suites call tools, read resources and get prompts of their own. A server under test has them beside
everything that Vestige offers (`tests/transports/conformance`), behind all layers of a server in
production, and needs a key. The suites cannot send one, so it is added to their requests on the way. They
say that they have roots and do not answer when asked for them, so the server takes them for clients on
another machine, which it does not ask.

A test compares this page with a run of both suites.
`python -m tests.transports.conformance.report` writes it.
"""
SKIPPED = """
`server-stateless` skips its checks of `subscriptions/listen`: the server says that it has no subscriptions.
"""


def page(found: Mapping[str, Mapping[str, Scenario]], all_known: set[str]) -> str:
    """The page, from what each round found."""
    titles = [one.title for one in ROUNDS]
    names = sorted(all_known - NOT_APPLICABLE.keys())
    rows = [
        " | ".join(
            (f"`{name}`", *(found[title][name].verdict if name in found[title] else "" for title in titles))
        )
        for name in names
    ]
    head = f"| scenario | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 1)}"
    reasons = "\n".join(f"| `{name}` | {NOT_APPLICABLE[name]} |" for name in sorted(NOT_APPLICABLE))
    return "\n".join(
        (
            HEAD,
            head,
            *(f"| {row} |" for row in rows),
            SKIPPED,
            "## Not applicable\n",
            "| scenario | why |\n|---|---|",
            reasons + "\n",
        )
    )


def measured(folder: Path) -> tuple[dict[str, Mapping[str, Scenario]], set[str]]:
    """Run everything; what each round found, and all scenarios there are."""
    place = packages()
    with fixture_server(folder / "store") as url:
        found = {one.title: run(one, place, url, folder / str(n)) for n, one in enumerate(ROUNDS)}
    return found, {name for one in ROUNDS for name in known(one.package, place)}


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(*measured(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()

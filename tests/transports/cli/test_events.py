"""`vestige events` before it follows anything; what it tells is in test_events_between_processes."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.transports.cli.harness import invoke
from vestige.core.events import ConsolidationStarted, EventScope, MemoryPromoted, SearchPerformed
from vestige.transports.cli.commands.events import in_a_line

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "hint"),
    [("MemoryCreate", "Did you mean MemoryCreated?"), ("qqqqqqqq", "`vestige docs events` lists them.")],
)
def test_an_unknown_type_is_refused_before_anything_is_opened(given: str, hint: str, tmp_path: Path) -> None:
    refused = invoke(["events", "--type", given, "--data-dir", str(tmp_path / "data")])
    error = json.loads(refused.stderr)["error"]
    assert (error["code"], error["hint"]) == ("invalid_input", hint)
    assert not (tmp_path / "data").exists()


def test_an_event_is_a_line_with_what_there_is_to_say() -> None:
    promoted = MemoryPromoted(
        timestamp=NOON, scopes=(EventScope(scope="/tea"),), id="m", new_retention=0.912345
    )
    assert in_a_line(promoted) == (
        "2026-03-01 12:00:00 UTC  MemoryPromoted          scope=/tea  id=m  new_retention=0.9123"
    )
    search = SearchPerformed(
        timestamp=NOON,
        scopes=(EventScope(scope="/"),),
        query="tea\nor coffee",
        result_count=2,
        result_ids=("a", "b"),
        duration_ms=1.0,
    )
    assert in_a_line(search) == (
        "2026-03-01 12:00:00 UTC  SearchPerformed         scope=/  query=tea or coffee  result_count=2  "
        "result_ids=a, b  duration_ms=1  recorded=True"
    )
    assert (
        in_a_line(ConsolidationStarted(timestamp=NOON, scopes=None))
        == "2026-03-01 12:00:00 UTC  ConsolidationStarted"
    )

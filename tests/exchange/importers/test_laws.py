"""Whatever a foreign record holds, it becomes a record of ours or is left with a reason."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.world import START
from vestige.cognition.fsrs.formulas import W20
from vestige.cognition.fsrs.strength import retrieval_of
from vestige.core.errors import VestigeError
from vestige.core.models import Strength
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.recognition import ImportFormat, reading, recognise
from vestige.exchange.importers.records import BroughtMemory, Reading, Target, UnreadRecords
from vestige.exchange.importers.strengths import faded_to
from vestige.exchange.importers.tools.reference import edge_of, insight_of, intention_of

TARGET = Target(scope="/project/a", now=START, curve=W20)
NAMES = st.sampled_from(
    "content text id createdAt updated_at lastAccessed stability difficulty reps lapses learning_state "
    "storage_strength retrieval_strength retention_strength next_review tags source node_type position "
    "thread valid_from valid_until phrasings metadata suppression_count suppressed_at scope source_id "
    "target_id strength link_type trigger_type trigger_data priority status deadline reminder_count "
    "last_reminded_at notes related_memories snoozed_until fulfilled_at insight "
    "source_memories confidence".split()
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["2026-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "0001-01-01", "time", "[1]", "{}"]
    )
    | st.binary(max_size=5)
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
RECORDS = st.dictionaries(NAMES, VALUES).map(lambda record: {"content": "Something.", "id": "x", **record})


@given(RECORDS)
def test_any_record_is_read_or_left(record: dict[str, object]) -> None:
    for read in (memory_of, edge_of, intention_of, insight_of):
        found = read(record, "here", TARGET)
        if isinstance(found, UnreadRecords):
            assert found.reason
        elif isinstance(found, BroughtMemory):
            assert found.memory.created_at <= found.memory.updated_at <= START
            assert found.memory.scope == TARGET.scope


@given(
    retrieval=st.floats(0, 1),
    stability=st.floats(0.001, 36_500),
    days=st.floats(0, 10_000),
    curve=st.floats(0.08, 1.0),
)
def test_the_chance_of_recall_is_what_was_told_and_never_rises(
    retrieval: float, stability: float, days: float, curve: float
) -> None:
    target = Target(scope="/", now=START, curve=curve)
    level, since = faded_to(retrieval, stability, START - timedelta(days=days), target)
    held = Strength(
        stability=stability, difficulty=5, decay_from=since, due_at=START, last_accessed=START, retention=0,
        retention_at=START, retrieval=level, curve=curve,
    )  # fmt: skip

    assert 0 <= level <= 1
    assert START - timedelta(days=days) <= since <= START
    assert retrieval_of(held, START) == pytest.approx(retrieval, abs=1e-6)
    assert retrieval_of(held, START + timedelta(days=1)) <= retrieval_of(held, START)


def everything(path: Path, form: ImportFormat) -> list[object]:
    with reading(path, form, TARGET) as found:
        assert isinstance(found, Reading)
        return list(found.records)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=200) | st.lists(VALUES.filter(bool)).map(lambda rows: repr(rows).encode()))
def test_any_file_is_read_or_refused_in_every_format(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file.md"
    path.write_bytes(data)
    for form in (
        None,
        ImportFormat.JSON,
        ImportFormat.JSONL,
        ImportFormat.SERVER_MEMORY,
        ImportFormat.MARKDOWN,
        ImportFormat.REFERENCE,
    ):
        try:
            everything(path, form or recognise(path))
        except VestigeError as error:
            assert error.message  # noqa: PT017  a refusal is one of two right answers

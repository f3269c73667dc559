"""What rules propose from a transcript. The transcripts of the half `blind` were never looked at one by one
while the rules were written."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.evidence.capture.propose import ProposalKind, Speaker, Turn, propose

DATA = Path(__file__).parent / "data" / "transcripts.jsonl"


@cache
def transcripts(half: str) -> list[dict[str, Any]]:
    rows = map(json.loads, DATA.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["half"] == half]


def turns(row: dict[str, Any]) -> list[Turn]:
    return [
        Turn(
            role=Speaker(one["role"]),
            text=one["text"],
            command=one.get("command"),
            exit_status=one.get("exit_status"),
        )
        for one in row["turns"]
    ]


def said(*lines: str) -> list[Turn]:
    """Turns of an assistant and a user, the last one by the user."""
    roles = (Speaker.USER, Speaker.ASSISTANT)
    return [Turn(role=roles[(len(lines) - 1 - at) % 2], text=line) for at, line in enumerate(lines)]


@pytest.mark.parametrize("half", ["open", "blind"])
def test_the_rules_propose_what_is_worth_keeping_and_little_else(half: str) -> None:
    right = proposed = expected = 0
    for row in transcripts(half):
        found, left = propose(turns(row)), list(row["expected"])
        proposed, expected = proposed + len(found), expected + len(left)
        for one in found:
            about = [e for e in left if e["kind"] == one.kind and e["about"].lower() in one.content.lower()]
            right += bool(about)
            left = [e for e in left if e not in about[:1]]
    assert len(transcripts(half)) == 20
    assert right / proposed >= 0.9
    assert right / expected >= 0.8


def test_a_correction_needs_something_to_correct() -> None:
    (one,) = propose(said("The port is 5432.", "No, the port is 5433."))
    assert (one.kind, one.content) == (ProposalKind.CORRECTION, "Correction by the user: The port is 5433.")
    assert propose(said("No, the port is 5433.")) == []
    assert propose(said("Shall I go on?", "No, thanks a lot.")) == []


def test_a_decision_has_its_reason_and_is_not_a_question() -> None:
    assert [one.kind for one in propose(said("We use httpx because it has HTTP/2."))] == ["decision"]
    assert propose(said("We use httpx.")) == []
    assert propose(said("Should we use httpx because it has HTTP/2?")) == []


def test_a_fix_names_error_cause_and_solution() -> None:
    failing = Turn(role=Speaker.TOOL, text="Error: no such table", command="pytest", exit_status=1)
    why = Turn(role=Speaker.ASSISTANT, text="It fails because the migration is missing.")
    step = Turn(role=Speaker.TOOL, text="", command="alembic upgrade head", exit_status=0)
    works = Turn(role=Speaker.TOOL, text="ok", command="pytest", exit_status=0)
    (one,) = propose([failing, why, step, works])
    assert one.kind is ProposalKind.FIX
    assert one.content == (
        "`pytest` failed: Error: no such table. It fails because the migration is missing."
        " Then worked: `alembic upgrade head`."
    )
    assert propose([failing, step, works]) == []
    assert propose([failing, why, step]) == []
    assert propose([failing, why, failing, works]) == []


def test_a_procedure_has_several_steps_and_worked_three_times() -> None:
    step = [Turn(role=Speaker.TOOL, text="", command=one, exit_status=0) for one in ("make a", "make b")]
    (one,) = propose(step * 3)
    assert one.content == "Procedure that worked 3 times: `make a`, then `make b`."
    assert propose(step * 2) == []
    assert propose(step[:1] * 5) == []


@given(st.lists(st.builds(Turn, role=st.sampled_from(Speaker), text=st.text(max_size=80))))
def test_any_transcript_can_be_read(several: list[Turn]) -> None:
    found = propose(several)
    assert len({one.content for one in found}) == len(found)
    assert all(0 <= one.position < len(several) for one in found)

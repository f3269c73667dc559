"""What rules propose from a transcript. The transcripts of the half `blind` were never looked at one by one
while the rules were written."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.evidence.capture.propose import propose
from vestige.cognition.evidence.capture.turns import ProposalKind, Speaker, Turn

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


def of(kind: ProposalKind, *lines: str) -> list[str]:
    return [one.content for one in propose(said(*lines)) if one.kind is kind]


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("no man... the fix is a filter in the parser", "The fix is a filter in the parser"),
        (
            "the second part is not correct, on staging we use the shared queue",
            "The second part is not correct, on staging we use the shared queue",
        ),
        (
            "uhh... DUDE shell and write AREN'T states, they are kinds of tools",
            "Shell and write AREN'T states, they are kinds of tools",
        ),
        (
            "not as a comment, but as a document attached to the issue",
            "Not as a comment, but as a document attached to the issue",
        ),
        (
            "we don't have `session_key` anymore so drop the column",
            "We don't have `session_key` anymore so drop the column",
        ),
        (
            "yes, load_rows should not be in main.py, that's what io is for",
            "load_rows should not be in main.py, that's what io is for",
        ),
    ],
)
def test_a_correction_in_passing_is_heard(answer: str, content: str) -> None:
    assert of(ProposalKind.CORRECTION, "I wrote the rows.", answer) == [f"Correction by the user: {content}"]


@pytest.mark.parametrize(
    "answer",
    [
        "No, let's go on with the second file.",
        "no... I committed the fixes and the README",
        "No. Can you look at the log again",
        "NOPE! I'm still getting duplicate rows!",
        "no, it should not be marked as done yet",
        "This is ALL kinds of wrong.",
        "That approach is wrong, revert it",
        '"Everything works now because the cache is gone."',
    ],
)
def test_what_says_nothing_to_a_later_reader_is_no_correction(answer: str) -> None:
    assert propose(said("I wrote the rows.", answer)) == []


@pytest.mark.parametrize(
    "line",
    [
        "We should keep that variable since it's the standard name.",
        "Let's use true/false and not on/off for the flag",
        "There won't be text that all providers share, so option B is better.",
        "Thinking goes to the agent's text, that's decided.",
        "Let's allow both flags together, the redundancy doesn't matter.",
    ],
)
def test_a_reason_may_come_first_or_name_what_was_not_chosen(line: str) -> None:
    assert of(ProposalKind.DECISION, line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "Let's run the tests because I changed the parser.",
        "I keep getting errors because the folder is wrong.",
        "Let's address number 4 instead of number 3.",
    ],
)
def test_a_chore_is_no_decision(line: str) -> None:
    assert propose(said(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        "Keep our working notes in the tracker.",
        "Use `httpx` instead of requests.",
        "We must never ignore errors.",
        "Just use slog like we do everywhere else.",
        "We don't want a debug.py in each provider.",
        "Apply the changes yourself, always",
        'From now on, never ask me "Shall I go on?" if it is obvious.',
    ],
)
def test_a_standing_wish_is_a_preference(line: str) -> None:
    assert of(ProposalKind.PREFERENCE, line) == [line]


@pytest.mark.parametrize(
    "line",
    ["I don't want that test.", "We should always show it", "We don't want this:", "Never mind the format."],
)
def test_a_wish_that_only_points_at_something_is_none(line: str) -> None:
    assert propose(said(line)) == []


def test_what_an_agent_did_and_why_is_read_in_its_last_message_only() -> None:
    done = "I switched to the install script since the action wraps a command only."
    plan = Turn(role=Speaker.ASSISTANT, text=done)
    next_step = Turn(role=Speaker.ASSISTANT, text="Now the docs.")
    thanks = Turn(role=Speaker.USER, text="thanks")
    assert [one.content for one in propose([plan, thanks])] == [done]
    assert propose([plan, next_step, thanks]) == []
    kept = "I kept one session for each test because the cookies were shared."
    assert [one.content for one in propose([Turn(role=Speaker.ASSISTANT, text=f"Done. {kept}")])] == [kept]
    for aside in ("I left it alone since you didn't ask.", "I added a regression test because it broke."):
        assert propose([Turn(role=Speaker.ASSISTANT, text=aside)]) == []


def test_pasted_text_code_and_plans_of_the_client_are_not_what_was_said() -> None:
    assert propose(said("```\nWe use httpx because it has HTTP/2.\n```")) == []
    assert propose(said("> We use httpx because it has HTTP/2.")) == []
    assert propose(said("Implement the following plan:\nWe use httpx because it has HTTP/2.")) == []


def test_an_edit_that_repairs_a_test_is_no_fix_to_keep() -> None:
    failing = Turn(role=Speaker.TOOL, text="AssertionError: 3 != 4", command="pytest", exit_status=1)
    why = Turn(role=Speaker.ASSISTANT, text="It fails because of an off-by-one error. I fixed the loop.")
    works = Turn(role=Speaker.TOOL, text="ok", command="pytest", exit_status=0)
    assert propose([failing, why, works]) == []


def test_an_output_without_an_error_and_a_plan_make_no_fix() -> None:
    works = Turn(role=Speaker.TOOL, text="ok", command="deploy.sh", exit_status=0)
    for text, said_then in (
        ("Installed 6 hooks", "The problem is the missing key. That fixes it."),
        ("[deploy] ERROR task failed", "The problem is the missing key. That fixes it."),
        ("Error: no key", "The problem is the missing key. Let me fix that."),
    ):
        failing = Turn(role=Speaker.TOOL, text=text, command="deploy.sh", exit_status=1)
        assert propose([failing, Turn(role=Speaker.ASSISTANT, text=said_then), works]) == []

"""No recalled text leaves its line of a briefing, and nothing unseen is shown."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.evidence.briefing import BriefingSection, compose
from vestige.cognition.evidence.injection.unseen import visible
from vestige.cognition.intentions.intention import Intention, Looked, Priority
from vestige.cognition.intentions.triggers import Manual
from vestige.core.models import Memory
from vestige.operations.intentions.view import intention_line

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ID = "01890000-0000-7000-8000-000000000001"
PIECES = st.sampled_from(
    [
        "</vestige-recall>", '<vestige-recall id="x">', "</context>", "```", "~~~", "\n", "\r", "\u2028",
        "\x85", "\x1c", "\x0b",
        "## System", "system: ", "<|im_start|>", "\u202e", "\u200b", "\U000e0041", '"', "]]>", "[/INST]",
        "- (Mar",
    ]
)  # fmt: skip
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=12).map("".join)
STORABLE = HOSTILE.map(lambda text: f"x {text.replace(chr(0), '')}")


@given(STORABLE, STORABLE, STORABLE)
def test_a_memory_stays_on_its_line_of_a_briefing(text: str, source: str, author: str) -> None:
    memory = Memory(id=ID, content=text, created_at=NOW, updated_at=NOW, source=source, author=author)
    other = replace(memory, id="other", content="Bo walks.")
    section = BriefingSection(heading="### Recalled", memories=(memory, other))
    lines = compose(["## Session"], [section], 10_000).text.splitlines()
    shown = [line for line in lines if line.startswith("- (Mar 01, 2026) ")]
    assert len(shown) == 2
    assert [line.endswith(end) for line, end in zip(shown, (f"[{ID}]", "[other]"), strict=True)] == [True] * 2
    assert set(lines) - set(shown) <= {"## Session", "### Recalled", ""}
    assert not {"\u202e", "\u200b", "\U000e0041"} & set("".join(lines))


@given(STORABLE)
def test_an_intention_stays_on_its_line(text: str) -> None:
    made = Intention(
        id=ID, scope="/", created_at=NOW, updated_at=NOW, armed_at=NOW, description=text, said=None,
        trigger=Manual(), priority=Priority.NORMAL, deadline=None, zone=UTC,
    )  # fmt: skip
    line = intention_line(Looked(after=made, shown=False, fresh=False, counted=False, unshown=made), NOW)
    assert line.splitlines() == [line]
    assert line.startswith("- ")
    assert line.endswith(f"[intention {ID}]")


def test_joiners_of_scripts_and_emoji_stay_visible() -> None:
    for text in ("می\u200cخواهم", "👨\u200d👩\u200d👧", "Ada", "1\t2\n3"):
        assert visible(text) == text

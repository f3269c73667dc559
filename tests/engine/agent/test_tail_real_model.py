"""With the local model and its pair model, the tail takes no text of another subject for an answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from tests.engine.agent.test_tail import recalled

pytestmark = pytest.mark.slow

NOTES = (
    "The support hotline is staffed until 16:00, ask for Mr. Benedikt.",
    "Petra runs the front office: rosters, till, complaints.",
    "Threshold for free delivery in the shop set to 65 euros, banner changed as well.",
    "Lights in the workshop go out at 20:00.",
    "The van needs a new exhaust before the inspection in May.",
)


@pytest.fixture
def real(real_model_dir: Path, tmp_path: Path) -> Iterator[World]:
    settings: dict[str, Any] = {"embeddings.cache_dir": str(real_model_dir.parent), "offline": True}
    with open_world(tmp_path, provider="local", **settings) as world:
        assert world.app.engine.embedders.get(60) is not None
        for text in NOTES:
            world.remember(text)
        world.clock.advance(hours=1)
        yield world


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Who leads the platform group nowadays?", None),
        ("How much money do we have left?", None),
        ("Whom do I ask for at the support hotline?", NOTES[0]),
        ("Who runs the front office?", NOTES[1]),
        ("What does the van need before its inspection?", NOTES[4]),
    ],
)
def test_an_answer_needs_words_of_the_prompt_or_more_confidence(
    real: World, prompt: str, answer: str | None
) -> None:
    context = str(recalled(real, prompt)["context"])
    assert bool(context) == (answer is not None)
    assert answer is None or answer in context

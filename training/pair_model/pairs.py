"""The labelled pairs that the pair model was trained on, and the development pairs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"
FOLDER = DATA / "relations"

LABELS = ("same", "corrects", "unclear", "elaborates", "other")
"""The classes in the order of the model's probabilities."""

AUTHORS = (
    "bank-sre", "councillor-assistant", "museum-registrar", "construction-manager", "coding-agent",
    "devops-consultant", "family-assistant", "chemistry-ecology", "product-organisation", "bed-and-breakfast",
    "game-studio", "hospital-laboratory", "student-barista", "restaurant", "robotics-manager",
    "ml-maintainer", "customer-success", "backend-lead", "travelling-consultant",
    "software-service-reliability", "law-office-manager", "mobile-developer", "hardware-product-manager",
    "household-of-five", "hospital-data-scientist", "session-notes-agent", "bicycle-workshop",
    "operations-telegrams", "volunteer", "farm-manager", "decision-log", "flatmates",
)  # fmt: skip
"""The authors of notes, in the order that augmentation reads their files. Another order gives other random
choices."""

PLAIN = ("plain-developer", "plain-agent", "plain-office")
"""The authors who report changes in plain words, as users do. They have a share of a batch of their own."""

TWINS = (
    "school-secretary", "agent-in-many-repositories", "operations-lead", "personal-assistant",
    "product-minutes", "assistant-of-many-people", "terse-engineer", "club-and-town", "clinic-and-claims",
    "everyday-tester", "subtle-scientist",
)  # fmt: skip
"""The authors who set beside each correction a note with the same words of change that leaves the first one
true, and who wrote corrections without any word of change. They have a share of a batch of their own."""

GENERAL = ("photo-captions", "news-wire", "headlines-and-forums")
"""The authors of sentences that are no notes."""

HANDWRITTEN = "handwritten"

KINDS = {
    "same": ("paraphrase", "passive", "terse"),
    "corrects": ("explicit", "moved", "replaced", "reversed", "role", "started", "stopped", "value"),
    "unclear": ("hearsay", "hedged", "measured"),
    "elaborates": ("detail",),
    "other": (
        "attribute", "environment", "exception", "history", "hypothesis", "news", "opinion", "sibling",
    ),
}  # fmt: skip
"""The kinds of pairs that each label has in the authors' files."""

GENERAL_KINDS = {
    "same": ("article", "attribution", "paraphrase", "passive", "reordered", "terse"),
    "corrects": ("negation", "opposite", "roles", "value"),
    "unclear": (),
    "elaborates": ("detail",),
    "other": ("action", "actor", "detail_differs", "object", "part", "related", "unrelated"),
}  # fmt: skip
"""The kinds in the files of general sentences."""

HANDWRITTEN_KINDS = {
    "same": ("abbreviation", "paraphrase", "passive", "reordering"),
    "corrects": (
        "moved", "no longer", "not X but Y", "on/off", "past/history", "replaced-by", "retraction",
        "role changed", "roles swapped", "value change explicit", "value change implicit",
    ),
    "unclear": ("hedged", "measurement", "other source"),
    "elaborates": ("adds detail",),
    "other": (
        "exception/part", "hypothesis/plan", "news", "opinion of another person", "other attribute",
        "other environment", "other time", "past/history", "question", "sibling entity",
    ),
}  # fmt: skip
"""The kinds in the handwritten file, which is older and names them differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two notes, `first` stored earlier. Pairs of one `group` are about the same first note or topic."""

    group: str
    first: str
    second: str
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class Example:
    """Two notes and the label that the model has to give them."""

    first: str
    second: str
    label: str


def authors(names: Sequence[str] = AUTHORS) -> list[list[LabelledPair]]:
    """The pairs of each author, in the order of the names."""
    return [list(_rows(FOLDER / f"{name}.jsonl")) for name in names]


def handwritten() -> list[LabelledPair]:
    return list(_rows(FOLDER / f"{HANDWRITTEN}.jsonl"))


def development() -> list[Example]:
    """The pairs that runs are compared on: the development half of the benchmark of notes."""
    from benchmarks.notes.cases import pairs_of  # here, so that `train` needs only numpy and PyTorch

    return [Example(pair.first, pair.second, pair.label) for pair in pairs_of("development")]


def _rows(file: Path) -> Iterator[LabelledPair]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield LabelledPair(**json.loads(line))

"""Does a memory know when it does not know? Questions about one conversation are put to another.

A question counts as refused when its confidence is below a threshold; moving the threshold gives the
trade-off between refusing what has no answer and refusing what has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.engine import InProcess
from benchmarks.progress import track
from benchmarks.quality import arms
from benchmarks.quality.corpus import Corpus
from benchmarks.quality.locomo import renamed
from benchmarks.quality.ranked import TOP, Ranked
from benchmarks.quality.shelf import Ground, stock
from benchmarks.report import Cell

MOST_REFUSED = 0.05
"""Of what has an answer."""
ADVERSARIAL = "adversarial"
PLAIN, RENAMED = "as asked", "with the names of the other speakers"

Talk = tuple[Corpus, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """How sure an answer was, and whether it was refused as shipped."""

    confidence: float
    abstained: bool


def sureness(answered: Sequence[Ranked]) -> list[Sureness] | None:
    """How sure the answers to LoCoMo's answerable questions were; None when they do not say."""
    known = [one for one in answered if one.question.category != ADVERSARIAL]
    made = [
        Sureness(confidence=one.confidence, abstained=bool(one.abstained))
        for one in known
        if one.confidence is not None
    ]
    return made if len(made) == len(known) else None


def asked_elsewhere(talks: Sequence[Talk], ground: Ground) -> dict[str, list[Sureness]]:
    """The questions of each conversation put to the next one, with the speakers' names as they are and
    replaced by those of the other conversation."""
    made: dict[str, list[Sureness]] = {PLAIN: [], RENAMED: []}
    for number, (corpus, speakers) in enumerate(talks):
        asked, names = talks[number - 1]
        with InProcess(stock(corpus, ground).folder) as opened:
            for question in track(asked.questions, f"{asked.name} asked of {corpus.name}"):
                for kind, text in (
                    (PLAIN, question.text),
                    (RENAMED, renamed(question.text, names, speakers)),
                ):
                    answer = arms.ask(opened, text, TOP)
                    made[kind].append(
                        Sureness(confidence=answer["confidence"], abstained=answer.get("abstained", False))
                    )
    return made


def curve(answerable: Sequence[Sureness], wrong: Sequence[Sureness]) -> list[tuple[float, float]]:
    """(share of answerable refused, share of wrong refused) for every threshold worth trying."""
    levels = sorted({one.confidence for one in (*answerable, *wrong)})
    return [(_below(answerable, level), _below(wrong, level)) for level in (*levels, float("inf"))]


def refused_at(points: Sequence[tuple[float, float]], most: float) -> float:
    """The greatest share of wrong questions refused while at most `most` of the answerable ones are."""
    return max(wrong for answerable, wrong in points if answerable <= most)


def rows(answerable: Sequence[Sureness], wrong: dict[str, list[Sureness]]) -> list[dict[str, Cell]]:
    """The trade-off at its point of interest, and as shipped."""
    return [
        {
            "questions of another conversation": kind,
            f"refused, with ≤ {MOST_REFUSED:.0%} of answerable": refused_at(
                curve(answerable, asked), MOST_REFUSED
            ),
            "refused as shipped": _share(asked),
            "answerable refused as shipped": _share(answerable),
        }
        for kind, asked in wrong.items()
    ]


def _below(answers: Sequence[Sureness], level: float) -> float:
    return sum(one.confidence < level for one in answers) / len(answers)


def _share(answers: Sequence[Sureness]) -> float:
    return sum(one.abstained for one in answers) / len(answers)

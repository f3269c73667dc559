"""python -m training.pair_model.thresholds --embedder DIR: the decisions of the gate on the later notes.

Thresholds of the gate are judged by this table. Each later note meets the notes of its notebook in the pure
gate, without a store: the nearest notes are its rivals, with the likeness of their words and the relation
that the pair model gives.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from training.pair_model.notebooks import LATER, LaterNote, Notebook, notebooks
from vestige.cognition.english.words import words_of
from vestige.cognition.gate.decide import (
    COMPARED,
    Decision,
    GateInput,
    Reinforce,
    Rival,
    Supersede,
    Update,
    decide,
    is_compared,
)
from vestige.cognition.gate.paraphrase import Likeness, could_restate, word_likeness
from vestige.embed.onnx import OnnxEmbedder
from vestige.embed.protocol import Embedder, Encoded
from vestige.engine.ingest.decide import RIVALS

OUTCOMES = {Supersede: "superseded", Reinforce: "reinforced", Update: "updated"}
KEPT = "kept beside"
COLUMNS = (*(f"{outcome} {which}" for outcome in OUTCOMES.values() for which in ("right", "another")), KEPT)


def decisions(book: Notebook, embedder: Embedder) -> Iterator[tuple[LaterNote, Decision]]:
    """Each later note of a notebook with what the gate decides about it. Notes are named by position."""
    if not book.later:
        return
    known = embedder.encode_documents(book.notes)
    for later in book.later:
        [ours] = embedder.encode_documents([later.text])
        likeness = [float(ours.vector @ one.vector) for one in known]
        nearest = sorted(range(len(known)), key=lambda at: -likeness[at])[:RIVALS]
        rivals = [
            Rival(
                memory_id=str(at),
                content=book.notes[at],
                similarity=likeness[at],
                likeness=partial(_word_likeness, later.text, ours, book.notes[at], known[at], likeness[at]),
            )
            for at in nearest
            if likeness[at] >= COMPARED
        ]
        made = {
            one.memory_id: replace(one, relation=embedder.relate(one.content, later.text))
            for one in rivals
            if is_compared(later.text, rivals, one)
        }
        rivals = [made.get(one.memory_id, one) for one in rivals]
        yield later, decide(GateInput(content=later.text, nearest=max(likeness)), rivals)


def _word_likeness(new: str, ours: Encoded, old: str, theirs: Encoded, similarity: float) -> Likeness | None:
    left, right = ours.tokens, theirs.tokens
    if left is None or right is None or not could_restate(new, old, similarity):
        return None
    return word_likeness(words_of(new), left.spans, left.states, words_of(old), right.spans, right.states)


def outcome(later: LaterNote, decision: Decision) -> str:
    """The column of a decision: what became of which note, the right one or another."""
    match decision:
        case Supersede(memory_id=memory_id) | Reinforce(memory_id=memory_id) | Update(memory_id=memory_id):
            which = "right" if memory_id == str(later.about) else "another"
            return f"{OUTCOMES[type(decision)]} {which}"
        case _:
            return KEPT


def table(decided: Sequence[tuple[LaterNote, Decision]]) -> Iterator[str]:
    """The lines of a Markdown table: how many later notes of each kind had each outcome."""
    counted = Counter((later.kind, outcome(later, decision)) for later, decision in decided)
    yield f"| later note | all | {' | '.join(COLUMNS)} |"
    yield f"|---|{'--:|' * (1 + len(COLUMNS))}"
    for kind in LATER:
        counts = [counted[kind, column] for column in COLUMNS]
        yield f"| `{kind}` | {' | '.join(map(str, (sum(counts), *counts)))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.pair_model.thresholds", description="Decide on the later notes."
    )
    parser.add_argument("--embedder", type=Path, required=True, help="the folder that `vestige model` shows")
    given = parser.parse_args()
    embedder = OnnxEmbedder(given.embedder, threads=1)
    print("\n".join(table([one for book in notebooks() for one in decisions(book, embedder)])))


if __name__ == "__main__":
    main()

"""The real sentences that memories are made of, and the real questions that are asked.

Turns of LoCoMo are talk, abstracts of Cranfield are notes. Where one is not at hand, the grammar's turns
stand in for both.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.conversation import generated
from benchmarks.quality.collections import cranfield
from benchmarks.quality.corpus import Corpus, Missing
from benchmarks.quality.locomo import conversations

MOST_SENTENCES = 3_000
"""Of each kind: the model reads each of them once."""
SHORTEST, LONGEST = 25, 300
GENERATED = 1_500
QUERY_SEED, QUERY_WORDS = 9, 12

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SHARED = re.compile(r"\s*\[shares [^\]]*\]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Sentences that are said and sentences that are written, questions about both, and whose they are."""

    said: Sequence[str]
    written: Sequence[str]
    questions: Sequence[str]
    names: Sequence[str]
    origin: str


def load(data: Path | None, questions: int) -> Material:
    """The material in a folder, with so many questions, half about each kind."""
    try:
        return _real(data, questions) if data is not None else _made(questions)
    except Missing:
        return _made(questions)


def _real(data: Path, questions: int) -> Material:
    talks, abstracts = conversations(data), cranfield(data)
    turns = (_SHARED.sub("", one.content.partition(": ")[2]) for talk, _ in talks for one in talk.documents)
    said = _distinct(turns)
    written = _distinct(one.content.replace(" .", ".") for one in abstracts.documents)
    half = -(-questions // 2)
    asked = zip(_spread([talk for talk, _ in talks], half), _spread([abstracts], half), strict=True)
    return Material(
        said=said,
        written=written,
        questions=[text for pair in asked for text in pair][:questions],
        names=sorted({name for _, speakers in talks for name in speakers if name}),
        origin=f"{len(said):,} sentences of LoCoMo, {len(written):,} of Cranfield",
    )


def _made(questions: int) -> Material:
    turns = generated(2 * GENERATED)
    asked = [" ".join(turn.text.split()[:QUERY_WORDS]) for turn in generated(questions, seed=QUERY_SEED)]
    return Material(
        said=_distinct(turn.text for turn in turns[:GENERATED]),
        written=_distinct(turn.text for turn in turns[GENERATED:]),
        questions=asked,
        names=sorted({turn.speaker for turn in turns}),
        origin="sentences of a grammar",
    )


def _spread(corpora: Iterable[Corpus], count: int) -> list[str]:
    """So many questions from all over these sets, one asked again only when there are too few."""
    every = [_SPACE.sub(" ", question.text) for corpus in corpora for question in corpus.questions]
    if not every:
        raise Missing("no questions")
    return [every[at * len(every) // count % len(every)] for at in range(count)]


def _distinct(texts: Iterable[str]) -> list[str]:
    """The first different sentences of ordinary length."""
    found = dict.fromkeys(one for text in texts for one in _sentences(text))
    if len(found) < 2:
        raise Missing("no sentences")
    return list(found)[:MOST_SENTENCES]


def _sentences(text: str) -> Iterator[str]:
    for one in _SENTENCE_END.split(_SPACE.sub(" ", text).strip()):
        if SHORTEST <= len(one) <= LONGEST:
            yield one

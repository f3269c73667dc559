"""Prompts and what is remembered beside them: each corpus is asked its own questions, and those of the next
corpus of its family, whose answers it does not hold."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.notes.cases import HALVES, UNANSWERABLE, Notebook, notebooks_of
from benchmarks.quality.corpus import Corpus, Document, Question
from benchmarks.quality.locomo import conversations, renamed
from benchmarks.quality.longmemeval import longmemeval

OWN, FOREIGN, RENAMED, UNKNOWN = "with gold", "of another store", "renamed", "about what is missing"
SEED = 20_261_118
One = TypeVar("One")
_LEFT_OUT = ("adversarial",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt of a kind, and the keys of the documents or threads that answer it."""

    kind: str
    text: str
    gold: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A store, and the prompts of a session with it."""

    family: str
    corpus: Corpus
    prompts: Sequence[Asked]


def notebooks(_data: Path, most: int) -> Iterator[Session]:
    """Notes of each half: questions of the other author's notebook have no answer here."""
    for half in HALVES:
        books = notebooks_of(half)
        for at, book in enumerate(books):
            prompts = [*_own(_questions(book), most), *_foreign(_questions(books[at - 1]), most)]
            missing = [one for one in book.questions if one.kind in UNANSWERABLE]
            prompts += [Asked(kind=UNKNOWN, text=one.text) for one in _some(missing, most)]
            documents = [Document(key=one.id, content=one.text, occurred_at=one.at) for one in book.notes]
            corpus = Corpus(name=book.author, documents=documents, questions=())
            yield Session(family=f"notes, {half}", corpus=corpus, prompts=prompts)


def locomo(data: Path, most: int) -> Iterator[Session]:
    """Conversations: foreign questions are asked as they are, and with the names of these speakers."""
    talks = conversations(data)
    for at, (corpus, speakers) in enumerate(talks):
        other, names = talks[at - 1]
        foreign = _foreign(other.questions, most)
        again = [Asked(kind=RENAMED, text=renamed(one.text, names, speakers)) for one in foreign]
        prompts = [*_own(corpus.questions, most), *foreign, *again]
        yield Session(family="LoCoMo", corpus=corpus, prompts=prompts)


def long_mem_eval(data: Path, most: int) -> Iterator[Session]:
    """One store for every question: the sessions that answer it. It is asked that and the next question."""
    corpus, unanswerable = longmemeval(data)
    questions = corpus.questions
    for at, question in enumerate(questions[:most]):
        documents = [one for one in corpus.documents if one.thread in question.gold]
        prompts = [*_own([question], 1), *_foreign([questions[at - 1]], 1)]
        if at < len(unanswerable):
            prompts.append(Asked(kind=UNKNOWN, text=unanswerable[at]))
        held = Corpus(name=f"LongMemEval {at}", documents=documents, questions=())
        yield Session(family="LongMemEval", corpus=held, prompts=prompts)


def _questions(book: Notebook) -> list[Question]:
    return [
        Question(text=one.text, gold=dict.fromkeys(one.answers, 1.0), category=one.kind)
        for one in book.questions
        if one.kind not in UNANSWERABLE
    ]


def _own(questions: Sequence[Question], most: int) -> list[Asked]:
    known = [one for one in questions if one.category not in _LEFT_OUT]
    return [Asked(kind=OWN, text=one.text, gold=frozenset(one.gold)) for one in _some(known, most)]


def _foreign(questions: Sequence[Question], most: int) -> list[Asked]:
    return [Asked(kind=FOREIGN, text=one.text) for one in _some(list(questions), most)]


def _some(items: Sequence[One], most: int) -> Sequence[One]:
    return items if len(items) <= most else random.Random(SEED).sample(items, most)

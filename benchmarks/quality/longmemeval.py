"""Samples of LongMemEval (Wu et al. 2025): chats of a user with an assistant, and questions about them.

The samples are of the oracle kind: a question comes with the sessions that answer it and few others, which
alone would be no search. So all sessions of all questions go into one store; gold are a question's own.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.client import Json
from benchmarks.quality.corpus import Corpus, Document, Question, need

ABSTENTION = "abstention"


def longmemeval(data: Path) -> tuple[Corpus, list[str]]:
    """The pooled samples, and the questions that nothing in them answers."""
    documents: dict[str, Document] = {}
    questions: list[Question] = []
    unanswerable: list[str] = []
    for path in sorted(need(data / "longmemeval").glob("*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        for sample in told if isinstance(told, list) else told["data"]:
            held, asked = _official(sample) if "haystack_sessions" in sample else _flat(sample)
            documents |= {document.key: document for document in held}
            if asked.category == ABSTENTION:
                unanswerable.append(asked.text)
            else:
                questions.append(asked)
    corpus = Corpus(name="LongMemEval samples", documents=list(documents.values()), questions=questions)
    return corpus, unanswerable


def _official(sample: Json) -> tuple[list[Document], Question]:
    sessions = zip(
        sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
    )
    documents = [turn for name, at, turns in sessions for turn in _turns(name, at, turns)]
    gold = dict.fromkeys(sample["answer_session_ids"], 1.0)
    return documents, Question(text=sample["question"], gold=gold, category=sample["question_type"])


def _flat(sample: Json) -> tuple[list[Document], Question]:
    """A sample whose sessions are told one after the other; a session is what has the same date."""
    by_date: dict[str, list[Json]] = {}
    for turn in sample["conversation"]:
        by_date.setdefault(turn["date"], []).append(turn)
    threads = {at: f"{sample['id']}/{number}" for number, at in enumerate(by_date)}
    documents = [turn for at, turns in by_date.items() for turn in _turns(threads[at], at, turns)]
    (asked,) = sample["questions"]
    kind = ABSTENTION if asked.get("is_abstention") else sample["question_type"]
    gold = dict.fromkeys(threads.values(), 1.0)
    return documents, Question(text=asked["question"], gold=gold, category=kind)


def _turns(thread: str, at: str, turns: Sequence[Json]) -> Iterator[Document]:
    moment = datetime.strptime(at, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
    for position, turn in enumerate(turns):
        if turn["content"].strip():
            yield Document(
                key=f"{thread}#{position}",
                content=turn["content"],
                thread=thread,
                position=position,
                author=turn["role"],
                occurred_at=moment,
            )

"""PersonaMem (32k): sessions of twelve people with an assistant, in one store. Nothing here was tuned on it.

A question is something that one of them says later, without the name; found ought to be the sessions of that
person. The introduction of each session, which names the person, is left out: with it the name alone would
answer everything.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.client import Json
from benchmarks.quality.corpus import Corpus, Document, Question, need

FOLDER = "personamem_32k"
_TURN = re.compile(r"^\[(USER|ASSISTANT|SYSTEM)\] ", re.MULTILINE)
_NAME = re.compile(r"^User: [^\n]*\n\n")


def personas(data: Path) -> Corpus:
    """All sessions, and the questions with the sessions of the person who asks."""
    folder = need(data / FOLDER)
    sessions = json.loads((folder / "documents.json").read_text(encoding="utf-8"))
    asked = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    return Corpus(
        name="PersonaMem",
        documents=[turn for session in sessions for turn in _turns(session)],
        questions=[
            Question(
                text=_NAME.sub("", one["meta"]["retrieval_query"]),
                gold=dict.fromkeys(one["gold_ids"], 1.0),
                category=one["meta"]["question_type"],
            )
            for one in asked
        ],
    )


def _turns(session: Json) -> Iterator[Document]:
    parts = _TURN.split(session["content"])[1:]
    for position, (speaker, text) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        if speaker != "SYSTEM" and text.strip():
            yield Document(
                key=f"{session['id']}/{position}",
                content=text.strip(),
                thread=session["id"],
                position=position,
                author=speaker.lower(),
                source="PersonaMem",
                occurred_at=_moment(session.get("timestamp")),
            )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None

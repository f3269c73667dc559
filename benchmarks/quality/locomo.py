"""LoCoMo (Maharana et al. 2024): long chats between two friends, and questions with the turns that answer
them."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.client import Json
from benchmarks.quality.corpus import Corpus, Document, Question, need

FILE = "locomo.json"
DEVELOPMENT = frozenset({"conv-26", "conv-30", "conv-41", "conv-42"})
"""The conversations that weights and thresholds were chosen on."""
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D:?0*(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


def conversations(data: Path) -> list[tuple[Corpus, tuple[str, str]]]:
    """Each conversation with its questions, and its two speakers. Questions without usable evidence go."""
    told = json.loads(need(data / FILE).read_text(encoding="utf-8"))
    return [(_corpus(talk), _speakers(talk)) for talk in told]


def pooled(talks: Iterable[Corpus], name: str = "LoCoMo pooled") -> Corpus:
    """All conversations as one."""
    held = list(talks)
    return Corpus(
        name=name,
        documents=[document for talk in held for document in talk.documents],
        questions=[question for talk in held for question in talk.questions],
    )


def heal(evidence: Iterable[str]) -> list[str]:
    """The turn ids in the evidence of a question. Some are joined ("D8:6; D9:17"), some misspelt
    ("D:11:26", "D30:05")."""
    return [f"D{session}:{turn}" for text in evidence for session, turn in _TURN_ID.findall(text)]


def renamed(text: str, names: tuple[str, str], others: tuple[str, str]) -> str:
    """A question as it would be asked about other people."""
    for name, other in zip(names, others, strict=True):
        text = re.sub(rf"\b{re.escape(name)}\b", other, text)
    return text


def _corpus(talk: Json) -> Corpus:
    name = talk["sample_id"]
    documents = list(_turns(name, talk["conversation"]))
    known = {document.key for document in documents}
    questions = []
    for asked in talk["qa"]:
        keys = (f"{name}/{turn}" for turn in heal(asked.get("evidence", [])))
        if gold := {key: 1.0 for key in keys if key in known}:
            category = CATEGORIES[asked["category"]]
            questions.append(Question(text=asked["question"], gold=gold, category=category))
    return Corpus(name=name, documents=documents, questions=questions)


def _turns(name: str, conversation: Json) -> Iterator[Document]:
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        at = conversation.get(f"session_{number}_date_time")
        for position, said in enumerate(conversation[f"session_{number}"]):
            shared = f" [shares {said['blip_caption']}]" if said.get("blip_caption") else ""
            yield Document(
                key=f"{name}/{said['dia_id']}",
                content=f"{said['speaker']}: {said['text']}{shared}",
                thread=f"{name}/session_{number}",
                position=position,
                author=said["speaker"],
                source=name,
                occurred_at=_moment(at) if at else None,
            )


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _speakers(talk: Json) -> tuple[str, str]:
    told = talk["conversation"]
    return told.get("speaker_a", ""), told.get("speaker_b", "")

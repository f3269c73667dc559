"""Sets of documents without threads: Cranfield's abstracts and CoSQA's Python functions."""

import json
import re
from collections import defaultdict
from pathlib import Path

from benchmarks.quality.corpus import Corpus, Document, Question, need

_LEAST_RELEVANT = 4
"""Cranfield's codes run from 1, a complete answer, to this one, of minimum interest."""
_RECORD = re.compile(r"^\.I +(\d+)\s*$", re.MULTILINE)
_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)


def cranfield(data: Path) -> Corpus:
    """1,400 abstracts of aerodynamics and 225 questions with graded relevance. Two abstracts are empty."""
    folder = data / "cranfield"
    texts = _records(need(folder / "cran.all.1400"))
    # The judgements number the questions from 1 on, whatever number the question itself carries.
    asked = [text for _, text in _records(need(folder / "cran.qry"))]
    documents = [Document(key=f"cranfield/{number}", content=text) for number, text in texts if text]
    known = {document.key for document in documents}
    grades: dict[int, dict[str, float]] = defaultdict(dict)
    for line in need(folder / "cranqrel").read_text(encoding="utf-8").splitlines():
        judged = line.split()
        if len(judged) == 3 and (key := f"cranfield/{judged[1]}") in known:  # one judgement has no grade
            grades[int(judged[0])][key] = _LEAST_RELEVANT + 1 - float(judged[2])
    questions = [
        Question(text=text, gold=grades[number]) for number, text in enumerate(asked, 1) if grades[number]
    ]
    return Corpus(name="Cranfield", documents=documents, questions=questions)


def cosqa(data: Path) -> Corpus:
    """6,267 Python functions and 500 questions people asked a search engine, one function each."""
    folder = data / "cosqa"
    codes = json.loads(need(folder / "code_idx_map.json").read_text(encoding="utf-8"))
    asked = json.loads(need(folder / "queries.json").read_text(encoding="utf-8"))
    return Corpus(
        name="CoSQA",
        documents=[Document(key=f"cosqa/{number}", content=code) for code, number in codes.items()],
        questions=[Question(text=one["doc"], gold={f"cosqa/{one['retrieval_idx']}": 1.0}) for one in asked],
    )


def _records(path: Path) -> list[tuple[str, str]]:
    """The number and the text (.W) of each record of an SMART file."""
    _, *parts = _RECORD.split(path.read_text(encoding="utf-8", errors="replace"))
    found = []
    for number, body in zip(parts[::2], parts[1::2], strict=True):
        _, *fields = _FIELD.split(body)
        told = dict(zip(fields[::2], fields[1::2], strict=True))
        found.append((number, told.get("W", "").strip()))
    return found

"""Receipts: every injection has an id and a line in a log, and later evidence of its use is added to it.

The log is in the data directory and can be lost; it holds ids and counts, never a memory's text. A memory
that the transcript shows to be used is exposed once more, which is weak evidence; being shown does not count.
Whether it helped or misled is what was said about it in the same session: feedback, or a correction.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vestige.cognition.text.analyser import terms
from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Memory, utc
from vestige.engine.agent.files import append_line, read_lines, replace_text
from vestige.engine.agent.session_state import OpenReceipt
from vestige.engine.context import Call
from vestige.engine.recall.testing_effect import leave_trace
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import REMARKED

logger = logging.getLogger(__name__)

LOG = "receipts.jsonl"
MAX_LOG_BYTES = 4_000_000
PACK, TAIL, SILENT, USED, MISLED = "pack", "tail", "silent", "used", "misled"
HELPED = (Evidence.PROMOTED, Evidence.USEFUL)
FEEDBACK = (*HELPED, Evidence.DEMOTED)
FEEDBACK_TIME = timedelta(hours=1)
"""How long after the last hook of a session feedback on a memory counts as given in it."""
MOST_FEEDBACK = 50_000
SIGNS, LEAST_SIGNS = 40, 3
"""The most distinctive words of a memory, and how many of them must re-appear."""
CHARS_PER_TOKEN = 4
MOST_PENDING = 30
_PATH = re.compile(r"[\w./~-]{0,120}[\w-]\.[A-Za-z][\w]{0,7}\b")
_CORRECTION = re.compile(
    r"^\W{0,3}(?:no\b|nope\b|wrong\b|that(?:'s| is) (?:wrong|not|outdated|old|no longer)"
    r"|not (?:true|any ?more)\b|actually\b|outdated\b|stop\b|ignore (?:that|this)\b)",
    re.IGNORECASE,
)


def record(call: Call, state: Path, kind: str, **fields: Any) -> None:
    """Add a line to the log; a log that has grown too long keeps its newer half."""
    path = state / LOG
    append_line(path, {"kind": kind, "at": call.engine.now().isoformat(timespec="seconds"), **fields})
    if path.stat().st_size > MAX_LOG_BYTES:
        lines = path.read_bytes().split(b"\n")
        replace_text(path, b"\n".join(lines[len(lines) // 2 :]).decode("utf-8", "replace"))


def open_receipt(receipt: str, memories: Sequence[Memory], prompt: str) -> OpenReceipt:
    """What would show that these memories are used: their words and files that the prompt does not have."""
    known = set(terms(prompt))
    return OpenReceipt(id=receipt, signs={one.id: _signs(one, known, prompt) for one in memories})


def _signs(memory: Memory, known: set[str], prompt: str) -> tuple[str, ...]:
    files = [one for one in dict.fromkeys(_PATH.findall(memory.content)) if one not in prompt]
    words = [word for word in dict.fromkeys(terms(memory.content)) if word not in known and len(word) > 3]
    return (*(f"file:{one}" for one in files[:10]), *words[:SIGNS])


def used_memories(open_receipts: Iterable[OpenReceipt], text: str) -> dict[str, tuple[str, str]]:
    """The memories that a later text uses: their receipt and the reason, by id."""
    words, found = frozenset(terms(text)), dict[str, tuple[str, str]]()
    for receipt in open_receipts:
        for memory_id, signs in receipt.signs.items():
            reason = _reason(memory_id, signs, text, words)
            if reason is not None:
                found[memory_id] = (receipt.id, reason)
    return found


def _reason(memory_id: str, signs: Sequence[str], text: str, words: frozenset[str]) -> str | None:
    if memory_id in text or memory_id[-8:] in text:
        return "id"
    files = [one.removeprefix("file:") for one in signs if one.startswith("file:")]
    if any(one in text for one in files):
        return "file"
    plain = [one for one in signs if not one.startswith("file:")]
    shared = sum(one in words for one in plain)
    return "words" if shared >= LEAST_SIGNS and shared >= len(plain) / 5 else None


def is_correction(prompt: str) -> bool:
    """Whether a prompt rejects what came before it."""
    return _CORRECTION.match(prompt) is not None


def note_use(call: Call, state: Path, session: str, used: Mapping[str, tuple[str, str]]) -> None:
    """Log that memories were used, and expose them once more."""
    for memory_id, (receipt, reason) in used.items():
        record(call, state, USED, session=session, receipt=receipt, memory=memory_id, by=reason)
    try:
        leave_trace(call, call.engine.store.get_many(list(used), access=call.access))
    except VestigeError as exc:
        logger.warning("The memories used were not strengthened: %s", exc.code)


# -- What the log says


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """Counts over the log. `used`, `helped` and `misled` are numbers of memories; the last judgement of one
    counts. `never_used` are memories that were shown for several prompts and never used."""

    sessions: int = 0
    prompts: int = 0
    injections: int = 0
    packs: int = 0
    memories: int = 0
    repeats: int = 0
    used: int = 0
    helped: int = 0
    misled: int = 0
    characters: int = 0
    never_used: tuple[tuple[str, int], ...] = field(default_factory=tuple)

    @property
    def silence(self) -> float | None:
        """The share of prompts that got nothing."""
        return None if not self.prompts else 1 - self.injections / self.prompts

    @property
    def tokens(self) -> int:
        return self.characters // CHARS_PER_TOKEN


def impact(call: Call, state: Path, since: str | None = None) -> Impact:
    """What the injections of all sessions did; `since` is a time in ISO form."""
    lines = [
        one for _, one in read_lines(state / LOG).records if since is None or str(one.get("at")) >= since
    ]
    kinds = Counter(str(one.get("kind")) for one in lines)
    tails = [one for one in lines if one.get("kind") == TAIL]
    shown: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    repeats = 0
    for one in tails:
        for memory_id in _ids(one):
            shown[memory_id] += 1
            key = (str(one.get("session")), memory_id)
            repeats += key in seen
            seen.add(key)
    used = {str(one.get("memory")) for one in lines if one.get("kind") == USED}
    judged = _judgements(call, lines)
    helped = {memory_id for memory_id, good in judged.items() if good}
    used |= helped
    chars = (one.get("chars") for one in lines if one.get("kind") in (TAIL, PACK))
    return Impact(
        sessions=len({str(one.get("session")) for one in lines}),
        prompts=kinds[TAIL] + kinds[SILENT],
        injections=kinds[TAIL],
        packs=kinds[PACK],
        memories=len(shown),
        repeats=repeats,
        used=len(used & shown.keys()),
        helped=len(helped),
        misled=len(judged) - len(helped),
        characters=sum(one for one in chars if isinstance(one, int)),
        never_used=tuple((name, n) for name, n in shown.most_common() if name not in used and n > 1)[:20],
    )


def _judgements(call: Call, lines: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Whether a memory that was shown helped, by its id, for those that were judged: a correction by the
    user after it was shown, or feedback on it in a session that was shown it."""
    said = [
        (at, str(one.get("memory")), False)
        for one in lines
        if one.get("kind") == MISLED and (at := _moment(one)) is not None
    ]
    shown: dict[str, list[tuple[datetime, datetime]]] = {}
    ends: dict[str, datetime] = {}
    for one in reversed(lines):
        at, session = _moment(one), str(one.get("session"))
        if at is not None:
            end = ends.setdefault(session, at)
            for memory_id in _ids(one) if one.get("kind") == TAIL else ():
                shown.setdefault(memory_id, []).append((at, end + FEEDBACK_TIME))
    if shown:
        first = min(at for times in shown.values() for at, _ in times)
        asked = LogQuery(kinds=(REMARKED,), evidence=FEEDBACK, since=first)
        for event in call.engine.store.latest(asked, access=call.access, limit=MOST_FEEDBACK):
            memory_id = event.memory_id or ""
            if any(begin <= event.at <= end for begin, end in shown.get(memory_id, ())):
                said.append((event.at, memory_id, event.payload.get("evidence") in HELPED))
    return {memory_id: good for _, memory_id, good in sorted(said)}


def _moment(line: Mapping[str, Any]) -> datetime | None:
    try:
        return utc(datetime.fromisoformat(str(line.get("at"))))
    except ValueError:
        return None


def _ids(line: Mapping[str, Any]) -> list[str]:
    found = line.get("ids")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []

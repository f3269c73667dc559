"""The volatile tail: what is recalled for one prompt, and only if the search is sure of it.

Silence is the rule. A prompt gets something when the search's own calibrated confidence says that the answer
is among the hits, and never a memory that this session has seen, wrote, or that is only minutes old.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

from vestige.cognition.query.analyse import analyse
from vestige.cognition.text.analyser import terms
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Memory
from vestige.engine.agent.fence import RECALL, Fence
from vestige.engine.agent.pack import memory_line
from vestige.engine.context import Call
from vestige.engine.ingest.orders import order_flags
from vestige.engine.recall.candidates import Mode, RequiredConfidence
from vestige.engine.recall.hits import Hit
from vestige.engine.recall.recall import Recalled, RecallQuery, recall

MOST = 3
"""The most memories for one prompt."""
CANDIDATES = 10
QUERY_CHARS = 1_000
"""A longer prompt is asked by its beginning and its end: what a person wants stands there."""
LEAST_TERMS = 2
"""A prompt with fewer words that mean something ("yes, go on") asks for nothing."""
SURE = RequiredConfidence(matched=0.6, read=0.36)
"""The confidence that a prompt needs; `benchmarks/silence` measures what it lets through."""
UNSHARED = 0.5
"""The confidence that a prompt needs if the pair model has read the best memory and it shares fewer than
`LEAST_TERMS` words with the prompt: what answers "who" or "when" for another subject is taken for an answer
more often then."""
NEAR = 0.8
"""The part of the best score that another memory beside it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """What is recalled for a prompt; `why` says why it is nothing."""

    text: str = ""
    memories: tuple[Memory, ...] = ()
    confidence: float = 0.0
    why: str = ""


def recollect(
    call: Call, prompt: str, *, receipt: str, session_id: str, shown: Collection[str] = ()
) -> Recollection:
    """The memories that a prompt needs and the session has not seen, in their fence; usually none."""
    query = asked_of(prompt)
    asked = set(analyse(query).terms)
    if len(asked) < LEAST_TERMS:
        return Recollection(why="nothing was asked")
    now = call.engine.now()
    found = recall(
        call,
        RecallQuery(
            text=query,
            where=Filter(valid_at=now, include_suppressed=False),
            limit=CANDIDATES,
            mode=Mode.BALANCED,
            asks_time=True,
            min_confidence=SURE,
        ),
    )
    if not _is_sure(found, asked):
        return Recollection(confidence=found.confidence, why="not sure")
    newest = now - timedelta(minutes=call.engine.settings.agent.quiet_minutes)
    best = found.hits[0].score
    near = [hit for hit in found.hits if hit.score >= NEAR * best][:MOST]
    new = [
        hit
        for hit in near
        if hit.record.memory.id not in shown
        and hit.record.memory.session_id != session_id
        and hit.record.memory.created_at <= newest
    ]
    held = order_flags(call, [hit.record.memory for hit in new])
    new = [hit for hit in new if hit.record.memory.id not in held]
    if not new:
        return Recollection(confidence=found.confidence, why="known in this session, too new, or withheld")
    return _fenced(new, receipt, call.engine.settings.agent.tail_chars, found.confidence)


def _is_sure(found: Recalled, asked: set[str]) -> bool:
    """Whether the hits of a search answer what was asked."""
    if not found.hits:
        return False
    shared = asked & set(terms(found.hits[0].record.memory.content))
    return found.required != SURE.read or len(shared) >= LEAST_TERMS or found.confidence >= UNSHARED


def asked_of(prompt: str) -> str:
    """The part of a prompt that is searched for."""
    text = " ".join(prompt.split())
    if len(text) <= QUERY_CHARS:
        return text
    half = QUERY_CHARS // 2
    return f"{text[:half]} {text[-half:]}"


def _passage(hit: Hit, limit: int) -> str:
    """The piece of a long memory that matches best, rather than its beginning."""
    content = hit.record.memory.content
    if len(content) <= limit or not 0 < hit.start < hit.end:
        return ""
    return f"… {content[hit.start : hit.end]}"


def _fenced(new: Sequence[Hit], receipt: str, limit: int, confidence: float) -> Recollection:
    """As many of the memories as fit, each cut to its part of the room."""
    fence = Fence(tag=RECALL, id=receipt)
    room = fence.room(limit)
    lines: list[str] = []
    kept: list[Memory] = []
    for at, hit in enumerate(new):
        memory = hit.record.memory
        part = max(120, room // (len(new) - at) - 1)
        line = memory_line(memory, limit=part, passage=_passage(hit, part))
        if len(line) + 1 > room:
            break
        lines.append(line)
        kept.append(memory)
        room -= len(line) + 1
    if not kept:
        return Recollection(confidence=confidence, why="it does not fit")
    return Recollection(text=fence.around("\n".join(lines)), memories=tuple(kept), confidence=confidence)

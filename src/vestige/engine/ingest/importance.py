"""Importance of a text for this store: judged when it is written, and on request.

A text that is important, or both new and arousing, is encoded more strongly in the transaction that writes
it. A document of the kind `importance` under the memory's id keeps the reasons.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

import numpy as np

from vestige.cognition.english.emotion import FLASHBULB_AROUSAL, READ_CHARS, Affect, affect
from vestige.cognition.gate.decide import CORRECTABLE, Decision, GateInput
from vestige.cognition.prediction.habits import asked_terms
from vestige.cognition.prediction.importance import Judgement, NearbyOutcome, judge, outcome, seen_share
from vestige.cognition.text.analyser import query_terms, searchable, terms
from vestige.core.errors import ModelMismatch
from vestige.core.events import EventScope, ImportanceScored, preview, scopes_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for
from vestige.engine.ingest.batch import Draft, IngestBatch, whole_vector
from vestige.engine.reactions.searches import searches
from vestige.engine.revise import documents_by_id, put_document
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Embedded, RecordEvidence

logger = logging.getLogger(__name__)

KIND = "importance"
NEAREST = 5
"""How many of the nearest memories are read."""
LATELY = 10
"""How many recent queries show what the caller attends to."""
DIGITS = 4

Queries = tuple[tuple[frozenset[str], datetime], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How a memory was judged when it was encoded, and the factor by which its stability grew. Without the
    mechanism `emotion`, valence and category are unknown."""

    composite: float
    novelty: float
    arousal: float
    reward: float
    attention: float
    boost: float
    valence: float | None = None
    category: str | None = None
    flashbulb: bool = False


# -- Importance of a text that is written


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceInputs:
    """What the importance of a batch is judged by: affect, nearby memories, recent queries."""

    batch: IngestBatch
    drafts: Sequence[Draft]
    affects: Sequence[Affect]
    near: Mapping[int, Sequence[Scored]]
    queries: Queries

    def weigh(self, index: int, proposal: GateInput, decision: Decision) -> Judgement:
        """How much a draft matters, given the memories near it."""
        batch, content = self.batch, self.drafts[index].memory.content
        found = batch.rivals.get(index, self.near.get(index))
        scores = [proposal.nearest, decision.similarity, *(one.score for one in found or ())]
        known = [score for score in scores if score is not None]
        return judge(
            self.affects[index],
            _terms(content) if self.queries else frozenset(),
            nearest=max(known, default=None if found is None else 0.0),
            outcomes=_outcomes(found or (), batch.known),
            queries=self.queries,
            now=batch.now,
        )


def importance_inputs(batch: IngestBatch, drafts: Sequence[Draft]) -> ImportanceInputs | None:
    """The inputs for judging the drafts; None if neither mechanism is switched on.

    The gate has found the memories near a plain note. For a draft that the gate did not compare (speech,
    created by force, or no model), they are looked up here if it is arousing enough for a flashbulb memory.
    Turns of a thread are left out: there are too many, and each is near the one before it.
    """
    mechanisms = batch.call.engine.settings.mechanisms
    if not (mechanisms.importance or mechanisms.emotion):
        return None
    affects = [affect(draft.memory.content) for draft in drafts]
    uncompared: dict[str, list[int]] = defaultdict(list)
    for index, (draft, felt) in enumerate(zip(drafts, affects, strict=True)):
        if felt.arousal >= FLASHBULB_AROUSAL and draft.memory.thread is None and index not in batch.rivals:
            uncompared[draft.memory.scope].append(index)
    near: dict[int, Sequence[Scored]] = {}
    for scope, members in uncompared.items():
        where = Filter(scope=scope, scope_only=True, valid_at=batch.now)
        texts = [drafts[index].memory.content for index in members]
        made = [batch.vectors[index] for index in members] if batch.vectors else []
        near |= zip(members, _nearest(batch.call, texts, made, where, batch.known), strict=True)
    queries = _recent_queries(batch.call)
    return ImportanceInputs(batch=batch, drafts=drafts, affects=affects, near=near, queries=queries)


def record_importance(batch: IngestBatch, memory: Memory, judged: Judgement) -> None:
    """Encode a new memory more strongly if it matters, and keep the reasons."""
    mechanisms = batch.call.engine.settings.mechanisms
    gain = judged.gain(importance=mechanisms.importance, emotion=mechanisms.emotion)
    if gain <= 0.0:
        return
    amount = round(gain, DIGITS)
    batch.changes.append(
        RecordEvidence(memory_id=memory.id, evidence=Evidence.IMPORTANT, at=batch.now, amount=amount)
    )
    body = _body(judged, gain, felt=mechanisms.emotion)
    # The evidence above is in the log already; logging the document too would repeat it.
    batch.changes.append(
        put_document(KIND, memory.id, None, batch.now, body=body, scope=memory.scope, cites=(memory.id,))
    )
    batch.events.append(_scored(judged, memory.content, memory.id, batch.now, scopes_of(memory)))


def encodings(call: Call, memory_ids: Sequence[str]) -> dict[str, Encoding]:
    """How these memories were judged when they were encoded, by id; only those that mattered."""
    found = documents_by_id(call, KIND, memory_ids)
    known = [one.name for one in fields(Encoding)]  # a newer version may say more
    return {
        name: Encoding(**{one: document.body[one] for one in known if one in document.body})
        for name, document in found.items()
    }


def _body(judged: Judgement, gain: float, *, felt: bool) -> dict[str, float | str | bool]:
    numbers = {"composite": judged.channels.composite, **judged.channels.values(), "boost": 1.0 + gain}
    body: dict[str, float | str | bool] = {name: round(value, DIGITS) for name, value in numbers.items()}
    if felt:
        feeling = {"category": judged.affect.feeling.value, "flashbulb": judged.flashbulb}
        body |= {"valence": round(judged.affect.valence, DIGITS), **feeling}
    return body


# -- Importance on request


def assess(call: Call, content: str, topics: Sequence[str], where: Filter) -> Judgement:
    """How much a text would matter if it were written now; nothing is stored. Each of `topics`, what the
    caller works on, counts as a query of this moment."""
    now = call.engine.now()
    draft = Memory(id=call.engine.new_id(), content=content, created_at=now, updated_at=now)
    known: dict[str, Record] = {}
    [near] = _nearest(call, [content], vectors_for(call, [draft]), where, known)
    current = tuple((frozenset(asked_terms((topic,))), now) for topic in topics)
    judged = judge(
        affect(content),
        _terms(content),
        nearest=max((one.score for one in near), default=0.0),
        outcomes=_outcomes(near, known),
        queries=(*_recent_queries(call), *current),
        now=now,
    )
    call.engine.events.emit(_scored(judged, content, None, now, (EventScope(scope=call.scope),)))
    return judged


def _recent_queries(call: Call) -> Queries:
    return tuple((frozenset(one.terms), one.at) for one in searches(call, call.scope)[:LATELY])


# -- Nearby memories


def _nearest(
    call: Call, texts: Sequence[str], made: Sequence[Embedded], where: Filter, known: dict[str, Record]
) -> list[list[Scored]]:
    """The memories nearest to each text, by vectors or else by words; `known` gets their records."""
    store, access = call.engine.store, call.access
    if made:
        wholes = np.stack([whole_vector(one) for one in made])
        try:
            found = store.nearest(wholes, made[0].signature, where, access=access, limit=NEAREST)
        except ModelMismatch as exc:
            logger.warning("The model has changed; texts are compared by words only: %s", exc.message)
        else:
            unknown = sorted({one.memory_id for near in found for one in near} - known.keys())
            known |= {record.memory.id: record for record in store.get_many(unknown, access=access)}
            return found
    return [_nearest_by_words(call, text, where, known) for text in texts]


def _nearest_by_words(call: Call, text: str, where: Filter, known: dict[str, Record]) -> list[Scored]:
    store, access = call.engine.store, call.access
    own = _terms(text)
    worded = store.lexical(query_terms(text[:READ_CHARS]), where, access=access, limit=NEAREST)
    records = store.get_many([one.memory_id for one in worded], access=access)
    known |= {record.memory.id: record for record in records}
    return [
        Scored(memory_id=record.memory.id, score=seen_share(own, set(terms(searchable(record.memory)))))
        for record in records
    ]


def _outcomes(near: Sequence[Scored], known: Mapping[str, Record]) -> list[NearbyOutcome]:
    """What became of the memories that are near enough to be about the same thing."""
    return [
        outcome(one.memory_id, one.score, known[one.memory_id].strength)
        for one in near
        if one.score >= CORRECTABLE and one.memory_id in known
    ]


def _terms(text: str) -> frozenset[str]:
    """The search terms of the beginning of a text."""
    return frozenset(query_terms(text[:READ_CHARS]))


def _scored(
    judged: Judgement, content: str, memory_id: str | None, at: datetime, scopes: tuple[EventScope, ...]
) -> ImportanceScored:
    channels = judged.channels
    return ImportanceScored(
        timestamp=at,
        scopes=scopes,
        memory_id=memory_id,
        content_preview=preview(content),
        composite_score=round(channels.composite, DIGITS),
        novelty=round(channels.novelty, DIGITS),
        arousal=round(channels.arousal, DIGITS),
        reward=round(channels.reward, DIGITS),
        attention=round(channels.attention, DIGITS),
    )

"""How much a text matters to this memory: judged when it is written, and on request.

What is important, or both new and rousing, is encoded more strongly, in the transaction that writes it. A
document of the kind `importance` under the memory's id keeps why.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from vestige.cognition.english.emotion import FLASHBULB_AROUSAL, READ_CHARS, Affect, affect
from vestige.cognition.gate.decide import CORRECTABLE, Decision, GateInput
from vestige.cognition.prediction.habits import asked_terms
from vestige.cognition.prediction.importance import Judgement, NearbyOutcome, judge, outcome, seen_share
from vestige.cognition.text.analyser import query_terms, searchable, terms
from vestige.core.documents import Document
from vestige.core.errors import ModelMismatch
from vestige.core.events import EventScope, ImportanceScored, places_of, preview
from vestige.core.models import Evidence, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for
from vestige.engine.ingest.batch import Draft, IngestBatch, whole_vector
from vestige.engine.reactions.searches import searches
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Embedded, Put, RecordEvidence

logger = logging.getLogger(__name__)

KIND = "importance"
NEAREST = 5
"""How many of the nearest memories are looked at."""
LATELY = 10
"""How many of the last questions tell what is attended to."""
DIGITS = 4

Queries = tuple[tuple[frozenset[str], datetime], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """What is kept of how a memory was judged when it was encoded, and by what its stability grew.

    Without the mechanism of emotion nothing is known of how it felt.
    """

    composite: float
    novelty: float
    arousal: float
    reward: float
    attention: float
    boost: float
    valence: float | None = None
    category: str | None = None
    flashbulb: bool = False


# -- when a text is written ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """What the texts of a batch are weighed by: how they feel, and what is near them and was asked lately."""

    batch: IngestBatch
    drafts: Sequence[Draft]
    affects: Sequence[Affect]
    near: Mapping[int, Sequence[Scored]]
    queries: Queries

    def weigh(self, index: int, proposal: GateInput, decision: Decision) -> Judgement:
        """How much a draft matters, as far as the gate or `scales_for` have looked at what is near it."""
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


def scales_for(batch: IngestBatch, drafts: Sequence[Draft]) -> Scales | None:
    """What to weigh the drafts by; None when neither mechanism is at work.

    The gate has looked at what is near a plain note. What it did not look at (something said, or created by
    force, or told while there is no model) is looked at here if it rouses enough for a flashbulb, turns of
    a thread aside: there are too many, and each is near the one before it.
    """
    mechanisms = batch.call.engine.settings.mechanisms
    if not (mechanisms.importance or mechanisms.emotion):
        return None
    affects = [affect(draft.memory.content) for draft in drafts]
    unseen: dict[str, list[int]] = defaultdict(list)
    for index, (draft, felt) in enumerate(zip(drafts, affects, strict=True)):
        if felt.arousal >= FLASHBULB_AROUSAL and draft.memory.thread is None and index not in batch.rivals:
            unseen[draft.memory.scope].append(index)
    near: dict[int, Sequence[Scored]] = {}
    for scope, members in unseen.items():
        where = Filter(scope=scope, scope_only=True, valid_at=batch.now)
        texts = [drafts[index].memory.content for index in members]
        made = [batch.vectors[index] for index in members] if batch.vectors else []
        near |= zip(members, _nearest(batch.call, texts, made, where, batch.known), strict=True)
    return Scales(batch=batch, drafts=drafts, affects=affects, near=near, queries=_asked(batch.call))


def mark(batch: IngestBatch, memory: Memory, judged: Judgement) -> None:
    """Encode a new memory more strongly, if it matters, and keep why."""
    mechanisms = batch.call.engine.settings.mechanisms
    gain = judged.gain(importance=mechanisms.importance, emotion=mechanisms.emotion)
    if gain <= 0.0:
        return
    batch.changes.append(
        RecordEvidence(
            memory_id=memory.id, evidence=Evidence.IMPORTANT, at=batch.now, amount=round(gain, DIGITS)
        )
    )
    document = Document(
        kind=KIND,
        id=memory.id,
        body=_body(judged, gain, felt=mechanisms.emotion),
        scope=memory.scope,
        cites=(memory.id,),
        created_at=batch.now,
        updated_at=batch.now,
    )
    # The remark above is in the log; that its reasons are kept would be told twice.
    batch.changes.append(Put(document=document, logged=False))
    batch.happenings.append(_scored(judged, memory.content, memory.id, batch.now, places_of(memory)))


def encodings(call: Call, memory_ids: Sequence[str]) -> dict[str, Encoding]:
    """How those of these memories that mattered were judged when they were encoded, by id."""
    found = call.engine.store.documents(KIND, access=call.access, ids=memory_ids, limit=len(memory_ids))
    return {document.id: Encoding(**document.body) for document in found}


def _body(judged: Judgement, gain: float, *, felt: bool) -> dict[str, float | str | bool]:
    numbers = {"composite": judged.channels.composite, **judged.channels.values(), "boost": 1.0 + gain}
    body: dict[str, float | str | bool] = {name: round(value, DIGITS) for name, value in numbers.items()}
    if felt:
        feeling = {"category": judged.affect.feeling.value, "flashbulb": judged.flashbulb}
        body |= {"valence": round(judged.affect.valence, DIGITS), **feeling}
    return body


# -- on request ----------------------------------------------------------------------------------


def assess(call: Call, content: str, topics: Sequence[str], where: Filter) -> Judgement:
    """How much a text would matter, were it written now; nothing is stored.

    `topics` is what the caller is busy with: each counts as a question of this moment.
    """
    now = call.engine.now()
    draft = Memory(id=call.engine.new_id(), content=content, created_at=now, updated_at=now)
    known: dict[str, Record] = {}
    [near] = _nearest(call, [content], vectors_for(call, [draft]), where, known)
    busy = tuple((frozenset(asked_terms((topic,))), now) for topic in topics)
    judged = judge(
        affect(content),
        _terms(content),
        nearest=max((one.score for one in near), default=0.0),
        outcomes=_outcomes(near, known),
        queries=(*_asked(call), *busy),
        now=now,
    )
    call.engine.events.emit(_scored(judged, content, None, now, (EventScope(scope=call.scope),)))
    return judged


def _asked(call: Call) -> Queries:
    """What was asked lately where the caller is."""
    return tuple((frozenset(one.terms), one.at) for one in searches(call, call.scope)[:LATELY])


# -- what is near --------------------------------------------------------------------------------


def _nearest(
    call: Call,
    texts: Sequence[str],
    made: Sequence[Embedded],
    where: Filter,
    known: dict[str, Record],
) -> list[list[Scored]]:
    """The memories nearest to each text, by meaning if there are vectors and else by words; `known` gets
    their records."""
    store, access = call.engine.store, call.access
    if made:
        wholes = np.stack([whole_vector(one) for one in made])
        try:
            found = store.nearest(wholes, made[0].signature, where, access=access, limit=NEAREST)
        except ModelMismatch as exc:
            logger.warning("What is known is compared by words only: %s", exc.message)
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
    """What became of the memories that are near enough to be about the same."""
    return [
        outcome(one.memory_id, one.score, known[one.memory_id].strength)
        for one in near
        if one.score >= CORRECTABLE and one.memory_id in known
    ]


def _terms(text: str) -> frozenset[str]:
    """The telling terms of the beginning of a text."""
    return frozenset(query_terms(text[:READ_CHARS]))


def _scored(
    judged: Judgement, content: str, memory_id: str | None, at: datetime, places: tuple[EventScope, ...]
) -> ImportanceScored:
    channels = {name: round(value, DIGITS) for name, value in judged.channels.values().items()}
    return ImportanceScored(
        timestamp=at,
        places=places,
        memory_id=memory_id,
        content_preview=preview(content),
        composite_score=round(judged.channels.composite, DIGITS),
        **channels,
    )

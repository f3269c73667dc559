"""Asking the store: the query becomes terms, literals and a vector; back come the candidates."""

import enum
import logging
from dataclasses import dataclass

import numpy as np

from vestige.cognition.form import Form
from vestige.cognition.maxsim import STOP_SHARE, WRITTEN_STOP_SHARE, Matched, match, weigh
from vestige.cognition.persons import in_second_person
from vestige.cognition.query import Asked, analyse
from vestige.embed.protocol import Encoded, Signature
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.engine.health import why_no_model
from vestige.errors import EmbedderError
from vestige.models import Filter
from vestige.pool import Flags, Pool
from vestige.store.pool import Probe

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How far a search goes: candidates per arm, links followed in a row, memories that may join through
    them, and how sure an answer must be to be given."""

    per_arm: int
    steps: int
    associations: int
    confidence: float


class Mode(enum.StrEnum):
    """How thorough a search is."""

    PRECISE = "precise"
    BALANCED = "balanced"
    EXHAUSTIVE = "exhaustive"

    @property
    def depth(self) -> Depth:
        """What the mode means in numbers."""
        return DEPTHS[self]


DEPTHS = {
    Mode.PRECISE: Depth(per_arm=50, steps=0, associations=0, confidence=0.27),
    Mode.BALANCED: Depth(per_arm=100, steps=1, associations=2, confidence=0.05),
    Mode.EXHAUSTIVE: Depth(per_arm=300, steps=2, associations=5, confidence=0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The candidates, and how well their tokens match (None without token states). `why_not` says why
    meaning took no part, where it did not."""

    pool: Pool
    matched: Matched | None
    encoded: Encoded | None
    why_not: str | None


def probe(call: Call, asked: Asked, where: Filter, depth: Depth, *, least_cosine: float = -1.0) -> Probed:
    """What every arm finds for the query."""
    # In a store of nothing but talks a question is put to their speakers from the start.
    voices = call.engine.store.voices(asked.names, access=call.access)
    put = asked if voices.notes else spoken_to(asked, voices.speakers)
    meaning = _meaning(call, put)
    encoded = meaning.encoded
    pool = call.engine.store.gather(
        Probe(
            terms=asked.terms,
            date_terms=asked.date_terms,
            names=asked.names,
            literals=asked.literals,
            vector=None if encoded is None else encoded.vector,
            signature=meaning.signature,
            where=where,
            per_arm=depth.per_arm,
            least_cosine=least_cosine,
        ),
        access=call.access,
    )
    return Probed(
        pool=pool, matched=_matched(call, put, encoded, pool), encoded=encoded, why_not=meaning.why_not
    )


def spoken_to(asked: Asked, speakers: frozenset[int]) -> Asked:
    """The query as one would ask these speakers."""
    text = in_second_person(asked.text, speakers)
    return asked if text == asked.text else analyse(text)


def _matched(call: Call, asked: Asked, encoded: Encoded | None, pool: Pool) -> Matched | None:
    """How well tokens match. Notes are asked as the query was put, talks as one would ask their speakers."""
    if encoded is None or encoded.tokens is None or pool.sketch is None:
        return None
    noted = pool.traits.form == Form.NOTE
    speakers = asked.names & frozenset(pool.traits.speaker[~noted].tolist())
    if not speakers:
        return _heard(asked, encoded, pool, noted)
    spoken = spoken_to(asked, speakers)
    heard = _heard(spoken, _encoded_again(call, spoken, encoded), pool, noted)
    return _heard(asked, encoded, pool, noted, heard) if noted.any() else heard


def _heard(
    asked: Asked, encoded: Encoded, pool: Pool, noted: Flags, heard: Matched | None = None
) -> Matched | None:
    """The notes' matches for a query, and the talks', unless they have been `heard` otherwise."""
    if encoded.tokens is None or pool.sketch is None or not len(encoded.tokens.spans):
        return heard
    telling = [word for word, modal in zip(asked.words, asked.modal, strict=True) if not modal]
    weights = [
        weigh(encoded.tokens.spans, telling, pool.frequencies, pool.memories, share)
        for share in (WRITTEN_STOP_SHARE, STOP_SHARE)
    ]
    written, spoken = match(encoded.tokens.states, weights, pool.sketch)
    spoken = heard or spoken
    return Matched(
        own=np.where(noted, written.own, spoken.own),
        context=np.where(noted, written.context, spoken.context),
    )


def _encoded_again(call: Call, spoken: Asked, encoded: Encoded) -> Encoded:
    """The query as it is put to speakers; as it was when the model has gone meanwhile."""
    embedder = embedder_or_none(call.engine)
    try:
        return encoded if embedder is None else embedder.encode_query(spoken.text)
    except EmbedderError as exc:
        logger.warning("A talk is asked as if it were notes: %s", exc.message)
        return encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meaning:
    encoded: Encoded | None = None
    signature: Signature | None = None
    why_not: str | None = None


def _meaning(call: Call, asked: Asked) -> _Meaning:
    """The query's vector and token states, or the reason why there are none."""
    engine = call.engine
    embedder = embedder_or_none(engine)
    if embedder is None:
        return _Meaning(why_not=f"{why_no_model(engine.embedders.status())}.")
    held = engine.store.signature()
    if held is None:
        return _Meaning(why_not="No memory has a vector yet.")
    if held != embedder.signature:
        return _Meaning(
            why_not=f"The store holds vectors of {held.name}, the settings name {embedder.signature.name}; "
            "`vestige rebuild --vectors` changes the store over."
        )
    try:
        return _Meaning(encoded=embedder.encode_query(asked.text), signature=held)
    except EmbedderError as exc:
        return _Meaning(why_not=exc.message)

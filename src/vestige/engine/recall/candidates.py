"""Gathering candidates: the query becomes terms, literals and a vector, and the store returns a pool."""

import enum
import logging
from typing import NamedTuple

import numpy as np

from vestige.cognition.query.analyse import Asked, content_words
from vestige.cognition.ranking.maxsim import STOP_SHARE, WRITTEN_STOP_SHARE, Matched, match, weigh
from vestige.cognition.text.form import Form, in_second_person
from vestige.core.candidates import CandidatePool, Sketch
from vestige.core.errors import EmbedderError, ModelMismatch
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter
from vestige.embed.protocol import Encoded, Signature, TokenStates
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.store.contract.search import Probe

logger = logging.getLogger(__name__)


class RequiredConfidence(NamedTuple):
    """The confidence that an answer needs: if its best hits were only matched with the query, and if the pair
    model has read them. The two are estimated by different means and mean different things."""

    matched: float
    read: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How far a search goes: the candidates of each arm, the links followed in a row, the memories that may
    join through them, the confidence that an answer needs, and the share of the best score that a hit
    needs."""

    per_arm: int
    steps: int
    associations: int
    confidence: RequiredConfidence
    share: float = 0.0


class Mode(enum.StrEnum):
    """How thorough a search is."""

    PRECISE = "precise"
    BALANCED = "balanced"
    EXHAUSTIVE = "exhaustive"

    @property
    def depth(self) -> Depth:
        return DEPTHS[self]


DEPTHS = {
    Mode.PRECISE: Depth(
        per_arm=50, steps=0, associations=0, confidence=RequiredConfidence(matched=0.21, read=0.45), share=0.7
    ),
    Mode.BALANCED: Depth(
        per_arm=100, steps=1, associations=2, confidence=RequiredConfidence(matched=0.03, read=0.25)
    ),
    Mode.EXHAUSTIVE: Depth(per_arm=300, steps=2, associations=5, confidence=RequiredConfidence(0.0, 0.0)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The candidates, and how well their tokens match (None without token states). `why_not` says why vectors
    took no part. `unread`: earlier wordings were left out (see `gather_as_known`)."""

    pool: CandidatePool
    matched: Matched | None
    encoded: Encoded | None
    why_not: str | None
    unread: bool = False


def gather(call: Call, asked: Asked, where: Filter, depth: Depth, *, least_cosine: float = -1.0) -> Gathered:
    """The candidates that every arm of the store finds for a query."""
    try:
        return _gather(call, asked, where, depth, least_cosine)
    except ModelMismatch:
        # The store switched to another model while the query was embedded: the second try sees that.
        return _gather(call, asked, where, depth, least_cosine)


def _gather(call: Call, asked: Asked, where: Filter, depth: Depth, least_cosine: float) -> Gathered:
    store = call.engine.store
    # In a store that holds only conversations, the question is put to their speakers ("you") at once.
    voices = store.voices(asked.names, access=call.access)
    text = asked.text if voices.notes else in_second_person(asked.text, voices.speakers)
    meaning = _meaning(call, text)
    encoded = meaning.encoded
    pool = store.gather(
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
    matched = None if encoded is None else _matched(call, text, encoded, asked.names, pool)
    return Gathered(pool=pool, matched=matched, encoded=encoded, why_not=meaning.why_not)


def _matched(
    call: Call, text: str, encoded: Encoded, names: frozenset[int], pool: CandidatePool
) -> Matched | None:
    """How well tokens match: notes with the query as written, conversations with it put to "you"."""
    if encoded.tokens is None or not len(encoded.tokens.spans) or pool.sketch is None:
        return None
    noted = pool.traits.form == Form.NOTE
    speakers = names & frozenset(pool.traits.speaker[~noted].tolist())
    spoken = in_second_person(text, speakers)
    if spoken == text:
        by_note, by_talk = match_text(text, encoded.tokens, pool, pool.sketch, WRITTEN_STOP_SHARE, STOP_SHARE)
    else:
        again = _encoded_again(call, spoken)
        tokens, spoken = (encoded.tokens, text) if again is None else (again, spoken)
        [by_talk] = match_text(spoken, tokens, pool, pool.sketch, STOP_SHARE)
        by_note = by_talk
        if noted.any():
            [by_note] = match_text(text, encoded.tokens, pool, pool.sketch, WRITTEN_STOP_SHARE)
    return by_form(pool, by_note, by_talk)


def by_form(pool: CandidatePool, by_note: Matched, by_talk: Matched) -> Matched:
    """The match of each candidate: `by_note` for notes, `by_talk` for conversations."""
    noted = pool.traits.form == Form.NOTE
    return Matched(
        own=np.where(noted, by_note.own, by_talk.own),
        context=np.where(noted, by_note.context, by_talk.context),
    )


def match_text(
    text: str, tokens: TokenStates, pool: CandidatePool, sketch: Sketch, *stop_shares: float
) -> list[Matched]:
    """How well tokens match a text, once for each share above which a word does not count."""
    words = content_words(text)
    weights = [weigh(tokens.spans, words, pool.frequencies, pool.memories, share) for share in stop_shares]
    return match(tokens.states, weights, sketch)


def _encoded_again(call: Call, text: str) -> TokenStates | None:
    """The tokens of another wording of the query; None if the model is no longer there."""
    embedder = embedder_or_none(call.engine)
    try:
        return None if embedder is None else embedder.encode_query(text).tokens
    except EmbedderError as exc:
        logger.warning(
            "The model failed; conversations are matched with the query as written: %s", exc.message
        )
        return None


NO_MEMORIES = "There are no memories yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meaning:
    encoded: Encoded | None = None
    signature: Signature | None = None
    why_not: str | None = None


def _meaning(call: Call, text: str) -> _Meaning:
    """The query's vector and token states, or the reason why they are missing."""
    engine = call.engine
    embedder = embedder_or_none(engine)
    if embedder is None:
        from vestige.engine.care.health import model_status, why_no_model  # rarely needed

        return _Meaning(why_not=f"{why_no_model(model_status(call))}.")
    held = engine.store.signature()
    if held is None:
        empty = not engine.store.count(Filter(), access=call.access)
        from vestige.engine.care.health import model_status, why_no_model  # rarely needed

        return _Meaning(why_not=NO_MEMORIES if empty else "No memory has a vector yet.")
    if held != embedder.signature:
        return _Meaning(
            why_not=f"The store holds vectors of {held.name}, the settings name {embedder.signature.name}; "
            "`vestige rebuild --vectors` embeds the store again."
        )
    try:
        encoded = embedder.encode_query(text)
    except EmbedderError as exc:
        logger.info(
            "The model failed; request %s is searched by words only: %s", call.request_id, exc.message
        )
        from vestige.engine.care.health import model_status, why_no_model  # rarely needed

        return _Meaning(why_not=exc.message if call.sees_installation else type(exc).__doc__)
    if encoded.tokens is not None and not len(encoded.tokens.spans):
        from vestige.engine.care.health import model_status, why_no_model  # rarely needed

        return _Meaning(why_not="The model knows none of the words of the query.")
    return _Meaning(encoded=encoded, signature=held)

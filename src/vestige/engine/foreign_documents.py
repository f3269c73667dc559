"""Taking in foreign intentions and insights. What was dropped here does not come back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from vestige.cognition.prospective_forms import body_of
from vestige.cognition.text import text_hash
from vestige.documents import Document
from vestige.engine import hygiene
from vestige.engine.insights import INSIGHT
from vestige.engine.intake import REDACTED, Bring, Decided, Intake
from vestige.engine.intentions import KIND, MOST, intentions
from vestige.importers import intentions as foreign
from vestige.importers.brought import BroughtInsight, BroughtIntention
from vestige.importers.memories import KEPT
from vestige.models import Filter
from vestige.store.changes import DROPPED, Put

GONE = "it was dropped here"


class Documents:
    """The intentions and insights of an import."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._open: int | None = None

    @cached_property
    def _dropped(self) -> set[tuple[str, str]]:
        """The documents that have ended here."""
        return {(event.payload["kind"], event.payload["id"]) for event in self._intake.logged(DROPPED)}

    def _there(self, kind: str, ids: Sequence[str]) -> set[str]:
        found = self._intake.store.documents(kind, ids=ids, access=self._intake.access, limit=len(ids))
        return {one.id for one in found}

    # -- intentions ------------------------------------------------------------------------------

    def take_intentions(self, batch: Sequence[BroughtIntention]) -> None:
        """Take in some intentions."""
        there = self._there(KIND, [one.intention.id for one in batch])
        self._intake.take(foreign.INTENTION, batch, lambda one: self._intention(one, there))

    def _intention(self, one: BroughtIntention, there: set[str]) -> Decided:
        intention = one.intention
        if intention.id in there:
            return None
        if (KIND, intention.id) in self._dropped:
            return GONE
        description = hygiene.checked(self._intake.call, intention.description)
        if intention.ended is None and not self._room():
            return f"{MOST:,} intentions wait in the scope {intention.scope} already"
        document = Document(
            kind=KIND,
            id=intention.id,
            body=body_of(replace(intention, description=description)),
            scope=intention.scope,
            created_at=intention.created_at,
            updated_at=intention.updated_at,
        )
        changed = description != intention.description
        return Bring(changes=(Put(document=document),), notes=(REDACTED,) if changed else ())

    def _room(self) -> bool:
        """Whether one more intention may wait, which it then does."""
        if self._open is None:
            scope = self._intake.target.scope
            held = intentions(self._intake.call, Filter(scope=scope))
            self._open = sum(one.ended is None and one.scope == scope for one in held)
        self._open += 1
        return self._open <= MOST

    # -- insights --------------------------------------------------------------------------------

    def take_insights(self, batch: Sequence[BroughtInsight]) -> None:
        """Take in some insights. An insight stands while its sources say what they say now."""
        intake = self._intake
        there = self._there(INSIGHT, [one.id for one in batch])
        sources = sorted({name for one in batch for name in one.sources})
        found = intake.store.get_many(sources, access=intake.access)
        texts = dict.fromkeys(intake.memories if intake.dry_run else (), "")
        texts |= {record.memory.id: text_hash(record.memory) for record in found}
        intake.take(foreign.INSIGHT, batch, lambda one: self._insight(one, there, texts))

    def _insight(self, one: BroughtInsight, there: set[str], texts: Mapping[str, str]) -> Decided:
        if one.id in there:
            return None
        if (INSIGHT, one.id) in self._dropped:
            return GONE
        if not texts.keys() >= set(one.sources):
            return "a memory it comes from is not here"
        told = {"text": one.text, "extra": dict(one.extra)}
        clean = hygiene.screened(self._intake.call, told)
        text, extra = (clean.get(name, told[name]) for name in ("text", "extra"))
        document = Document(
            kind=INSIGHT,
            id=one.id,
            body={
                **({KEPT: extra} if extra else {}),
                "type": one.kind,
                "insight": text,
                "confidence": one.confidence,
                "novelty": one.novelty,
                "texts": [texts[name] for name in one.sources],
            },
            scope=self._intake.target.scope,
            cites=one.sources,
            created_at=one.at,
            updated_at=one.at,
        )
        return Bring(changes=(Put(document=document),), notes=(REDACTED,) if clean else ())

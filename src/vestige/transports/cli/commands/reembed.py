"""`vestige migrate --reembed`, `--rollback` and `--drop-old`: changes the embedding model of the store."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vestige.core.errors import InvalidInput
from vestige.engine.care import reembed
from vestige.engine.care.reembed import ReembedEstimate
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none, store_has_other_model
from vestige.operations.shared.text import count
from vestige.settings.settings import Settings
from vestige.store.contract.answers import ProfileStatus

NAMED_MODELS = ("fastembed", "openai")
"""Providers with more than one model."""


class ModelWork(enum.StrEnum):
    """Work on the model of a store, by its option."""

    REEMBED = "--reembed"
    ROLLBACK = "--rollback"
    DROP_OLD = "--drop-old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The work, and the model given for it."""

    work: ModelWork
    provider: str | None = None
    model: str | None = None

    def flags(self) -> dict[str, str]:
        named = {"embeddings.provider": self.provider, "embeddings.model": self.model}
        return {name: value for name, value in named.items() if value is not None}

    def differs_from(self, settings: Settings) -> bool:
        """Whether a model other than that of the settings is given."""
        here = settings.embeddings
        return (self.provider or here.provider, self.model or here.model) != (here.provider, here.model)


def choose(
    settings: Settings, works: Mapping[ModelWork, bool], provider: str | None, model: str | None
) -> Chosen | None:
    """The work that the options select, or None; InvalidInput if they cannot be combined."""
    asked = [work for work, wanted in works.items() if wanted]
    if len(asked) > 1:
        raise InvalidInput(
            f"{asked[0]} and {asked[1]} cannot be combined.", hint="Run them one after the other."
        )
    work = asked[0] if asked else None
    if (provider or model) and work not in (ModelWork.REEMBED, ModelWork.ROLLBACK):
        given = "--provider" if provider else "--model"
        raise InvalidInput(f"{given} needs {ModelWork.REEMBED} or {ModelWork.ROLLBACK}.")
    from_provider = provider or settings.embeddings.provider
    if model is not None and from_provider not in NAMED_MODELS:
        raise InvalidInput(
            f"The provider {from_provider} has only one model.",
            hint="Choose a provider with several: --provider fastembed or --provider openai.",
        )
    return None if work is None else Chosen(work=work, provider=provider, model=model)


def plan(call: Call, work: ModelWork) -> dict[str, Any]:
    match work:
        case ModelWork.REEMBED:
            planned = _outlook(reembed.estimate(call, reembed.model(call)))
        case ModelWork.ROLLBACK:
            planned = _outlook(reembed.estimate_rollback(call))
        case ModelWork.DROP_OLD:
            planned = _dropped(reembed.former(call))
    return {**planned, **_profiles(call)}


def do(call: Call, chosen: Chosen, settings: Settings) -> dict[str, Any]:
    if chosen.work is ModelWork.DROP_OLD:
        return {**_dropped(reembed.drop_former(call)), **_profiles(call)}
    if chosen.work is ModelWork.ROLLBACK:
        embedded = reembed.roll_back(call)
    else:
        embedded = reembed.switch_model(call, reembed.model(call))
    signature = call.engine.store.signature()
    name = None if signature is None else signature.name
    done = {"embedded": embedded, "model": name, **_profiles(call)}
    if chosen.differs_from(settings) or not _is_in_use(call):
        done["note"] = (
            f"Set the embeddings in vestige.toml to those of {name}: until then other commands search by "
            "words only."
        )
    return done


def _is_in_use(call: Call) -> bool:
    """Whether the model of this command is that of the vectors in use."""
    embedder = embedder_or_none(call.engine)
    return embedder is not None and not store_has_other_model(call.engine, embedder)


def lines_of(done: Mapping[str, Any], *, dry_run: bool) -> list[str]:
    lines = []
    if "pieces" in done:
        lines += _outlook_lines(done)
    if "embedded" in done:
        lines.append(f"{count(done['embedded'], 'memory')} embedded; the store's model is {done['model']}.")
    if "former" in done:
        lines.append(_former_line(done["former"], dry_run=dry_run))
    for one in done["profiles"]:
        having = f"{count(one['memories'], 'memory')} in {count(one['pieces'], 'piece')}"
        lines.append(f"{one['state']}: {one['profile']}, {having}")
    if "note" in done:
        lines.append(f"! {done['note']}")
    return lines


def _outlook(seen: ReembedEstimate) -> dict[str, Any]:
    return {
        "model": seen.signature.name,
        "memories": seen.memories,
        "done": seen.done,
        "pieces": seen.pieces,
        "seconds": None if seen.seconds is None else round(seen.seconds, 1),
        "bytes": seen.size_bytes,
    }


def _dropped(left: ProfileStatus | None) -> dict[str, Any]:
    return {"former": None if left is None else _profile(left)}


def _profiles(call: Call) -> dict[str, Any]:
    return {"profiles": [_profile(one) for one in call.engine.store.profiles()]}


def _profile(seen: ProfileStatus) -> dict[str, Any]:
    return {
        "profile": seen.signature.profile,
        "model": seen.signature.name,
        "dimension": seen.signature.dimension,
        "state": seen.state.value,
        "memories": seen.memories,
        "pieces": seen.pieces,
    }


def _outlook_lines(done: Mapping[str, Any]) -> list[str]:
    have = f"{done['done']:,} of {count(done['memories'], 'memory')} have vectors of {done['model']}"
    if not done["pieces"]:
        return [f"{have}; nothing needs embedding."]
    room = f"{done['bytes'] / 1e6:,.1f} MB"
    return [
        f"{have}; {count(done['pieces'], 'piece')} would be embedded, in about {_duration(done['seconds'])}.",
        f"Their vectors need about {room}, besides the existing ones.",
    ]


def _former_line(left: Mapping[str, Any] | None, *, dry_run: bool) -> str:
    if left is None:
        return "There is no previous model."
    memories = count(left["memories"], "memory")
    if dry_run:
        return f"The vectors of {left['profile']}, the previous model, would be removed: {memories}."
    return f"Removed the vectors of {left['profile']}, the previous model: {memories}."


def _duration(seconds: float) -> str:
    for size, noun in ((3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return count(round(seconds / size), noun)
    return count(max(1, round(seconds)), "second")

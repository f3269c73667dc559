"""Re-embedding a store with another model: an estimate, the switch, and the way back.

reembed    embed beside the vectors in use ──► adopt: one transaction ──► the former ones are kept
roll back  embed what the former model lacks ──► adopt
drop       the former vectors are removed, and with them the way back
"""

from collections.abc import Callable

from vestige.core.errors import InvalidInput, ModelMismatch, ModelUnavailable, StoreBusy
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.embed.background import EmbedderState, EmbedderStatus
from vestige.embed.protocol import Embedder, Signature
from vestige.engine.care.health import why_no_model
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import refresh_centres
from vestige.engine.embedding import embed_memories, embed_missing, embedder_or_none, spans_of
from vestige.store.contract.answers import ProfileState, ProfileStatus
from vestige.store.contract.changes import Embedded

ROUNDS = 20
"""How often re-embedding looks for memories that were written meanwhile before it gives up."""
FEW = 32
"""Memories that are embedded to estimate the time for the others."""
PURPOSE = "re-embedding"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedEstimate:
    """What a switch to a model would take. Of `memories`, `done` have its vectors, the others are cut into
    `pieces`. Time and size are estimated from a few of them, and None if nothing is to be embedded."""

    signature: Signature
    memories: int
    done: int
    pieces: int = 0
    seconds: float | None = None
    size_bytes: int | None = None


def switch_model(call: Call, embedder: Embedder) -> int:
    """Embed every memory that lacks vectors of this model, then switch the store to it; returns how many.
    Until then the present vectors are in use. A run after an interruption continues with those made so
    far."""
    return _switch_model(call, embedder.signature, lambda: embedder, tokens=embedder.token_states)


def roll_back(call: Call) -> int:
    """Put the former model in use again; returns how many memories lacked its vectors. Only if there are any
    must the configured model be the former one."""
    wanted = _required_former(call).signature
    return _switch_model(call, wanted, lambda: model_of(call, wanted))


def drop_former(call: Call) -> ProfileStatus | None:
    """Remove the vectors of the former model; returns its status, or None without a former model."""
    store = call.engine.store
    with store.alone(PURPOSE):
        left = former(call)
        if left is not None:
            store.drop_vectors(left.signature)
    return left


def former(call: Call) -> ProfileStatus | None:
    """The model that was in use before, if its vectors are kept."""
    return _profile(call, lambda one: one.state is ProfileState.FORMER)


def estimate(call: Call, embedder: Embedder) -> ReembedEstimate:
    """What `switch_model` would do."""
    return _estimate(call, embedder.signature, lambda: embedder)


def estimate_rollback(call: Call) -> ReembedEstimate:
    """What `roll_back` would do."""
    wanted = _required_former(call).signature
    return _estimate(call, wanted, lambda: model_of(call, wanted))


def model(call: Call) -> Embedder:
    """The configured model, or ModelUnavailable."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        raise no_model_error(call.engine.embedders.status())
    return embedder


def model_of(call: Call, wanted: Signature) -> Embedder:
    """The configured model, which must have this signature."""
    embedder = model(call)
    if embedder.signature != wanted:
        raise ModelMismatch(
            f"Some memories have no vectors of {wanted.profile}, and the settings name the model "
            f"{embedder.signature.profile}.",
            hint=f"Set the embeddings to {wanted.name}, or name that model with --provider and --model.",
            details={"wanted": wanted.profile, "offered": embedder.signature.profile},
        )
    return embedder


def no_model_error(status: EmbedderStatus) -> ModelUnavailable:
    """The error for vectors that were requested without a model, with what to do."""
    hint = "Run `vestige model install`, then try again."
    if status.state is EmbedderState.OFF:
        hint = "embeddings.provider is off: set it to `local` or another provider, then try again."
    elif status.error is not None and status.error.get("hint"):
        hint = str(status.error["hint"])
    return ModelUnavailable(f"No vectors can be made: {why_no_model(status)}.", hint=hint)


def _switch_model(
    call: Call, signature: Signature, bring: Callable[[], Embedder], *, tokens: bool = False
) -> int:
    store = call.engine.store
    with store.alone(PURPOSE):
        done = 0
        for _ in range(ROUNDS):
            # A round finds the memories that were written or changed since the last one.
            if store.unembedded(signature, limit=1, tokens=tokens):
                done += embed_missing(call, bring(), coming=True)
            if store.adopt(signature):
                refresh_centres(call)  # they are of the former vectors
                return done
    raise StoreBusy(
        "Memories are written faster than they can be embedded, so the model was not changed.",
        hint="Run it again when fewer memories are written; the vectors made so far are kept.",
        details={"embedded": done, "rounds": ROUNDS},
    )


def _required_former(call: Call) -> ProfileStatus:
    found = former(call)
    if found is None:
        raise InvalidInput(
            "There is no former model to go back to.",
            hint="Its vectors are kept until the next change of model, or until they are dropped.",
        )
    return found


def _profile(call: Call, wanted: Callable[[ProfileStatus], bool]) -> ProfileStatus | None:
    return next((one for one in call.engine.store.profiles() if wanted(one)), None)


def _estimate(call: Call, signature: Signature, bring: Callable[[], Embedder]) -> ReembedEstimate:
    store = call.engine.store
    known = _profile(call, lambda one: one.signature == signature)
    memories, done = store.count(ANYTHING, access=EVERYTHING), known.memories if known else 0
    few = store.unembedded(signature, limit=FEW)
    if not few:
        return ReembedEstimate(signature=signature, memories=memories, done=done)
    pieces = max(_pieces(call) - (known.pieces if known else 0), len(few))
    embedder, begun = bring(), call.engine.monotonic()
    made = embed_memories(call, embedder, few)
    share = pieces / sum(len(one.pieces) for one in made)
    return ReembedEstimate(
        signature=signature,
        memories=memories,
        done=done,
        pieces=pieces,
        seconds=share * (call.engine.monotonic() - begun),
        size_bytes=round(share * sum(map(_size, made))),
    )


def _pieces(call: Call) -> int:
    found = 0
    for records in call.engine.store.stream(access=EVERYTHING):
        call.check()
        found += sum(len(spans_of(record.memory)) for record in records)
        call.progress(found, None, f"{found} pieces counted")
    return found


def _size(embedded: Embedded) -> int:
    tokens = [one.tokens for one in embedded.pieces if one.tokens is not None]
    arrays = [one.vector for one in embedded.pieces], [a for one in tokens for a in (one.bits, one.asked)]
    return sum(array.nbytes for some in arrays for array in some)

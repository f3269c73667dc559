"""Vectors of memories by signature: one is in use, one may be coming, one may be the former."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from vestige.cognition.graph.neighbour_lists import NeighbourLists, brought_up, rounded, whole_vectors
from vestige.cognition.text.analyser import text_hash
from vestige.core.errors import InvalidInput
from vestige.core.models import Access
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import (
    NearestMemories,
    ProfileState,
    ProfileStatus,
    other_model,
    still_in_use,
)
from vestige.store.contract.changes import Embedded, Piece, Tokens
from vestige.store.inmemory.state import MemoryEntry, StoreState

Pieces = tuple[Piece, ...]


def profiles(state: StoreState) -> list[ProfileStatus]:
    """The signatures that have vectors, the one in use first."""
    signatures = {
        ProfileState.IN_USE: state.signature,
        ProfileState.COMING: state.coming,
        ProfileState.FORMER: state.former,
    }
    found = []
    for name, one in signatures.items():
        if one is not None:
            counts = [len(pieces_of(state, held, one)) for held in state.held.values()]
            memories, pieces = sum(map(bool, counts)), sum(counts)
            found.append(ProfileStatus(signature=one, state=name, memories=memories, pieces=pieces))
    return found


def pieces_of(state: StoreState, held: MemoryEntry, signature: Signature) -> Pieces:
    return held.pieces if signature == state.signature else held.beside.get(signature, ())


def lacks(state: StoreState, held: MemoryEntry, signature: Signature, *, tokens: bool) -> bool:
    """Whether a memory has no vectors of a signature, or none with tokens where required."""
    pieces = pieces_of(state, held, signature)
    return all(piece.tokens is None for piece in pieces) if tokens else not pieces


def require_signature(state: StoreState, signature: Signature) -> None:
    """Refuse a signature other than the one this store already has."""
    if state.signature is not None and state.signature != signature:
        raise other_model(state.signature, signature)


def take_vectors(state: StoreState, memory_id: str, embedded: Embedded) -> bool:
    """Give a memory its vectors, unless they were made from another text; returns whether it took them."""
    require_signature(state, embedded.signature)
    fitting = _fitting(state, memory_id, embedded)
    if fitting is None:
        return False
    held, pieces = fitting
    state.signature = embedded.signature
    state.held[memory_id] = replace(held, pieces=pieces)
    return True


def stage_vectors(state: StoreState, memory_id: str, embedded: Embedded, signature: Signature) -> bool:
    """Give a memory vectors of a signature that is not in use; returns whether it took them. Unless it is the
    former one, the signature is the coming one from now on."""
    if embedded.signature != signature:
        raise other_model(signature, embedded.signature)
    if signature not in (state.coming, state.former):
        _forget(state, state.coming)
        state.coming = signature
    fitting = _fitting(state, memory_id, embedded)
    if fitting is None:
        return False
    held, pieces = fitting
    state.held[memory_id] = replace(held, beside={**held.beside, signature: pieces})
    return True


def adopt(state: StoreState, signature: Signature) -> bool:
    """Put a signature in use if every memory has vectors of it; whether it is."""
    before = state.signature
    if before != signature:
        if not all(pieces_of(state, held, signature) for held in state.held.values()):
            return False
        state.signature, state.former = signature, before
        _each(state, lambda held: _exchanged(held, signature, before))
    state.coming = None
    _each(state, lambda held: _keeping(held, state.former))
    return True


def drop(state: StoreState, signature: Signature) -> None:
    """Forget the vectors of a signature that is not in use."""
    if signature == state.signature:
        raise still_in_use(signature)
    _forget(state, signature)
    if signature == state.coming:
        state.coming = None
    if signature == state.former:
        state.former = None


def _exchanged(held: MemoryEntry, chosen: Signature, before: Signature | None) -> MemoryEntry:
    beside = held.beside if before is None else {**held.beside, before: held.pieces}
    return replace(held, pieces=held.beside.get(chosen, ()), beside=beside)


def _keeping(held: MemoryEntry, signature: Signature | None) -> MemoryEntry:
    return replace(held, beside={kept: pieces for kept, pieces in held.beside.items() if kept == signature})


def _forget(state: StoreState, signature: Signature | None) -> None:
    def without(held: MemoryEntry) -> MemoryEntry:
        return replace(held, beside={name: one for name, one in held.beside.items() if name != signature})

    _each(state, without)


def _each(state: StoreState, change: Callable[[MemoryEntry], MemoryEntry]) -> None:
    state.held = {memory_id: change(held) for memory_id, held in state.held.items()}


def _fitting(state: StoreState, memory_id: str, embedded: Embedded) -> tuple[MemoryEntry, Pieces] | None:
    """The memory these vectors were made for, if it still has that text, and the vectors."""
    pieces = tuple(_checked(piece, embedded.signature) for piece in embedded.pieces)
    held = state.held.get(memory_id)
    if held is None or not pieces or text_hash(held.memory) != embedded.text_hash:
        return None
    return held, pieces


def _checked(piece: Piece, signature: Signature) -> Piece:
    vector = np.array(piece.vector, dtype=np.float32)
    if vector.shape != (signature.dimension,) or not np.isfinite(vector).all():
        raise InvalidInput(f"A vector of {signature.name} must have {signature.dimension} finite numbers.")
    vector.flags.writeable = False
    if piece.tokens is None:
        return replace(piece, vector=vector)
    bits, asked = piece.tokens.bits.copy(), piece.tokens.asked.copy()
    wide = -(-signature.dimension // 8)
    if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] != wide:
        raise InvalidInput(f"`bits` must have {wide} bytes per token of {signature.dimension} dimensions.")
    if asked.dtype != np.bool_ or asked.shape != bits.shape[:1]:
        raise InvalidInput("`asked` must have one boolean per token.")
    return replace(piece, vector=vector, tokens=Tokens(bits=bits, asked=asked))


def nearest_memories(
    state: StoreState, access: Access, most_products: int | None, check: Callable[[], None]
) -> NearestMemories | None:
    """The lists of neighbours of all accessible memories, made anew; None if that takes more products."""
    held = [one for one in state.within(access) if one.pieces]
    if most_products is not None and len(held) ** 2 > most_products:
        return None
    if not held:
        return NearestMemories.of({}, NeighbourLists.none())
    pieces = np.array([piece.vector for one in held for piece in one.pieces], dtype=np.float32)
    owners = np.array([one.arrival for one in held for _ in one.pieces], dtype=np.int64)
    names = np.array([one.arrival for one in held], dtype=np.int64)
    lists, _ = brought_up(NeighbourLists.none(), names, rounded(whole_vectors(pieces, owners)), check)
    return NearestMemories.of({one.arrival: one.memory.id for one in held}, lists)

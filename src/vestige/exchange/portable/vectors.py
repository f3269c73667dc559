"""The vectors of a memory with their token bits, as text."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vestige.core.errors import InvalidInput
from vestige.embed.protocol import Signature
from vestige.exchange.portable.values import ObjectFields, base64_text, count, items, raw_bytes, text
from vestige.store.contract.changes import Embedded, Piece, Tokens

_SIGNATURE: Mapping[str, Callable[[object], Any]] = {  # Any: the type of the field
    "name": text, "revision": text, "dimension": count, "precision": text, "pooling": text,
    "document_prefix": text, "query_prefix": text,
}  # fmt: skip


def encode_signature(signature: Signature) -> dict[str, object]:
    return {name: getattr(signature, name) for name in _SIGNATURE}


def decode_signature(value: object) -> Signature:
    given = ObjectFields("vectors", value)
    signature = Signature(**{name: given.take(name, read) for name, read in _SIGNATURE.items()})
    given.end()
    if not signature.dimension:
        raise InvalidInput("`dimension` is not a number from 1 on.")
    return signature


def encode_vectors(embedded: Embedded) -> dict[str, object]:
    """The pieces with the hash of the text they were made from."""
    return {"text_hash": embedded.text_hash, "pieces": [_encode_piece(piece) for piece in embedded.pieces]}


def decode_vectors(value: object, signature: Signature) -> Embedded:
    """The vectors, checked to be finite and of the signature's dimension."""
    given = ObjectFields("vectors", value)
    embedded = Embedded(
        signature=signature,
        text_hash=given.take("text_hash", text),
        pieces=tuple(_piece_read(one, signature.dimension) for one in given.take("pieces", items)),
    )
    given.end()
    return embedded


def _encode_piece(piece: Piece) -> dict[str, object]:
    fields: dict[str, object] = {
        "start": piece.start,
        "end": piece.end,
        "vector": base64_text(np.ascontiguousarray(piece.vector, dtype="<f4").tobytes()),
    }
    if piece.tokens is not None:
        fields["bits"] = base64_text(np.ascontiguousarray(piece.tokens.bits).tobytes())
        fields["asked"] = base64_text(np.packbits(piece.tokens.asked).tobytes())
    return fields


def _piece_read(value: object, dimension: int) -> Piece:
    given = ObjectFields("pieces", value)
    vector = np.frombuffer(_of_size(given.take("vector", raw_bytes), 4 * dimension, "vector"), dtype="<f4")
    if not np.isfinite(vector).all():
        raise InvalidInput("`vector` holds a number that is not finite.")
    piece = Piece(
        start=given.take("start", count),
        end=given.take("end", count),
        vector=vector.astype(np.float32),
        tokens=_tokens_read(given, dimension),
    )
    given.end()
    return piece


def _tokens_read(given: ObjectFields, dimension: int) -> Tokens | None:
    bits, asked = given.maybe("bits", raw_bytes, None), given.maybe("asked", raw_bytes, None)
    if bits is None and asked is None:
        return None
    width = -(-dimension // 8)
    if bits is None or asked is None or len(bits) % width:
        raise InvalidInput(f"`bits` must have {width} bytes per token, and `asked` one boolean per token.")
    rows = np.frombuffer(bits, dtype=np.uint8).reshape(-1, width)
    return Tokens(bits=rows.copy(), asked=_flags(asked, len(rows)))


def _flags(packed: bytes, tokens: int) -> NDArray[np.bool_]:
    held = _of_size(packed, -(-tokens // 8), "asked")
    return np.unpackbits(np.frombuffer(held, dtype=np.uint8), count=tokens).astype(np.bool_)


def _of_size(raw: bytes, size: int, name: str) -> bytes:
    if len(raw) != size:
        raise InvalidInput(f"`{name}` has {len(raw)} bytes instead of {size}.")
    return raw

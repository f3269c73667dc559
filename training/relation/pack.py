"""python -m training.relation.pack --model DIR --out DIR: tokenises the examples and packs the base weights.

Writes `data.npz`, the word pieces and labels of each part, and `base.npz`, the encoder's weights in float16.
Training starts from the rounded weights.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from training.relation import pairs
from training.relation.augment import augmented
from training.relation.pairs import LABELS, Example
from training.relation.runs import Arrays
from vestige.embed.minilm.convert import read_weights
from vestige.embed.minilm.weights import TOKENIZER, WEIGHTS

SEED = 11
MAX_NOTE_TOKENS = 46
"""The word pieces of each note that training reads."""
MAX_POSITIONS = 128
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def examples() -> dict[str, list[Example]]:
    """The parts by name: authors' pairs with augmentation, handwritten pairs, development pairs."""
    return {
        "aut": augmented(pairs.authors(), random.Random(SEED)),
        "hand": [Example(pair.first, pair.second, pair.label) for pair in pairs.handwritten()],
        "dev": pairs.development(),
    }


def packed(parts: dict[str, list[Example]], tokenizer: Tokenizer) -> Arrays:
    """The arrays of the parts. For a part `p`: the word pieces of all first notes in one row (`p_a`), the
    length of each (`p_al`), the same of second notes (`p_b`, `p_bl`), and the labels (`p_y`).
    """
    arrays: Arrays = {"special": np.array([tokenizer.token_to_id(token) for token in SPECIAL], np.int32)}
    for part, rows in parts.items():
        for side, texts in (("a", [row.first for row in rows]), ("b", [row.second for row in rows])):
            pieces = _pieces(texts, tokenizer)
            arrays[f"{part}_{side}"] = np.array([piece for row in pieces for piece in row], np.uint16)
            arrays[f"{part}_{side}l"] = np.array([len(row) for row in pieces], np.int16)
        arrays[f"{part}_y"] = np.array([LABELS.index(row.label) for row in rows], np.int8)
    return arrays


def base_weights(file: Path) -> Arrays:
    """The tensors of the encoder that training needs, in float16."""
    weights = {
        name: tensor
        for name, tensor in read_weights(file).items()
        if name.startswith(("embeddings.", "encoder.")) and not name.endswith("position_ids")
    }
    positions = "embeddings.position_embeddings.weight"
    weights[positions] = weights[positions][:MAX_POSITIONS]
    return {name: tensor.astype(np.float16) for name, tensor in weights.items()}


def read_tokenizer(file: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _pieces(texts: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [one.ids[:MAX_NOTE_TOKENS] for one in encoded]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.relation.pack", description="Pack the examples."
    )
    parser.add_argument(
        "--model", type=Path, required=True, help=f"the folder with {WEIGHTS} and {TOKENIZER}"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for data.npz and base.npz")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    parts = examples()
    np.savez_compressed(given.out / "data.npz", **packed(parts, read_tokenizer(given.model / TOKENIZER)))
    np.savez(given.out / "base.npz", **base_weights(given.model / WEIGHTS))
    print(", ".join(f"{len(rows)} examples in {part}" for part, rows in parts.items()))


if __name__ == "__main__":
    main()

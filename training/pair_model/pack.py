"""python -m training.pair_model.pack --model DIR --embedder DIR --out DIR: packs examples and base weights.

Writes `data.npz`, the word pieces and labels of each part, and `base.npz`, the encoder's weights in float16.
Training starts from the rounded weights.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from training.pair_model import pairs
from training.pair_model.augment import augmented
from training.pair_model.notebooks import AnswerExample, Vectors, answers, neighbours, notebooks
from training.pair_model.pairs import LABELS, Example
from training.pair_model.runs import Arrays
from vestige.embed.minilm.convert import read_weights
from vestige.embed.minilm.weights import TOKENIZER, WEIGHTS
from vestige.embed.onnx import OnnxEmbedder

SEED = 11
MAX_NOTE_TOKENS = 46
MAX_ANSWER_TOKENS = (30, 62)
"""The word pieces that training reads: of each note, and of a question and a note that may answer it."""
MAX_POSITIONS = 128
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


def examples(vectors: Vectors) -> dict[str, list[Example]]:
    """The relations by part: authors' pairs, those in plain words, those with twins, general sentences,
    handwritten pairs, neighbours in notebooks, and development pairs."""
    return {
        "aut": augmented(pairs.authors(), random.Random(SEED)),
        "plain": augmented(pairs.authors(pairs.PLAIN), random.Random(SEED)),
        "twins": augmented(pairs.authors(pairs.TWINS), random.Random(SEED)),
        "gen": augmented(pairs.authors(pairs.GENERAL), random.Random(SEED)),
        "hand": [Example(pair.first, pair.second, pair.label) for pair in pairs.handwritten()],
        "near": neighbours(notebooks(), vectors, random.Random(SEED)),
        "dev": pairs.development(),
    }


def packed(parts: dict[str, list[Example]], asked: Sequence[AnswerExample], tokenizer: Tokenizer) -> Arrays:
    """The arrays of the parts. For a part `p`: the word pieces of all first texts in one row (`p_a`), the
    length of each (`p_al`), the same of second texts (`p_b`, `p_bl`), and labels (`p_y`). The part `asked`
    has questions and notes, and 1 where the note answers.
    """
    arrays: Arrays = {"special": np.array([tokenizer.token_to_id(token) for token in SPECIAL], np.int32)}
    for part, rows in parts.items():
        texts = [row.first for row in rows], [row.second for row in rows]
        labels = [LABELS.index(row.label) for row in rows]
        arrays |= _columns(part, texts, labels, (MAX_NOTE_TOKENS, MAX_NOTE_TOKENS), tokenizer)
    texts = [one.question for one in asked], [one.note for one in asked]
    arrays |= _columns("asked", texts, [int(one.answers) for one in asked], MAX_ANSWER_TOKENS, tokenizer)
    return arrays


def _columns(
    part: str,
    texts: tuple[list[str], list[str]],
    labels: list[int],
    most: tuple[int, int],
    tokenizer: Tokenizer,
) -> Arrays:
    columns: Arrays = {f"{part}_y": np.array(labels, np.int8)}
    for side, of_side, limit in zip("ab", texts, most, strict=True):
        encoded = tokenizer.encode_batch(of_side, add_special_tokens=False)
        pieces = [one.ids[:limit] for one in encoded]
        columns[f"{part}_{side}"] = np.array([piece for row in pieces for piece in row], np.uint16)
        columns[f"{part}_{side}l"] = np.array([len(row) for row in pieces], np.int16)
    return columns


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


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.pair_model.pack", description="Pack the examples."
    )
    parser.add_argument(
        "--model", type=Path, required=True, help=f"the folder with {WEIGHTS} and {TOKENIZER}"
    )
    parser.add_argument("--embedder", type=Path, required=True, help="the folder that `vestige model` shows")
    parser.add_argument("--out", type=Path, required=True, help="the folder for data.npz and base.npz")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    vectors = OnnxEmbedder(given.embedder, threads=1)
    parts = examples(vectors)
    asked = answers(notebooks(), vectors, random.Random(SEED))
    arrays = packed(parts, asked, read_tokenizer(given.model / TOKENIZER))
    np.savez_compressed(given.out / "data.npz", **arrays)
    np.savez(given.out / "base.npz", **base_weights(given.model / WEIGHTS))
    counts = {part: len(rows) for part, rows in parts.items()} | {"asked": len(asked)}
    print(", ".join(f"{count} examples in {part}" for part, count in counts.items()))


if __name__ == "__main__":
    main()

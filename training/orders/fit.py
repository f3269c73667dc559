"""python -m training.orders.fit --embedder DIR [--out FILE]: fit the learned judgement of orders.

First each author is left out in turn, and the texts of that author are judged by a model of the others. Then
one model is fitted on all of them.
"""

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.orders.cases import (
    AUTHORS,
    OrderCase,
    cases,
    chat_turns,
    documents,
    earlier,
    functions,
    notebooks,
    ordinary_notes,
    ordinary_texts,
)
from vestige.cognition.evidence.injection.find import plain
from vestige.cognition.evidence.injection.order_model import (
    BUCKETS,
    LIKELY,
    SURE,
    WEIGHTS,
    WORD_SCALE,
    OrderModel,
    passages,
    word_entries,
    word_norm,
)
from vestige.cognition.text.form import cut
from vestige.embed.onnx import OnnxEmbedder

Floats = NDArray[np.float32]
PENALTY = 0.2
"""The weight of the squared weights in the loss."""
ORDINARY, TALK, PASSAGE, FUNCTION = 0.2, 2.0, 1.0, 0.3
"""How much a note of a notebook, a turn of a talk, a passage of a guide or of an ordinary text, and one of a
function count, against 1 for a text of an author."""
MEMORY, STEPS, ENOUGH = 8, 300, 1e-6
"""The quasi-Newton method: the steps it remembers, the most steps, and the least progress of one."""


class FeatureReader:
    """The features of texts: their vectors, and their words as a table."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self._embedder = embedder

    def of(self, texts: Sequence[str]) -> Floats:
        """One row for each text, which is short: its vector, then its words, then 1."""
        first = [text[slice(*cut(text)[0])] for text in texts]
        return _rows(self._embedder.embed_documents(first), [plain(text) for text in first])

    def of_passages(self, texts: Sequence[str]) -> Floats:
        """One row for each passage of each piece, because the worst one decides about a text."""
        pieces = [text[start:end] for text in texts for start, end in cut(text)]
        vectors = self._embedder.embed_documents(pieces)
        found = [
            (vector, one)
            for vector, piece in zip(vectors, pieces, strict=True)
            for one in passages(plain(piece))
        ]
        return _rows(np.array([vector for vector, _ in found]), [one for _, one in found])

    def log_odds(self, model: OrderModel, texts: Sequence[str]) -> Floats:
        """The judgement as it is shipped."""
        found = []
        for text in texts:
            parts = [text[start:end] for start, end in cut(text)]
            vectors = self._embedder.embed_documents(parts)
            found.append(model.log_odds(list(zip(parts, vectors, strict=True))))
        return np.array(found, dtype=np.float32)


def _rows(vectors: Floats, texts: Sequence[str]) -> Floats:
    words = np.zeros((len(texts), BUCKETS + 1), dtype=np.float32)
    words[:, -1] = 1
    for row, text in zip(words, texts, strict=True):
        entries = word_entries(text)
        row[entries] = WORD_SCALE / word_norm(entries)
    return np.hstack([vectors, words])


def fitted(x: Floats, orders: Floats, weights: Floats) -> Floats:
    """The weights of a logistic regression, by limited-memory BFGS."""
    penalty = np.full(x.shape[1], PENALTY, dtype=np.float32)
    penalty[-1] = 1e-4  # the intercept

    def loss(b: Floats) -> tuple[float, Floats]:
        z = x @ b
        value = float((weights * (np.logaddexp(0, z) - orders * z)).sum() + 0.5 * (penalty * b * b).sum())
        return value, x.T @ (weights * (1 / (1 + np.exp(-z)) - orders)) + penalty * b

    b = np.zeros(x.shape[1], dtype=np.float32)
    value, slope = loss(b)
    steps: list[tuple[Floats, Floats]] = []
    for _ in range(STEPS):
        way = _direction(slope, steps)
        size = 1.0
        while (new := loss(b - size * way))[0] > value - 1e-4 * size * float(slope @ way) and size > 1e-6:
            size /= 2
        moved, turned = -size * way, new[1] - slope
        if float(moved @ turned) > 1e-10:
            steps = [*steps, (moved, turned)][-MEMORY:]
        gained = value - new[0]
        b, (value, slope) = b + moved, new
        if gained < ENOUGH * max(1.0, abs(value)):
            break
    return b


def _direction(slope: Floats, steps: Sequence[tuple[Floats, Floats]]) -> Floats:
    way, shares = slope.copy(), []
    for moved, turned in reversed(steps):
        share = float(moved @ way) / float(turned @ moved)
        shares.append(share)
        way -= share * turned
    last = steps[-1] if steps else None
    way *= float(last[0] @ last[1]) / float(last[1] @ last[1]) if last else 1 / float(np.linalg.norm(slope))
    for (moved, turned), share in zip(steps, reversed(shares), strict=True):
        way += moved * (share - float(turned @ way) / float(turned @ moved))
    return way


class Fitter:
    """Fits models on the texts of some authors beside ordinary notes, whose features are made once."""

    def __init__(self, reader: FeatureReader) -> None:
        self._reader = reader
        books = notebooks()
        parts = [
            reader.of([text for _, text in books]),
            reader.of_passages([*documents("development"), *ordinary_texts()]),
            reader.of_passages(functions()),
            reader.of(chat_turns()),
        ]
        self._ordinary = np.vstack(parts)
        weights = [TALK if name.startswith("talks") else ORDINARY for name, _ in books]
        others = [
            np.full(len(rows), weight)
            for rows, weight in zip(parts[1:], (PASSAGE, FUNCTION, TALK), strict=True)
        ]
        self._weights = np.concatenate([weights, *others])

    def model(self, texts: Sequence[OrderCase]) -> OrderModel:
        x = np.vstack([self._reader.of([one.text for one in texts]), self._ordinary])
        orders = np.array([one.order for one in texts] + [False] * len(self._ordinary), dtype=np.float32)
        weights = np.concatenate([np.ones(len(texts)), self._weights]).astype(np.float32)
        b = fitted(x, orders, weights)
        meaning, words = b[: -BUCKETS - 1], b[-BUCKETS - 1 : -1]
        return OrderModel(
            meaning=meaning.astype(np.float16).astype(np.float32),
            words=words.astype(np.float16).astype(np.float32),
            intercept=float(b[-1]),
        )


def _left_out(reader: FeatureReader, fitter: Fitter) -> None:
    """Print how the texts of each author are judged by a model of the others, by author and by kind."""
    texts = {author: cases(author) for author in AUTHORS}
    notes, guides = ordinary_notes("development"), documents("blind")
    found: dict[tuple[bool, str], list[float]] = defaultdict(list)
    print("| left out | threshold | orders found | notes held | ordinary notes held | paragraphs held |")
    print("|---|--:|--:|--:|--:|--:|")
    for author in AUTHORS:
        others = [one for name in AUTHORS if name != author for one in texts[name]]
        model = fitter.model([*others, *earlier("open")])
        said = reader.log_odds(model, [one.text for one in texts[author]])
        orders = np.array([one.order for one in texts[author]])
        ordinary, guided = reader.log_odds(model, notes), reader.log_odds(model, guides)
        for one, odds in zip(texts[author], said, strict=True):
            found[one.order, one.kind.removeprefix("hard_")].append(float(odds))
        for least in (SURE, LIKELY):
            parts = (said[orders], said[~orders], ordinary, guided)
            cells = " | ".join(f"{(part >= least).sum()} of {len(part)}" for part in parts)
            print(f"| {author} | {least} | {cells} |", flush=True)
    print("\n| | kind | sure | likely | texts |\n|---|---|--:|--:|--:|")
    for (order, kind), odds in sorted(found.items(), reverse=True):
        sure, likely = (sum(one >= least for one in odds) for least in (SURE, LIKELY))
        print(f"| {'order' if order else 'note'} | {kind} | {sure} | {likely} | {len(odds)} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.orders.fit", description="Fit the model.")
    parser.add_argument("--embedder", type=Path, required=True, help="the folder of the embedding model")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="write the weights here")
    given = parser.parse_args()
    reader = FeatureReader(OnnxEmbedder(given.embedder, threads=1))
    fitter = Fitter(reader)
    _left_out(reader, fitter)
    model = fitter.model([*(one for name in AUTHORS for one in cases(name)), *earlier("open")])
    np.savez_compressed(
        given.out,
        meaning=model.meaning.astype(np.float16),
        words=model.words.astype(np.float16),
        intercept=np.float32(model.intercept),
    )
    content = given.out.read_bytes()
    print(f"{given.out.name}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()

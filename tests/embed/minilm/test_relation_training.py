"""The training of the relation model: its pairs, the augmentation, and the average of runs.

Training itself needs PyTorch, which is not installed for tests; the constants that must agree with the
package are read from its source.
"""

import ast
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pytest

from benchmarks.notes.cases import HALVES, pairs_of
from testbed.project import PROJECT
from training.relation import pairs
from training.relation.augment import COPIES, WRITTEN_WEIGHT, augmented, consequences, vary
from training.relation.fold import fold
from training.relation.pairs import AUTHORS, HANDWRITTEN, HANDWRITTEN_KINDS, KINDS, LABELS, LabelledPair
from training.relation.runs import Arrays, fold_rank, runs
from vestige.core.relation import RelationScores
from vestige.embed.minilm import relation_graph
from vestige.embed.minilm.weights import MINILM

FOLDER = PROJECT / "training" / "relation"
LOW_RANK = ("enc.L.0.q", "enc.L.0.f")


def every_pair() -> Iterator[LabelledPair]:
    for written in (*pairs.authors(), pairs.handwritten()):
        yield from written


def fingerprint(first: str, second: str) -> str:
    """A digest of the words of a pair, so that a failure shows no text of the benchmark."""
    words = [" ".join(text.lower().split()).rstrip(".") for text in (first, second)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def delta(seed: int, rank: int = 3) -> Arrays:
    rng = np.random.default_rng(seed)
    arrays = {"h1.bias": rng.normal(size=5)}
    for name in LOW_RANK:
        arrays |= {f"{name}.A": rng.normal(size=(rank, 8)), f"{name}.B": rng.normal(size=(12, rank))}
    return {name: array.astype(np.float16) for name, array in arrays.items()}


def product(arrays: Arrays, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    result: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    result = arrays[f"{name}.B"].astype(np.float32) @ arrays[f"{name}.A"].astype(np.float32)
    return result


def test_every_file_of_pairs_is_listed_and_read() -> None:
    assert {path.stem for path in pairs.DATA.iterdir()} == {*AUTHORS, HANDWRITTEN}
    assert [len(AUTHORS), sum(map(len, pairs.authors())), len(pairs.handwritten())] == [17, 5325, 1948]


@pytest.mark.parametrize("kinds", [KINDS, HANDWRITTEN_KINDS], ids=["authors", "handwritten"])
def test_labels_and_kinds_are_the_known_ones(kinds: dict[str, tuple[str, ...]]) -> None:
    written = pairs.handwritten() if kinds is HANDWRITTEN_KINDS else [p for a in pairs.authors() for p in a]
    assert tuple(kinds) == LABELS
    assert {(pair.label, pair.kind) for pair in written} == {
        (label, kind) for label, known in kinds.items() for kind in known
    }


def test_labels_are_in_the_order_of_the_models_probabilities() -> None:
    assert tuple(field.name for field in fields(RelationScores)) == LABELS


def test_no_note_is_empty() -> None:
    assert [pair for pair in every_pair() if not pair.first.strip() or not pair.second.strip()] == []


def test_no_pair_repeats() -> None:
    counted = Counter(fingerprint(pair.first, pair.second) for pair in every_pair())
    assert [key for key, count in counted.items() if count > 1] == []


def benchmark_pairs() -> Iterator[tuple[str, str]]:
    yield from ((pair.first, pair.second) for half in HALVES for pair in pairs_of(half))
    for name in ("ours", "blind"):
        lines = (PROJECT / "benchmarks" / "gate" / f"{name}.jsonl").read_text("utf-8").splitlines()
        yield from ((row["old"], row["new"]) for row in map(json.loads, lines))


def test_no_pair_of_a_benchmark_is_in_the_training_data() -> None:
    benchmark = {fingerprint(first, second) for first, second in benchmark_pairs()}
    trained = {fingerprint(pair.first, pair.second) for pair in every_pair()} | {
        fingerprint(one.first, one.second) for one in augmented(pairs.authors(), random.Random(11))
    }
    assert len(benchmark) > 1700
    assert not benchmark & trained


def test_augmentation_with_one_seed_gives_the_same_examples() -> None:
    authors = pairs.authors()[:2]
    once = augmented(authors, random.Random(11))
    assert augmented(authors, random.Random(11)) == once
    assert augmented(authors, random.Random(12)) != once


def test_the_first_copy_of_the_examples_is_unchanged() -> None:
    (author,) = authors = pairs.authors()[:1]
    examples = augmented(authors, random.Random(11))
    derived = list(consequences(author, random.Random(11)))
    assert len(examples) == COPIES * (WRITTEN_WEIGHT * len(author) + len(derived))
    assert [one.first for one in examples[: len(author)]] == [pair.first for pair in author]


def test_consequences_of_a_group() -> None:
    group = [
        LabelledPair(group="g", first="A", second=second, label=label, kind=kind)
        for second, label, kind in (
            ("a", "same", "terse"),
            ("B", "corrects", "stopped"),
            ("C", "other", "news"),
            ("D", "other", "history"),
        )
    ]
    found = [(one.first, one.second, one.label) for one in consequences(group, random.Random(1))]
    assert found == [
        ("a", "A", "same"),
        ("C", "A", "other"),
        ("a", "B", "corrects"),
        ("a", "C", "other"),
        ("a", "D", "other"),
    ]


def test_a_changed_note_keeps_its_numbers() -> None:
    rng = random.Random(3)
    assert all("8443" in vary("The proxy listens on 8443.", rng) for _ in range(200))


def test_fold_is_the_mean_of_the_products() -> None:
    one, other = delta(1), delta(2)
    folded = fold([one, other], rank=6)
    for name in LOW_RANK:
        mean = (product(one, name) + product(other, name)) / 2
        np.testing.assert_allclose(product(folded, name), mean, atol=0.01)
    np.testing.assert_allclose(folded["h1.bias"], (one["h1.bias"] + other["h1.bias"]) / 2, atol=0.01)


def test_fold_reduces_the_rank_to_the_nearest_product() -> None:
    one, other = delta(1), delta(2)
    folded = fold([one, other], rank=2)
    for name in LOW_RANK:
        values = np.linalg.svd((product(one, name) + product(other, name)) / 2, compute_uv=False)
        mean = (product(one, name) + product(other, name)) / 2
        assert folded[f"{name}.A"].shape == (2, 8)
        assert np.linalg.norm(product(folded, name) - mean) == pytest.approx(
            np.linalg.norm(values[2:]), abs=0.02
        )


def test_the_shipped_file_has_the_rank_of_the_settings() -> None:
    assert MINILM.relation is not None
    with np.load(MINILM.relation.path) as shipped:
        ranks = {shipped[name].shape[0] for name in shipped.files if name.endswith(".A")}
    assert ranks == {fold_rank()}


def test_the_model_card_names_the_shipped_file_and_every_run() -> None:
    card = (FOLDER / "README.md").read_text("utf-8")
    assert MINILM.relation is not None
    assert MINILM.relation.sha256 in card
    assert [name for name in (*runs(), *AUTHORS) if f"`{name}`" not in card] == []


def test_training_and_the_package_scale_the_delta_alike() -> None:
    tree = ast.parse((FOLDER / "train.py").read_text("utf-8"))
    (scale,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCALE"
    )
    assert scale == relation_graph._SCALE

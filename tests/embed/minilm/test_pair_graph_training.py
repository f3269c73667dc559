"""The training of the pair model: pairs and notebooks, the examples made of them, and the average of runs.

Training itself needs PyTorch, which is not installed for tests; the constants that must agree with the
package are read from its source.
"""

import ast
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
import pytest

from benchmarks.notes.cases import SETS, notebooks_of, pairs_of
from testbed.project import PROJECT
from training.pair_model import pairs
from training.pair_model.augment import COPIES, WRITTEN_WEIGHT, augmented, consequences, vary
from training.pair_model.fold import fold
from training.pair_model.notebooks import (
    ANSWER_WEIGHT,
    CLOSE_NOTES,
    FAR_NOTES,
    LATER,
    NEIGHBOUR_COPIES,
    NEIGHBOURS,
    LaterNote,
    Notebook,
    Question,
    answers,
    neighbours,
    notebooks,
)
from training.pair_model.notebooks import COPIES as ANSWER_COPIES
from training.pair_model.pairs import (
    AUTHORS,
    GENERAL,
    GENERAL_KINDS,
    HANDWRITTEN,
    HANDWRITTEN_KINDS,
    KINDS,
    LABELS,
    PLAIN,
    TWINS,
    LabelledPair,
)
from training.pair_model.runs import Arrays, fold_rank, runs
from training.pair_model.thresholds import decisions, outcome, table
from vestige.core.pair_model import RelationScores
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.minilm import pair_graph
from vestige.embed.minilm.weights import MINILM

FOLDER = PROJECT / "training" / "pair_model"
LOW_RANK = ("enc.L.0.q", "enc.L.0.f")
BOOKS = notebooks()
BOOK = Notebook(
    name="harbour",
    notes=(
        "The proxy listens on port 8443.",
        "The ferry to Skye leaves at 9:10.",
        "Nadia keeps the spare keys.",
        "The crane is serviced every March.",
        "Fuel is ordered on Mondays.",
        "The pilot boat is called Marten.",
        "Visitors sign in at gate two.",
        "Radio checks are on channel 12.",
        "The slipway is closed at low tide.",
        "Rope is bought from Hennig.",
    ),
    questions=(
        Question(text="Who keeps the spare keys?", answers=frozenset({2})),
        Question(text="What is the wifi password?", answers=frozenset()),
    ),
    later=(
        LaterNote(text="The proxy listens on port 9000.", about=0, kind="corrects"),
        LaterNote(text="The ferry has a café on the upper deck.", about=1, kind="stands"),
    ),
)


def every_pair() -> Iterator[LabelledPair]:
    for written in (*pairs.authors(AUTHORS + PLAIN + TWINS + GENERAL), pairs.handwritten()):
        yield from written


def fingerprint(*texts: str) -> str:
    """A digest of the words of texts, so that a failure shows no text of the benchmark."""
    words = [" ".join(text.lower().split()).rstrip(".?!") for text in texts]
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
    assert {path.stem for path in pairs.FOLDER.iterdir()} == {*AUTHORS, *PLAIN, *TWINS, *GENERAL, HANDWRITTEN}
    assert [len(AUTHORS), sum(map(len, pairs.authors())), len(pairs.handwritten())] == [32, 9988, 1948]
    assert [len(PLAIN), sum(map(len, pairs.authors(PLAIN)))] == [3, 1113]
    assert [len(TWINS), sum(map(len, pairs.authors(TWINS)))] == [11, 17284]
    assert [len(GENERAL), sum(map(len, pairs.authors(GENERAL)))] == [3, 992]


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (AUTHORS, KINDS),
        (PLAIN, KINDS),
        (TWINS, KINDS),
        (GENERAL, GENERAL_KINDS),
        ([HANDWRITTEN], HANDWRITTEN_KINDS),
    ],
    ids=["authors", "plain", "twins", "general", "handwritten"],
)
def test_labels_and_kinds_are_the_known_ones(names: Sequence[str], kinds: dict[str, tuple[str, ...]]) -> None:
    assert tuple(kinds) == LABELS
    assert {(pair.label, pair.kind) for author in pairs.authors(names) for pair in author} == {
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
    yield from ((pair.first, pair.second) for half in SETS for pair in pairs_of(half))
    for name in ("ours", "blind"):
        lines = (PROJECT / "benchmarks" / "gate" / f"{name}.jsonl").read_text("utf-8").splitlines()
        yield from ((row["old"], row["new"]) for row in map(json.loads, lines))


def test_no_pair_of_a_benchmark_is_in_the_training_data() -> None:
    benchmark = {fingerprint(first, second) for first, second in benchmark_pairs()}
    texts = {(pair.first, pair.second) for pair in every_pair()}
    for names in (AUTHORS, PLAIN, TWINS, GENERAL):
        texts |= {(one.first, one.second) for one in augmented(pairs.authors(names), random.Random(11))}
    trained = {fingerprint(*both) for both in texts}
    assert len(benchmark) > 1700
    assert not benchmark & trained


def test_every_notebook_is_read() -> None:
    assert {path.name for path in (pairs.DATA / "notebooks").iterdir()} == {
        f"{book.name}.jsonl" for book in BOOKS
    }
    notes, questions, later = (
        sum(len(part) for part in parts)
        for parts in zip(*((book.notes, book.questions, book.later) for book in BOOKS), strict=True)
    )
    assert [len(BOOKS), notes, questions, later] == [25, 2390, 2850, 810]
    assert [book.name for book in BOOKS if bool(book.questions) == bool(book.later)] == []
    assert Counter(one.kind for book in BOOKS for one in book.later) == dict(
        zip(LATER, (360, 360, 90), strict=True)
    )


def test_ids_of_a_notebook_are_unique_and_answers_are_its_notes() -> None:
    for book in BOOKS:
        lines = (pairs.DATA / "notebooks" / f"{book.name}.jsonl").read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        ids = [row["id"] for row in rows]
        notes = {row["id"] for row in rows if row["kind"] == "note"}
        asked = {one for row in rows for one in (*row.get("answers", ()), *filter(None, [row.get("of")]))}
        assert len(ids) == len(set(ids)), book.name
        assert asked <= notes, book.name
        assert {row["kind"] for row in rows} <= {"note", "question", *LATER}, book.name
        assert all(row["text"].strip() for row in rows), book.name


def benchmark_texts() -> Iterator[str]:
    for half in SETS:
        yield from (text for pair in pairs_of(half) for text in (pair.first, pair.second))
        for book in notebooks_of(half):
            yield from (note.text for note in book.notes)
            yield from (question.text for question in book.questions)


def test_no_note_of_a_notebook_is_in_the_benchmark_of_notes() -> None:
    benchmark = {fingerprint(text) for text in benchmark_texts()}
    notes = {fingerprint(text) for book in BOOKS for text in (*book.notes, *(one.text for one in book.later))}
    questions = {fingerprint(one.text) for book in BOOKS for one in book.questions}
    assert len(benchmark) > 1200
    assert not benchmark & notes
    # The model card names them: short questions that several authors thought of.
    assert len(benchmark & questions) == 3


def test_neighbours_are_true_notes_of_one_notebook() -> None:
    found = neighbours([BOOK], HashingEmbedder(), random.Random(11))
    own = found[: len(found) // NEIGHBOUR_COPIES]
    assert 0 < len(own) <= NEIGHBOURS * len(BOOK.notes)
    assert {one.label for one in found} == {"other"}
    assert all(one.first != one.second and {one.first, one.second} <= {*BOOK.notes} for one in own)


def test_a_question_meets_its_answers_and_notes_that_do_not_answer() -> None:
    found = answers([BOOK], HashingEmbedder(), random.Random(11))
    own = found[: len(found) // ANSWER_COPIES]
    assert [(one.question, one.note) for one in own if one.answers] == [
        ("Who keeps the spare keys?", "Nadia keeps the spare keys.")
    ] * ANSWER_WEIGHT
    assert Counter(one.question for one in own if not one.answers) == {
        question.text: CLOSE_NOTES + FAR_NOTES for question in BOOK.questions
    }


def test_the_gate_decides_on_later_notes() -> None:
    decided = list(decisions(BOOK, HashingEmbedder()))
    assert [outcome(later, decision) for later, decision in decided] == ["superseded right", "kept beside"]
    assert list(table(decided))[2:] == [
        "| `corrects` | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| `stands` | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |",
        "| `same` | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
    ]


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
    assert MINILM.pair_model is not None
    with np.load(MINILM.pair_model.path) as shipped:
        ranks = {shipped[name].shape[0] for name in shipped.files if name.endswith(".A")}
    assert ranks == {fold_rank()}


def test_the_model_card_names_the_shipped_file_and_every_run() -> None:
    card = (FOLDER / "README.md").read_text("utf-8")
    assert MINILM.pair_model is not None
    assert MINILM.pair_model.sha256 in card
    names = (*runs(), *AUTHORS, *PLAIN, *TWINS, *GENERAL, *(book.name for book in BOOKS))
    assert [name for name in names if f"`{name}`" not in card] == []


def test_the_parts_of_a_batch_are_those_that_are_packed() -> None:
    source = (FOLDER / "pack.py").read_text("utf-8")
    for settings in runs().values():
        assert sum(settings.shares.values()) == pytest.approx(1)
        assert sum(round(settings.batch * share) for share in settings.shares.values()) == settings.batch
        assert [part for part in settings.shares if f'"{part}"' not in source] == []


def test_training_and_the_package_scale_the_delta_alike() -> None:
    tree = ast.parse((FOLDER / "train.py").read_text("utf-8"))
    (scale,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCALE"
    )
    assert scale == pair_graph._SCALE

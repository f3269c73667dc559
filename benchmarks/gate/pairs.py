"""Pairs of texts with what the second is to the first, in one form for every set."""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality.corpus import Missing

HERE = Path(__file__).parent
SETS = ("sick", "mrpc", "stsb", "ours", "blind")
MEMORY_LIKE = ("ours", "blind")
"""The sets made of what agents remember; `blind` was written without sight of the code."""
SAME_SCORE, DIFFERENT_SCORE = 4.5, 2.0
"""STS-B grades 0 to 5: from the first on two sentences say the same, up to the second they do not."""

RESTATED = frozenset({"entailment both ways", "same", "paraphrase"})
CONTRADICTED = frozenset({"contradiction", "negation", "value_change", "correction"})
REPLACED = frozenset({"correction", "value_change", "negation", "temporal_update"})
"""What a new text must be, among memories, to end an old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An old and a new text; `relation` says what the new one is."""

    origin: str
    relation: str
    old: str
    new: str


def load(origin: str, data: Path, most: int) -> list[Pair]:
    """The pairs of a set; of each relation at most so many, drawn with a fixed seed (0: all)."""
    if origin in MEMORY_LIKE:
        return list(_memory_like(origin))
    folder = data / "pairs"
    readers = {"sick": _sick, "mrpc": _mrpc, "stsb": _stsb}
    return _drawn(list(readers[origin](folder)), most)


def _memory_like(origin: str) -> Iterator[Pair]:
    for line in _text(HERE / f"{origin}.jsonl").splitlines():
        told = json.loads(line)
        yield Pair(origin=origin, relation=told["relation"], old=told["old"], new=told["new"])


def _sick(folder: Path) -> Iterator[Pair]:
    lines = _text(folder / "sick.tsv").splitlines()
    for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
        relation = row["entailment_label"].lower()
        if relation == "entailment":
            both = (row["entailment_AB"], row["entailment_BA"]) == ("A_entails_B", "B_entails_A")
            relation = "entailment both ways" if both else "entailment one way"
        yield Pair(origin="sick", relation=relation, old=row["sentence_A"], new=row["sentence_B"])


def _mrpc(folder: Path) -> Iterator[Pair]:
    for part in ("train", "val"):
        for line in _text(folder / f"mrpc-{part}.tsv").split("\n")[1:]:
            fields = line.rstrip("\r").split("\t")
            if len(fields) == 5:
                relation = "same" if fields[0] == "1" else "different"
                yield Pair(origin="mrpc", relation=relation, old=fields[3], new=fields[4])


def _stsb(folder: Path) -> Iterator[Pair]:
    for part in ("train", "dev"):
        for old, new, grade in csv.reader(_text(folder / f"stsb-en-{part}.csv").splitlines()):
            if float(grade) >= SAME_SCORE:
                yield Pair(origin="stsb", relation="same", old=old, new=new)
            elif float(grade) <= DIFFERENT_SCORE:
                yield Pair(origin="stsb", relation="different", old=old, new=new)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise Missing(f"no {path.name}") from None


def _drawn(pairs: Sequence[Pair], most: int) -> list[Pair]:
    if not most:
        return list(pairs)
    shuffled = random.Random(1).sample(pairs, len(pairs))
    taken: dict[str, list[Pair]] = {}
    for pair in shuffled:
        taken.setdefault(pair.relation, []).append(pair)
    return [pair for kind in sorted(taken) for pair in taken[kind][:most]]

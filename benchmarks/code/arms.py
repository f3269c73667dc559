"""What a question is answered with: chance, a search for words, BM25, vectors of files, and Vestige."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.bm25 import STOP_WORDS
from benchmarks.code.index import SectionIndex
from benchmarks.code.measures import DEPTH, Place
from vestige.cognition.code.query import analyse
from vestige.cognition.code.ranking import WEIGHTS, RankingWeights, file_summary, rank
from vestige.cognition.code.tokens import _WORD, parts_of

CHUNK_CHARS = 1500
SHOWN = 4 * DEPTH
"""Sections of which the first ten files are taken."""

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
Arm = Callable[[str], list[Place]]


def chance(index: SectionIndex) -> Arm:
    """Sections at random, the same ones for the same question."""

    def answer(question: str) -> list[Place]:
        count = len(index.sections)
        return [index.place(one) for one in random.Random(question).sample(range(count), min(SHOWN, count))]

    return answer


def grep(files: Mapping[str, str]) -> Arm:
    """Files by the number of lines that contain a word of the question, as ripgrep finds them."""
    lines = {path: [line.lower() for line in text.split("\n")] for path, text in files.items()}

    def answer(question: str) -> list[Place]:
        words = [word for word in question.lower().split() if word not in STOP_WORDS]
        counts = {
            path: sum(any(word in line for word in words) for line in inside)
            for path, inside in lines.items()
        }
        best = sorted((path for path in counts if counts[path]), key=lambda path: (-counts[path], path))
        return [Place(path=path, end_line=len(lines[path])) for path in best[:SHOWN]]

    return answer


def plain_bm25(files: Mapping[str, str]) -> Arm:
    """BM25 over chunks of 1,500 characters, identifiers also split, the words of the path added."""
    chunks = [chunk for path, text in files.items() for chunk in _chunks(path, text)]
    index = _WordIndex([Counter(words) for _, words in chunks])

    def answer(question: str) -> list[Place]:
        scores = index.scores(_words(question))
        return [chunks[place][0] for place in np.argsort(-scores, kind="stable")[:SHOWN] if scores[place] > 0]

    return answer


class _WordIndex:
    """BM25 as Lucene has it, over counted words."""

    def __init__(self, counts: Sequence[Counter[str]]) -> None:
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        self._norms = 1.5 * (0.25 + 0.75 * lengths / max(float(lengths.mean()), 1.0))
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for place, count in enumerate(counts):
            for word, times in count.items():
                self._postings.setdefault(word, []).append((place, times))

    def scores(self, words: Sequence[str]) -> NDArray[np.float64]:
        scores = np.zeros(len(self._norms))
        for word in words:
            held = self._postings.get(word)
            if held:
                places, times = np.array(held).T
                idf = np.log1p((len(scores) - len(held) + 0.5) / (len(held) + 0.5))
                scores[places] += idf * times * 2.5 / (times + self._norms[places])
        return scores


def _chunks(path: str, text: str) -> list[tuple[Place, list[str]]]:
    lines, found, start, size = text.split("\n"), [], 0, 0
    extra = _words(path.replace("/", " "))
    for row, line in enumerate(lines, 1):
        size += len(line) + 1
        if size >= CHUNK_CHARS or row == len(lines):
            words = _words("\n".join(lines[start:row])) + extra
            found.append((Place(path=path, start_line=start + 1, end_line=row), words))
            start, size = row, 0
    return found


def _words(text: str) -> list[str]:
    found = []
    for word in _WORD.findall(text):
        parts = parts_of(word)
        found += [word.lower(), *(parts if len(parts) > 1 else ())]
    return found


class FileVectors:
    """The vectors of the files of an index."""

    def __init__(self, index: SectionIndex, embed: Embed) -> None:
        self.paths = list(dict.fromkeys(index.paths))
        inside: dict[str, list[int]] = {path: [] for path in self.paths}
        for place, path in enumerate(index.paths):
            inside[path].append(place)
        texts = [file_summary(path, [index.sections[one] for one in inside[path]]) for path in self.paths]
        self._vectors = embed(texts)
        self._embed = embed
        self._first = {path: inside[path][0] for path in self.paths}
        self._index = index

    def similarities(self, question: str) -> dict[str, float]:
        scores = self._vectors @ self._embed([question])[0]
        return {path: float(score) for path, score in zip(self.paths, scores, strict=True)}

    def answer(self, question: str) -> list[Place]:
        """Files by their vector alone; the first section of each."""
        near = self.similarities(question)
        best = sorted(near, key=lambda path: (-near[path], path))[:SHOWN]
        return [self._index.place(self._first[path]) for path in best]


def vestige(
    index: SectionIndex, vectors: FileVectors | None = None, weights: RankingWeights = WEIGHTS
) -> Arm:
    """The ranking of Vestige, with or without the vectors of files."""

    def answer(question: str) -> list[Place]:
        query = analyse(question)
        near = vectors.similarities(question) if vectors is not None else {}
        found = rank(query, index.candidates(query, near), index.totals(query), SHOWN, weights)
        return [index.place(one.key) for one in found]

    return answer

"""An index of sections in memory: it supplies to the ranking what the index file of a project does."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.code.measures import Place
from vestige.cognition.code.query import CodeQuery
from vestige.cognition.code.ranking import K1, B, Candidate, IndexTotals, file_words, search_tokens
from vestige.cognition.code.sections import CodeSection, sections_of

POOL = 400
"""Candidates by their words."""
NEAREST = 20
"""Files whose sections are candidates by their vector."""


class SectionIndex:
    """Sections of files, found by term, by definition and by the name of the file."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.sections: list[CodeSection] = []
        self.paths: list[str] = []
        self._lengths: list[int] = []
        self._defined: dict[str, list[int]] = defaultdict(list)
        self._named: dict[str, list[str]] = defaultdict(list)
        self._of_path: dict[str, list[int]] = defaultdict(list)
        self._postings: dict[str, dict[int, int]] = defaultdict(dict)
        for path, text in files.items():
            for section in sections_of(path, text):
                self._add(path, section)
            for word in file_words(path):
                self._named[word].append(path)
        self.lengths = np.array(self._lengths, dtype=np.float64)
        self._mean = float(self.lengths.mean()) if self._lengths else 1.0

    def _add(self, path: str, section: CodeSection) -> None:
        place = len(self.sections)
        tokens = search_tokens(path, section)
        self.sections.append(section)
        self.paths.append(path)
        self._of_path[path].append(place)
        self._lengths.append(len(tokens))
        for name in section.definitions:
            self._defined[name.lower()].append(place)
        for term, times in Counter(tokens).items():
            self._postings[term][place] = times

    def totals(self, query: CodeQuery) -> IndexTotals:
        return IndexTotals(
            sections=len(self.sections),
            mean_length=self._mean,
            frequencies={term: len(self._postings.get(term, ())) for term in query.terms},
        )

    def place(self, key: int) -> Place:
        section = self.sections[key]
        return Place(path=self.paths[key], start_line=section.start_line, end_line=section.end_line)

    def candidates(self, query: CodeQuery, near: Mapping[str, float] | None = None) -> list[Candidate]:
        """The sections that may answer a question; `near` are the similarities of files, where known."""
        near = near or {}
        found = {int(place) for place in np.argsort(-self.scores(query), kind="stable")[:POOL]}
        for name in query.symbols:
            found.update(self._defined.get(name, ()))
        for word in query.words:
            for path in self._named.get(word, ()):
                found.update(self._of_path[path])
        for path in sorted(near, key=lambda path: -near[path])[:NEAREST]:
            found.update(self._of_path[path])
        return [self._candidate(place, query.terms, near) for place in sorted(found)]

    def scores(self, query: CodeQuery) -> NDArray[np.float64]:
        """BM25 of every section."""
        scores = np.zeros(len(self.sections))
        norms = K1 * (1 - B + B * self.lengths / self._mean)
        for term, weight in query.terms.items():
            held = self._postings.get(term)
            if held:
                places = np.fromiter(held, dtype=np.int64)
                times = np.fromiter(held.values(), dtype=np.float64)
                idf = np.log1p((len(scores) - len(held) + 0.5) / (len(held) + 0.5))
                scores[places] += weight * idf * times * (K1 + 1) / (times + norms[places])
        return scores

    def _candidate(self, place: int, terms: Iterable[str], near: Mapping[str, float]) -> Candidate:
        counts = {
            term: self._postings[term][place] for term in terms if place in self._postings.get(term, ())
        }
        return Candidate(
            key=place,
            path=self.paths[place],
            definitions=self.sections[place].definitions,
            counts=counts,
            length=self._lengths[place],
            similarity=near.get(self.paths[place]),
            symbol_path=self.sections[place].symbol_path,
            signature=self.sections[place].signature,
        )

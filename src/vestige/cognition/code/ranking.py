"""The ranking of sections for a question. Pure: an index supplies the candidates, this module orders them.

What an index has to keep, and to supply for a question (`query = analyse(text)`):

- For each section: a key, the path, its definitions, and as its length `len(search_tokens(path, section))`.
- For each term the sections whose `search_tokens` contain it, with how often (a table of postings, rows of
  term, section, times). From it come `Candidate.counts` and `IndexTotals.frequencies`.
- As totals: the number of sections and their mean length (`IndexTotals`).

The candidates are the sections that contain a term of `query.terms`, those that define one of `query.symbols`
(compared in lower case), and those of files whose `file_words` contain one of `query.words` or that
`query.paths` names. Fewer may be supplied: the best few hundred by `bm25` give the same first ten in nearly
every case. `counts` need only the terms of the query. `similarity` is the cosine of the question's vector and
that of `file_summary` of the section's file, else None: one vector for a file is enough to rank files, and
takes a twentieth of the time of one for each section.

Files are ranked first, then their sections: the best section of a file has the score of the file, further
ones follow at a distance. The weights are from `python -m benchmarks.code`, where other repositories than
those they were chosen on confirm them (ADR 0055).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath

from vestige.cognition.code.query import CodeQuery
from vestige.cognition.code.roles import penalty
from vestige.cognition.code.sections import CodeSection
from vestige.cognition.code.tokens import code_stem, parts_of, tokens_of, tokens_of_word
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

_NAME = lazy_pattern(r"\w+")
K1 = 1.5
B = 0.75
STEM_TIMES = 2
DIRECTORIES = 3
"""A section is found by its file's name, which counts twice, and by the names of this many folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A section as the index knows it. `key` is the index's own name of it. `symbol_path` and `signature` say
    what its symbol belongs to."""

    key: int
    path: str
    definitions: tuple[str, ...]
    counts: Mapping[str, int]
    length: int
    similarity: float | None = None
    symbol_path: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTotals:
    """Totals of an index: sections, their mean length, and for each term the sections that contain it."""

    sections: int
    mean_length: float
    frequencies: Mapping[str, int]

    def rarity(self, term: str) -> float:
        """The inverse document frequency of a term."""
        held = self.frequencies.get(term, 0)
        return math.log1p((self.sections - held + 0.5) / (held + 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSection:
    """A candidate with its score, relative to the best possible one of this question; more is better."""

    key: int
    path: str
    score: float


def search_tokens(path: str, section: CodeSection) -> list[str]:
    """The words by which a section is found: its text, the name of its file and of the folders above."""
    return [*tokens_of(section.text), *_path_tokens(path)]


@lru_cache(maxsize=64)
def _path_tokens(path: str) -> tuple[str, ...]:
    pure = PurePosixPath(path)
    folders = " ".join(pure.parts[:-1][-DIRECTORIES:])
    return (*(tokens_of(pure.stem) * STEM_TIMES), *tokens_of(folders))


def file_words(path: str) -> frozenset[str]:
    """The stems of the words in the name of a file and of its folder."""
    stem_words, folder_words = _name_words(path)
    return frozenset(stem_words) | frozenset(folder_words)


@lru_cache(maxsize=65_536)
def _name_words(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pure = PurePosixPath(path)
    return tuple(map(code_stem, parts_of(pure.stem))), tuple(map(code_stem, parts_of(pure.parent.name)))


def file_summary(path: str, sections: Sequence[CodeSection]) -> str:
    """What the vector of a file is of: its path, how it begins, and the signatures in it."""
    signatures = dict.fromkeys(section.signature[:80] for section in sections if section.signature)
    head = sections[0].text[:500] if sections else ""
    return f"{path.replace('/', ' ')}\n{head}\n{' '.join(signatures)[:800]}"


def bm25(query: CodeQuery, candidate: Candidate, corpus: IndexTotals) -> float:
    """The score of a section by the words of a question."""
    norm = K1 * (1 - B + B * candidate.length / max(corpus.mean_length, 1.0))
    score = 0.0
    for term, times in candidate.counts.items():
        weight = query.terms.get(term)
        if weight and times:
            score += weight * corpus.rarity(term) * times * (K1 + 1) / (times + norm)
    return score


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """What each sign of a good answer weighs, where the words of a file's best section weigh 1."""

    total: float = 0.5
    """All hits of a file together, …"""
    report_total: float = 1.0
    """… and for a report."""
    name: float = 0.7
    """The words of a question that are in the name of the file or of its folder."""
    cover: float = 0.5
    """The words of a file's name that are in the question."""
    folder: float = 0.5
    """The words that are in the name of the folder only, by how rare they are."""
    defined_words: float = 0.2
    """The words of a question in the names that a file defines."""
    similarity: float = 0.3
    """The vector of the file."""
    definition: float = 3.0
    """The definition of the symbol that is asked for, …"""
    same_name: float = 1.5
    """… and more in a file of the same name."""
    qualified: float = 2.0
    """The definition that is in what the question names with it, as `send` in `Adapter.send`, …"""
    mentioned_qualified: float = 1.0
    """… and in a sentence."""
    mentioned: float = 0.3
    """The definition of a symbol in a sentence, …"""
    mentioned_same_name: float = 0.75
    """… and more in a file of the same name."""
    named_path: float = 2.0
    """A file that the question names with its folder, …"""
    named_file: float = 0.5
    """… and by its bare name, which other files have too."""
    report_name: float = 0.25
    """The factor of names for a report, which has many words."""
    saturation: float = 0.5
    """The factor of each further section of a file, and of each further copy of a section."""
    generated: float = 0.3
    """The factor of a file that a program wrote."""


WEIGHTS = RankingWeights()
LEAST_COPIED = 3
"""With this many words of a question, as often each, a section is a copy of one with the same name in a file
of the same name."""
RICH = 5
"""The definitions from which on the file of a package is more than a list."""


def rank(
    query: CodeQuery,
    candidates: Sequence[Candidate],
    corpus: IndexTotals,
    limit: int = 10,
    weights: RankingWeights = WEIGHTS,
    generated: Set[str] = frozenset(),
) -> list[RankedSection]:
    """The best sections, best first; at equal scores by path and key. `generated` are the paths of files that
    say of themselves that a program wrote them."""
    words = [bm25(query, one, corpus) for one in candidates]
    best = max(words, default=0.0) or 1.0
    own = [
        score / best + _definition(query, one, weights) for score, one in zip(words, candidates, strict=True)
    ]
    places: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(candidates):
        places[one.path].append(place)
    files = _file_scores(query, candidates, corpus, weights, words)
    said = _singular(query.text)
    found = []
    for path, inside in places.items():
        order = sorted(inside, key=lambda place: (-own[place], candidates[place].key))
        first = own[order[0]]
        defined = sum(len(candidates[place].definitions) for place in inside)
        named = _singular(PurePosixPath(path).stem)
        factor = penalty(
            path,
            is_rich=defined >= RICH,
            is_named=not named.isdisjoint(said),
            is_named_whole=named <= said,
            of_history=query.of_history,
        ) * (weights.generated if path in generated else 1.0)
        score = (first + files[path]) * factor
        for further, place in enumerate(order):
            share = own[place] / first if first else 1.0
            found.append((-score * share * weights.saturation**further, path, candidates[place].key))
    found.sort()
    ranked = [RankedSection(key=key, path=path, score=-score) for score, path, key in found]
    return _without_copies(ranked, {one.key: one for one in candidates}, weights)[:limit]


def _without_copies(
    ranked: Sequence[RankedSection], candidates: Mapping[int, Candidate], weights: RankingWeights
) -> list[RankedSection]:
    """The same sections, with copies in other folders further down: pages of many versions, vendored code."""
    seen: dict[tuple[object, ...], tuple[str, int]] = {}
    kept = []
    for one in ranked:
        candidate = candidates[one.key]
        mark = (PurePosixPath(one.path).name, candidate.symbol_path, frozenset(candidate.counts.items()))
        first, times = seen.setdefault(mark, (one.path, 0))
        if len(candidate.counts) >= LEAST_COPIED and first != one.path:
            times += 1
            seen[mark] = (first, times)
            one = replace(one, score=one.score * weights.saturation**times)
        kept.append(one)
    return sorted(kept, key=lambda one: (-one.score, one.path, one.key))


def _file_scores(
    query: CodeQuery,
    candidates: Sequence[Candidate],
    corpus: IndexTotals,
    weights: RankingWeights,
    words: Sequence[float],
) -> dict[str, float]:
    """What each file gains beside the words of its best section."""
    sums: dict[str, float] = defaultdict(float)
    similarities: dict[str, float] = defaultdict(float)
    for score, one in zip(words, candidates, strict=True):
        sums[one.path] += score
        similarities[one.path] = max(similarities[one.path], one.similarity or 0.0)
    most = max(sums.values(), default=0.0) or 1.0
    defined = {} if query.is_symbol else _defined_words(query, candidates, corpus)
    share = weights.report_total if query.is_report else weights.total
    return {
        path: share * total / most
        + _name(query, path, corpus, weights)
        + weights.defined_words * defined.get(path, 0.0)
        + weights.similarity * similarities[path]
        for path, total in sums.items()
    }


def _definition(query: CodeQuery, one: Candidate, weights: RankingWeights) -> float:
    """What a section gains by the definition of a symbol that the question names."""
    held = [name for name in one.definitions if name.lower() in query.symbols]
    if not held:
        return 0.0
    weight = max(query.symbols[name.lower()] for name in held)
    stem_word = "".join(parts_of(PurePosixPath(one.path).stem))
    same = any(stem_word == "".join(parts_of(name)) for name in held)
    inside = _belongs(query, one)
    if query.is_symbol:
        return weight * (weights.definition + weights.same_name * same + weights.qualified * inside)
    return weight * (
        weights.mentioned + weights.mentioned_same_name * same + weights.mentioned_qualified * inside
    )


def _belongs(query: CodeQuery, one: Candidate) -> float:
    """Whether a section defines a symbol in what the question names with it: 1 for a member of that class or
    the like, a half where only its signature or its path says so."""
    if not query.qualified:
        return 0.0
    names = {name.lower() for name in one.definitions}
    around = names | set(one.symbol_path.lower().split("."))
    best = 0.0
    for *owners, name in query.qualified:
        if name in names and owners[-1] in around:
            return 1.0
        if name in names and owners[-1] in {*_words_of(one.signature), *_words_of(one.path)}:
            best = 0.5
    return best


def _singular(text: str) -> set[str]:
    """The words of a text, not stemmed: `authorization` has the stem of `authors`."""
    return {word.rstrip("s") for word in _words_of(text)}


def _words_of(text: str) -> list[str]:
    return _NAME.findall(text.lower())


def _name(query: CodeQuery, path: str, corpus: IndexTotals, weights: RankingWeights) -> float:
    """What a file gains by its name."""
    gained = max((_named(named, path, weights) for named in query.paths), default=0.0)
    if query.is_symbol or not query.words:
        return gained
    name, folder = _name_words(path)
    hits = [word for word in query.words if any(_alike(word, other) for other in name)]
    near = [word for word in query.words if word not in hits and any(_alike(word, other) for other in folder)]
    if not hits and not near:
        return gained
    cover = sum(any(_alike(word, other) for word in query.words) for other in name) / max(len(name), 1)
    rare = {word: corpus.rarity(word) for word in query.words}
    folders = sum(rare[word] for word in near) / (sum(rare.values()) or 1.0)
    both = (len(hits) + len(near)) / len(query.words)
    factor = weights.report_name if query.is_report else 1.0
    return gained + factor * (weights.name * both + weights.cover * cover + weights.folder * folders)


def _alike(word: str, other: str) -> bool:
    """Whether words are equal, or one begins with the other."""
    return word == other or (
        min(len(word), len(other)) >= 3 and (word.startswith(other) or other.startswith(word))
    )


def _named(named: str, path: str, weights: RankingWeights) -> float:
    """What a file gains from a question that says `named`: the end of its path or of its module."""
    module = path.rpartition(".")[0]
    package = module.removesuffix("/__init__") if module.endswith("/__init__") else module
    if not any(f"/{one}".endswith(f"/{named}") for one in (path, module, package)):
        return 0.0
    return weights.named_path if "/" in named else weights.named_file


def _defined_words(
    query: CodeQuery, candidates: Sequence[Candidate], corpus: IndexTotals
) -> dict[str, float]:
    """For each file, how much of the question is in the names that it defines; 1 for the most."""
    wanted = {word: corpus.rarity(word) for word in query.words}
    times: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in candidates:
        for name in one.definitions:
            for word in set(tokens_of_word(name)):
                if word in wanted:
                    times[one.path][word] += 1
    scores = {
        path: sum(wanted[word] * count * (K1 + 1) / (count + K1) for word, count in held.items())
        for path, held in times.items()
    }
    most = max(scores.values(), default=0.0) or 1.0
    return {path: score / most for path, score in scores.items()}

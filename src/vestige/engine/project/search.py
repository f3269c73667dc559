"""Searching the code of a project: candidates from the index, ranked, and checked against the files.

Lines are always taken from the file. If it changed since it was indexed, its sections are made again on the
spot, and take part in the ranking instead of the old ones.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from vestige.cognition.code.formats import markdown_headings
from vestige.cognition.code.languages import is_code
from vestige.cognition.code.query import CodeQuery, analyse
from vestige.cognition.code.ranking import Candidate, IndexTotals, rank
from vestige.cognition.code.roles import is_generated
from vestige.cognition.code.sections import lines_of
from vestige.cognition.code.tokens import tokens_of
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.context import Call
from vestige.engine.project.extraction import extracted
from vestige.engine.project.files.source_file import SourceFile, read_source
from vestige.engine.project.place import Project
from vestige.store.contract.code_index import (
    CodeIndex,
    FoundSection,
    GatheredSections,
    SectionQuestion,
    SectionWords,
)

CANDIDATES = 300
Weights = dict[str, float]
"""The weight of each word of a question."""
_ALIKE = ("function", "method", "heading")
"""Kinds whose small neighbours in one section are of the same kind."""
ROUNDS = 4
"""How often files that changed are read again and ranked anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeHit:
    """Lines of a file as they are now. `reread` is whether they changed since they were indexed. `matched` is
    the share of the question's words, by their weight, that the lines and the path have."""

    path: str
    start_line: int
    end_line: int
    kind: str
    name: str
    symbol_path: str
    signature: str
    hash: str
    text: str
    score: float
    matched: float
    reread: bool = False
    definitions: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.path}:{self.start_line}-{self.end_line}"


@dataclass(slots=True, kw_only=True)
class FileTexts:
    """The files of one answer, each read once."""

    project: Project
    hashes: dict[str, list[str]] = field(default_factory=dict)
    """The hashes of the lines of files, as far as citations asked for them."""
    _read: dict[str, SourceFile | None] = field(default_factory=dict)

    def source(self, path: str) -> SourceFile | None:
        if path not in self._read:
            self._read[path] = read_source(self.project.root, path)
        return self._read[path]

    def lines(self, path: str, start: int, end: int) -> str:
        """These lines, counted from 1, without secrets."""
        source = self.source(path)
        return "" if source is None else "".join(lines_of(source.text)[start - 1 : end])


def search_code(
    call: Call,
    project: Project,
    index: CodeIndex,
    question: str,
    *,
    limit: int,
    texts: FileTexts | None = None,
) -> list[CodeHit]:
    """The best sections for a question, best first."""
    query = analyse(question)
    texts = texts or FileTexts(project=project)
    gathered = index.gather(
        SectionQuestion(
            terms=sorted(query.terms, key=lambda term: (-query.terms[term], term)),
            symbols=list(query.symbols),
            file_words=query.words,
            paths=query.paths,
        ),
        limit=CANDIDATES,
    )
    corpus = IndexTotals(
        sections=gathered.sections, mean_length=gathered.mean_length, frequencies=gathered.frequencies
    )
    pool = _Pool(query, index, texts, gathered)
    for _ in range(ROUNDS):
        call.check()
        ranked = rank(query, pool.candidates(), corpus, limit, generated=pool.generated)
        if not pool.reread(list(dict.fromkeys(one.path for one in ranked))):
            break
    weights = _weights(query, corpus)
    return [
        _hit(pool.words[one.key], one.score, weights, pool.is_reread(one.path), texts)
        for one in ranked
        if pool.words[one.key].counts or one.score > 0
    ]


class _Pool:
    """The candidates of one question; those of changed files are replaced."""

    def __init__(
        self, query: CodeQuery, index: CodeIndex, texts: FileTexts, gathered: GatheredSections
    ) -> None:
        self._query, self._texts = query, texts
        self._files = index.files()
        self.words = {one.section.key: one for one in gathered.found}
        self.generated: set[str] = set()
        self._checked: dict[str, bool] = {}

    def candidates(self) -> list[Candidate]:
        return [
            Candidate(
                key=key,
                path=one.section.path,
                definitions=one.definitions,
                counts=one.counts,
                length=one.length,
                symbol_path=one.section.symbol_path,
                signature=one.section.signature,
            )
            for key, one in self.words.items()
        ]

    def is_reread(self, path: str) -> bool:
        return self._checked.get(path, False)

    def reread(self, paths: Sequence[str]) -> bool:
        """Whether one of these files had changed, so that its candidates are others now, or was written by a
        program, so that it ranks lower."""
        changed = False
        for path in paths:
            if path in self._checked:
                continue
            source = self._texts.source(path)
            row = self._files.get(path)
            self._checked[path] = source is None or row is None or source.hash != row.hash
            if self._checked[path]:
                self._replace(path, source)
                changed = True
            if source is not None and is_code(path) and is_generated(source.text):
                self.generated.add(path)
                changed = True
        return changed

    def _replace(self, path: str, source: SourceFile | None) -> None:
        for key in [key for key, one in self.words.items() if one.section.path == path]:
            del self.words[key]
        if source is None or source.skip is not None:
            return
        for row in extracted(source, 0).sections:
            key = min([0, *self.words]) - 1
            counts = Counter(term for term in row.terms if term in self._query.terms)
            section = FoundSection(
                key=key, path=path, kind=row.kind, name=row.name, symbol_path=row.symbol_path,
                start_line=row.start_line, end_line=row.end_line, signature=row.signature, hash=row.hash,
            )  # fmt: skip
            self.words[key] = SectionWords(
                section=section, definitions=row.definitions, counts=counts, length=len(row.terms)
            )


def _weights(query: CodeQuery, corpus: IndexTotals) -> Weights:
    """The weight of each word of a question: rare ones say more."""
    return {
        term: weight / (1.0 + corpus.frequencies.get(term, 0)) ** 0.5 for term, weight in query.terms.items()
    }


def _named(section: FoundSection, definitions: Sequence[str], text: str, weights: Weights) -> tuple[str, str]:
    """The symbol by which a section is shown: of several functions or headings the one that the question has
    words of, else the first."""
    names = definitions
    if section.kind == "heading":
        names = [title for *_, title in markdown_headings(text.splitlines())]
    if section.kind not in _ALIKE or len(names) < 2:
        return section.name, section.symbol_path

    def asked(name: str) -> float:
        return sum(weights.get(term, 0.0) for term in set(tokens_of(name)))

    best = max(names, key=asked)
    if asked(best) <= asked(section.name):
        return section.name, section.symbol_path
    return best, f"{section.symbol_path.removesuffix(section.name)}{best}"


def _hit(words: SectionWords, score: float, weights: Weights, reread: bool, texts: FileTexts) -> CodeHit:
    section = words.section
    text = texts.lines(section.path, section.start_line, section.end_line)
    name, symbol_path = _named(section, words.definitions, text, weights)
    total = sum(weights.values()) or 1.0
    return CodeHit(
        path=section.path,
        start_line=section.start_line,
        end_line=section.end_line,
        kind=section.kind,
        name=name,
        symbol_path=symbol_path,
        signature=section.signature,
        hash=section.hash,
        text=text,
        score=score,
        matched=sum(weights.get(term, 0.0) for term in words.counts) / total,
        reread=reread,
        definitions=words.definitions,
    )

"""The package for a task: what is known and where to look, in at most as many tokens as were asked for.

The order is that in which it helps: decisions and constraints, files to open first, excerpts, tests, recent
commits. A part that does not fit is replaced by its signature or left out; the count is that of a stated
tokenizer over the whole text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from vestige.cognition.code.query import analyse
from vestige.cognition.code.roles import role_of
from vestige.cognition.code.tokens import tokens_of
from vestige.cognition.text.analyser import stem
from vestige.cognition.text.form import estimate_tokens
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Record
from vestige.engine.context import Call
from vestige.engine.ingest.orders import without_orders
from vestige.engine.project.citations import Checked, checked, of_memory
from vestige.engine.project.git import commits_of
from vestige.engine.project.memory.team_file import shared_by
from vestige.engine.project.place import Project
from vestige.engine.project.search import CodeHit, FileTexts, search_code
from vestige.engine.recall.candidates import Mode
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.engine.recall.testing_effect import leave_trace
from vestige.store.contract.code_index import CodeIndex

HITS = 24
FILES = 6
MEMORIES = 12
TESTS = 4
COMMITS = 5
CHECKED = 500
"""How many decisions of a project are looked through for citations of the files that were found."""
MEMORY_CHARS = 600
LEAST_MATCH = 0.2
"""A hit with less of the question's words says nothing."""
KINDS = ("constraint", "decision", "blocker", "preference", "pattern", "code_insight")
"""Kinds of memories that come first, in this order."""

Count = Callable[[str], int]
_FENCES = re.compile("`{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Counts the tokens of a text, and says how."""

    tokenizer: str
    count: Count


ESTIMATE = TokenCounter(tokenizer="estimate of word pieces", count=estimate_tokens)
"""Needs no model, and is the same wherever it is asked."""


def tokens_of_call(call: Call) -> TokenCounter:
    """The tokenizer of the embedding model if it is loaded, else an estimate of its word pieces."""
    embedder = call.engine.embedders.get(0.0)
    if embedder is None:
        return ESTIMATE
    return TokenCounter(
        tokenizer=embedder.signature.name, count=lambda text: embedder.count_tokens([text])[0] if text else 0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNote:
    """A memory that applies to a task, with what became of the code it cites."""

    record: Record
    citations: tuple[Checked, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPackage:
    """The package. `covered` is the share of the task's words that the hits have, `best` that of the best
    one. `repeated` counts what was left out because the session had it, `left_out` what did not fit."""

    text: str
    tokens: int
    tokenizer: str
    memories: tuple[MemoryNote, ...]
    places: tuple[str, ...]
    covered: float
    best: float
    confidence: float
    repeated: int
    left_out: int

    @property
    def found(self) -> bool:
        return bool(self.memories or self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePart:
    """A part of the text in the order of use: the first form that fits is taken."""

    heading: str
    forms: tuple[str, ...]
    key: str = ""


def one_line(text: str) -> str:
    """Text of a repository within one line: a name or a description must not look like a part of ours."""
    plain = "".join(char if char.isprintable() else "\n" for char in text)
    return " ".join(part for part in plain.split("\n") if part)


def fenced_lines(text: str) -> str:
    """Lines of a file between fences that are longer than any within them."""
    longest = max((len(run) for run in _FENCES.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


@dataclass(slots=True, kw_only=True)
class BudgetWriter:
    """Writes pieces while they fit."""

    tokens: TokenCounter
    budget: int
    text: str = ""
    left_out: int = 0
    keys: list[str] = field(default_factory=list)
    _heading: str = ""

    def add(self, piece: PackagePart) -> bool:
        head = f"\n## {piece.heading}\n" if piece.heading != self._heading else ""
        for form in piece.forms:
            longer = f"{self.text}{head}{form}\n".lstrip("\n")
            if self.tokens.count(longer) <= self.budget:
                self.text, self._heading = longer, piece.heading
                self.keys.append(piece.key)
                return True
        self.left_out += 1
        return False


def task_package(
    call: Call,
    project: Project,
    index: CodeIndex,
    task: str,
    *,
    budget: int,
    shown: frozenset[str] = frozenset(),
) -> tuple[TaskPackage, list[str]]:
    """The package for a task, and the keys of what it shows; what is in `shown` is left out."""
    texts = FileTexts(project=project)
    hits = [
        hit
        for hit in search_code(call, project, index, task, limit=HITS, texts=texts)
        if hit.matched >= LEAST_MATCH or hit.score >= 1.0
    ]
    files = list(dict.fromkeys(hit.path for hit in hits if role_of(hit.path) != "test"))[:FILES]
    recalled, confidence = _recalled(call, project, task)
    notes = _notes(call, project, index, texts, recalled, files)
    tokens = tokens_of_call(call)
    pieces = [
        *_memory_pieces(notes),
        *_file_pieces(hits, files),
        *_excerpt_pieces(hits),
        *_test_pieces(hits, index, files),
        *_commit_pieces(project, files),
    ]
    new = [piece for piece in pieces if piece.key not in shown]
    writer = BudgetWriter(tokens=tokens, budget=budget)
    for piece in new:
        call.check()
        writer.add(piece)
    kept = set(writer.keys)
    package = TaskPackage(
        text=writer.text,
        tokens=tokens.count(writer.text),
        tokenizer=tokens.tokenizer,
        memories=tuple(note for note in notes if _memory_key(note) in kept),
        places=tuple(hit.place for hit in hits if {_hit_key(hit), _file_key(hit.path)} & kept),
        covered=_covered(task, hits),
        best=max((hit.matched for hit in hits), default=0.0),
        confidence=confidence,
        repeated=len(pieces) - len(new),
        left_out=writer.left_out,
    )
    if call.engine.settings.memory.record:
        leave_trace(call, [note.record for note in package.memories])
    return package, [key for key in writer.keys if key]


# -- Memories


def _recalled(call: Call, project: Project, task: str) -> tuple[list[Record], float]:
    """Memories about the task. What binds the project must only share a word with it: a constraint that is
    shown in vain costs a line, one that is missing costs the task."""
    where = Filter(scope=project.scope, inherited=True, valid_at=call.engine.now(), include_suppressed=False)
    text = task[:2_000]
    found = recall(
        call,
        RecallQuery(text=text, where=where, limit=MEMORIES, min_confidence=Mode.BALANCED.depth.confidence),
    )
    binding = recall(call, RecallQuery(text=text, where=replace(where, node_types=KINDS), limit=MEMORIES))
    words = {stem(word) for word in analyse(task).words}
    applying = [
        hit.record
        for hit in binding.hits
        if words & {stem(word) for word in tokens_of(hit.record.memory.content)}
    ]
    return [*applying, *(hit.record for hit in found.hits)], found.confidence


def _notes(
    call: Call,
    project: Project,
    index: CodeIndex,
    texts: FileTexts,
    recalled: Sequence[Record],
    files: Sequence[str],
) -> list[MemoryNote]:
    """Memories about the task, and decisions that cite the files that were found; the binding ones first.
    Those whose code is gone come last."""
    where = Filter(
        scope=project.scope, node_types=KINDS, valid_at=call.engine.now(), include_suppressed=False
    )
    citing = [
        record
        for record in call.engine.store.find(where, access=call.access, limit=CHECKED)
        if any(one.path in files for one in of_memory(record.memory))
    ]
    records = {record.memory.id: record for record in (*recalled, *citing)}
    current = [record for record in records.values() if record.memory.superseded_by is None]
    notes = [
        MemoryNote(
            record=record,
            citations=tuple(checked(one, project, texts, index) for one in of_memory(record.memory)),
        )
        for record in without_orders(call, current)
    ]
    return sorted(notes, key=_memory_rank)


def _memory_rank(note: MemoryNote) -> tuple[bool, int]:
    kind = note.record.memory.node_type
    gone = bool(note.citations) and all(one.verdict == "gone" for one in note.citations)
    return gone, KINDS.index(kind) if kind in KINDS else len(KINDS)


def _memory_key(note: MemoryNote) -> str:
    return f"memory:{note.record.memory.id}:{note.record.memory.revision}"


def _memory_pieces(notes: Sequence[MemoryNote]) -> Iterator[PackagePart]:
    for note in notes:
        memory = note.record.memory
        cited = f" ({'; '.join(one.text for one in note.citations)})" if note.citations else ""
        text = " ".join(memory.content.split())
        short = f"{text[:MEMORY_CHARS]}…" if len(text) > MEMORY_CHARS else text
        yield PackagePart(
            heading="Decisions and constraints",
            forms=(f"- {memory.node_type}: {short}{cited}{shared_by(memory)} [{memory.id}]",),
            key=_memory_key(note),
        )


# -- Code


def _hit_key(hit: CodeHit) -> str:
    return f"lines:{hit.path}:{hit.hash}"


def _file_key(path: str) -> str:
    return f"file:{path}"


def _file_pieces(hits: Sequence[CodeHit], files: Sequence[str]) -> Iterator[PackagePart]:
    for path in files:
        own = [hit for hit in hits if hit.path == path]
        ranges = ", ".join(
            f"{hit.start_line}-{hit.end_line}" for hit in sorted(own, key=lambda hit: hit.start_line)
        )
        names = one_line(", ".join(dict.fromkeys(hit.symbol_path for hit in own if hit.symbol_path)))
        shown = one_line(path)
        yield PackagePart(
            heading="Open first",
            forms=(f"- {shown}:{ranges}" + (f" ({names[:200]})" if names else ""), f"- {shown}"),
            key=_file_key(path),
        )


def _excerpt_pieces(hits: Sequence[CodeHit]) -> Iterator[PackagePart]:
    for hit in hits:
        if role_of(hit.path) != "test":
            yield PackagePart(heading="Excerpts", forms=_forms(hit), key=_hit_key(hit))


def _forms(hit: CodeHit) -> tuple[str, ...]:
    """The lines of a hit; the beginning of many lines; its signature."""
    lines = hit.text.rstrip("\n").split("\n")
    half = "\n".join([*lines[: max(3, len(lines) // 2)], "…"])
    place = one_line(hit.place)
    whole = f"{place}\n{fenced_lines(hit.text.rstrip())}"
    signature = hit.signature.strip() or next((line.strip() for line in lines if line.strip()), "")
    short = f"{place}: {' '.join(one_line(signature).split())[:200]}"
    return (whole, f"{place}\n{fenced_lines(half)}", short) if len(lines) > 8 else (whole, short)


def _test_pieces(hits: Sequence[CodeHit], index: CodeIndex, files: Sequence[str]) -> Iterator[PackagePart]:
    """Tests that a question found, then tests that refer to what the first files declare."""
    places = {hit.path: hit.place for hit in reversed(hits) if role_of(hit.path) == "test"}
    names = [name for hit in hits if hit.path in files for name in hit.definitions][:50]
    for one in index.referring(list(dict.fromkeys(names)), limit=200):
        if role_of(one.path) == "test":
            places.setdefault(one.path, f"{one.path}:{one.start_line}-{one.end_line}")
    for path, place in list(places.items())[:TESTS]:
        yield PackagePart(heading="Tests", forms=(f"- {one_line(place)}",), key=_file_key(path))


def _commit_pieces(project: Project, files: Sequence[str]) -> Iterator[PackagePart]:
    if not files:
        return
    for commit in commits_of(project.root, most=COMMITS, paths=tuple(files)):
        line = f"- {commit.commit[:10]} {commit.day} {one_line(commit.subject)[:160]}"
        yield PackagePart(heading="Recent commits", forms=(line,), key=f"commit:{commit.commit}")


def _covered(task: str, hits: Sequence[CodeHit]) -> float:
    """The share of the task's words that the hits have together."""
    words = {word for word in analyse(task).words if len(word) > 2}
    if not words:
        return max((hit.matched for hit in hits), default=0.0)
    text = " ".join([hit.path.lower() + " " + hit.text.lower() for hit in hits])
    return sum(word in text for word in words) / len(words)

"""Code that a memory cites, and what became of it.

A citation is anchored by the hashes of its lines, which are kept in the memory's own `metadata`, so it goes
where the memory goes, and is deleted with it. Checking it reads the file as it is now: the lines are where
they were, moved, changed, or gone. Nothing is ever deleted because of a check.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from hashlib import blake2b
from statistics import median_low
from typing import Any

from vestige.cognition.code.sections import lines_of
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory
from vestige.engine.project.place import Project
from vestige.engine.project.search import FileTexts
from vestige.store.contract.code_index import CodeIndex, FoundSection

KEY = "citations"
"""The name under which a memory's metadata has its citations."""
MOST_LINES = 400
MOST_CITATIONS = 20
ALIKE = 0.5
"""The share of lines that must be left for a citation to be changed rather than gone."""
ELSEWHERE = 8
"""How many other files are looked through for lines that moved."""

_PLACE = re.compile(
    r"(?<![\w/.-])((?:[\w@.+-]{1,80}/){0,12}[\w@+-][\w@.+-]{0,80}\.\w{1,10})(?::(\d{1,7})(?:-(\d{1,7}))?)?"
)
_SPAN = re.compile(r"`([^`\n]{2,120})`")
_NAME = re.compile(r"[^\W\d]\w*")


class Verdict(StrEnum):
    """What became of cited code. `unverifiable`: there is nothing to compare it with."""

    FRESH = "fresh"
    MOVED = "moved"
    CHANGED = "changed"
    GONE = "gone"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Lines of a file at a commit. `lines` are their hashes; without them only the path is known.
    `verified_at` is when they were anchored, or found unchanged by an explicit check."""

    path: str
    start: int = 0
    end: int = 0
    symbol: str = ""
    commit: str = ""
    lines: tuple[str, ...] = ()
    verified_at: str = ""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.start}-{self.end}" if self.start else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A citation as it was checked; `now` is where the lines are, if they are anywhere."""

    citation: Citation
    verdict: Verdict
    now: Citation | None = None

    @property
    def text(self) -> str:
        """One phrase for people and agents."""
        cited = self.citation.place
        if self.verdict is Verdict.MOVED and self.now is not None:
            return f"{cited}: moved to {self.now.place}"
        if self.verdict is Verdict.CHANGED and self.now is not None and self.now.place != cited:
            return f"{cited}: changed, now {self.now.place}"
        return f"{cited}: {self.verdict.value}"


# -- Making citations


def anchored(texts: FileTexts, index: CodeIndex, path: str, start: int = 0, end: int = 0) -> Citation:
    """A citation of lines as they are now, or of a whole file. InvalidInput if they are not there."""
    source = texts.source(path)
    lines = _hashes(texts, path)
    if source is None or source.skip is not None or start > max(1, len(lines)):
        raise InvalidInput(
            f"{path} has no such lines in this project.",
            hint="Give a path from the root of the project, such as src/app.py:10-20.",
            details={"argument": "cites"},
        )
    first, last = max(1, start), min(end or start or len(lines), len(lines), max(1, start) + MOST_LINES - 1)
    symbol = _symbol(index.sections([path])[path], first, last) if start else ""
    return Citation(
        path=path,
        start=first,
        end=last,
        symbol=symbol,
        commit=index.state().commit,
        lines=tuple(lines[first - 1 : last]),
    )


def cited_in(text: str, texts: FileTexts, index: CodeIndex) -> list[Citation]:
    """The code that a text names: paths of the project, with or without lines, and `symbols` that exactly one
    section declares."""
    known, found = index.files(), dict[str, Citation]()
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for known_path in known:
        by_name[known_path[known_path.rfind("/") + 1 :]].append(known_path)
    places = {match[0]: match for match in _PLACE.finditer(text[:20_000])}
    for match in places.values():
        path = match[1] if match[1] in known else _only_end(match[1], by_name)
        if path and len(found) < MOST_CITATIONS:
            start, end = int(match[2] or 0), int(match[3] or 0)
            lines = len(_hashes(texts, path))
            made = anchored(texts, index, path, start if start <= lines else 0, end if start <= lines else 0)
            found.setdefault(made.place, made)
    names = [name for span in _SPAN.findall(text[:20_000]) for name in _NAME.findall(span)[-1:]]
    for name in dict.fromkeys(names):
        sections = index.defining([name], limit=2)
        if len(sections) == 1 and len(found) < MOST_CITATIONS:
            one = sections[0]
            made = anchored(texts, index, one.path, one.start_line, one.end_line)
            found.setdefault(made.place, made)
    return list(found.values())


def to_metadata(citations: Sequence[Citation]) -> dict[str, Any]:
    """The metadata that keeps these citations; line hashes as one text, eight characters each."""
    return {KEY: [_to_json(one) for one in citations]}


def _to_json(one: Citation) -> dict[str, Any]:
    kept = asdict(one) | {"lines": "".join(one.lines)}
    return kept if one.verified_at else {name: kept[name] for name in kept if name != "verified_at"}


def verified(memory: Memory, checks: Sequence[Checked], at: str) -> Memory:
    """The memory with the time of a check at each citation whose lines are unchanged, here or elsewhere. The
    anchors stay: they are the lines that the memory is about."""
    held = {one.citation for one in checks if one.verdict in (Verdict.FRESH, Verdict.MOVED)}
    kept = [replace(one, verified_at=at) if one in held else one for one in of_memory(memory)]
    return replace(memory, metadata={**memory.metadata, **to_metadata(kept)}) if held else memory


def of_memory(memory: Memory) -> list[Citation]:
    """The citations that a memory keeps. What is malformed was not written here, and is left out."""
    kept = memory.metadata.get(KEY)
    found = [_read(one) for one in kept[:MOST_CITATIONS]] if isinstance(kept, (list, tuple)) else []
    return [one for one in found if one is not None]


def _read(one: object) -> Citation | None:
    if not isinstance(one, Mapping) or not isinstance(one.get("path"), str):
        return None
    packed, start, end = one.get("lines"), one.get("start"), one.get("end")
    if not isinstance(packed, str) or not isinstance(start, int) or not isinstance(end, int):
        return None
    if len(packed) > MOST_LINES * _WIDTH:
        return None
    return Citation(
        path=one["path"],
        start=start,
        end=end,
        symbol=str(one.get("symbol") or ""),
        commit=str(one.get("commit") or ""),
        lines=tuple(packed[at : at + _WIDTH] for at in range(0, len(packed), _WIDTH)),
        verified_at=str(one.get("verified_at") or "")[:40],
    )


# -- Checking them


def checked(citation: Citation, project: Project, texts: FileTexts, index: CodeIndex) -> Checked:
    """Compare a citation with the files as they are now."""
    if not citation.lines:
        return Checked(citation=citation, verdict=Verdict.UNVERIFIABLE)
    lines = _hashes(texts, citation.path)
    start = citation.start - 1
    if tuple(lines[start : citation.end]) == citation.lines:
        return Checked(citation=citation, verdict=Verdict.FRESH, now=citation)
    at = _block(citation.lines, lines, start)
    if at is not None:
        return Checked(citation=citation, verdict=Verdict.MOVED, now=_shifted(citation, citation.path, at))
    for path in _elsewhere(citation, index, texts):
        at = _block(citation.lines, _hashes(texts, path), start)
        if at is not None:
            return Checked(citation=citation, verdict=Verdict.MOVED, now=_shifted(citation, path, at))
    now = _similar(citation, citation.path, lines)
    if now is not None:
        return Checked(citation=citation, verdict=Verdict.CHANGED, now=now)
    for path in _elsewhere(citation, index, texts):
        now = _similar(citation, path, _hashes(texts, path))
        if now is not None:
            return Checked(citation=citation, verdict=Verdict.CHANGED, now=now)
    declared = [one for one in _declaring(citation, index) if one.path == citation.path]
    if declared and _still_named(citation, texts):
        one = declared[0]
        now = replace(citation, start=one.start_line, end=one.end_line)
        return Checked(citation=citation, verdict=Verdict.CHANGED, now=now)
    return Checked(citation=citation, verdict=Verdict.GONE)


def _shifted(citation: Citation, path: str, at: int) -> Citation:
    return replace(citation, path=path, start=at + 1, end=at + len(citation.lines))


def _block(wanted: Sequence[str], lines: Sequence[str], near: int) -> int | None:
    """Where lines occur in this order, nearest to where they were. Blank ones alone are nothing."""
    if not any(one != _BLANK for one in wanted):
        return None
    counts = Counter(lines)
    rare = min(range(len(wanted)), key=lambda place: (wanted[place] == _BLANK, counts[wanted[place]]))
    places = [at - rare for at, one in enumerate(lines) if one == wanted[rare]]
    same = [at for at in places if at >= 0 and list(lines[at : at + len(wanted)]) == list(wanted)]
    return min(same, key=lambda at: abs(at - near), default=None)


def _similar(citation: Citation, path: str, lines: Sequence[str]) -> Citation | None:
    """Where most of the lines are that are left, if enough are."""
    wanted = [(place, one) for place, one in enumerate(citation.lines) if one != _BLANK]
    counts = Counter(lines)
    where = {one: at for at, one in enumerate(lines) if counts[one] == 1}
    found = [(place, where[one]) for place, one in wanted if one in where]
    if not found:
        return None
    shift = median_low(at - place for place, at in found)
    room = max(10, len(citation.lines))
    kept = [at for place, at in found if abs(at - place - shift) <= room]
    often = sum(counts[one] > 1 for _, one in wanted)  # lines such as `return None` say little
    if len(kept) < ALIKE * max(1, len(wanted) - often) or not kept:
        return None
    first = max(0, min(min(kept), citation.start - 1 + shift if shift > -citation.start else 0))
    last = min(len(lines), max(max(kept) + 1, first + 1))
    return replace(citation, path=path, start=first + 1, end=last)


def _elsewhere(citation: Citation, index: CodeIndex, texts: FileTexts) -> list[str]:
    """Other files in which the lines may be: those that declare the symbol, or have the same name."""
    name = citation.path[citation.path.rfind("/") + 1 :]
    paths = [one.path for one in _declaring(citation, index)]
    paths += [path for path in index.files() if path[path.rfind("/") + 1 :] == name]
    moved = texts.source(citation.path) is None
    others = [path for path in dict.fromkeys(paths) if path != citation.path]
    return others[: ELSEWHERE if moved else ELSEWHERE // 2]


def _still_named(citation: Citation, texts: FileTexts) -> bool:
    """Whether the file still has the name: the index may be older than the file."""
    source, name = texts.source(citation.path), re.split(r"[.:#]", citation.symbol)[-1]
    return source is not None and bool(name) and name in _NAME.findall(source.text)


def _declaring(citation: Citation, index: CodeIndex) -> list[FoundSection]:
    last = re.split(r"[.:#]", citation.symbol)[-1] if citation.symbol else ""
    return index.defining([last], limit=ELSEWHERE) if last else []


# -- Lines

_WIDTH = 8


def _line_hash(line: str) -> str:
    return blake2b(" ".join(line.split()).encode("utf-8", "replace"), digest_size=_WIDTH // 2).hexdigest()


_BLANK = _line_hash("")


def line_hashes(text: str) -> list[str]:
    """The hash of each line; indentation does not count."""
    return [_line_hash(line) for line in lines_of(text)]


def _hashes(texts: FileTexts, path: str) -> list[str]:
    """The hashes of the lines of a file, made once for an answer."""
    if path not in texts.hashes:
        source = texts.source(path)
        texts.hashes[path] = [] if source is None else line_hashes(source.text)
    return texts.hashes[path]


def _symbol(sections: Sequence[FoundSection], start: int, end: int) -> str:
    """The symbol that most of these lines belong to."""
    best = max(
        sections,
        key=lambda one: (min(end, one.end_line) - max(start, one.start_line), -one.start_line),
        default=None,
    )
    inside = best is not None and best.start_line <= end and start <= best.end_line
    return best.symbol_path if best is not None and inside else ""


def _only_end(path: str, by_name: Mapping[str, Sequence[str]]) -> str | None:
    """The one path of the project that ends like this."""
    ends = [one for one in by_name.get(path[path.rfind("/") + 1 :], ()) if one.endswith(f"/{path}")]
    return ends[0] if len(ends) == 1 else None

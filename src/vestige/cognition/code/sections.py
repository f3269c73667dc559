"""The sections of a source file: consecutive ranges of lines that cover the file exactly once.

A line ends at a line feed and nowhere else, as git and the syntax parsers count them. Lines have numbers from
one. The texts of the sections, joined, are the text of the file; an empty text has no sections.

What a section is depends on the file: a symbol of a program (by its syntax where the extra `code` is
installed, by indentation elsewhere), a part of a Markdown page below its heading, a key of JSON, YAML and
TOML, a statement of SQL, a cell of a notebook. What belongs to none is a section of the kind `text`. Long
ones are cut into pieces; each piece repeats the name, the symbol path and the signature of what it is a
piece of.
"""

from collections.abc import Iterator, Sequence

from vestige.cognition.code import formats, outline, syntax
from vestige.cognition.code.blocks import CodeBlock
from vestige.cognition.code.languages import language_of
from vestige.cognition.code.tokens import references_of
from vestige.core.lazy_dataclass import dataclass

MOST_CHARS = 1500
"""The length above which a section is cut."""
MOST_LINES = 60
SMALL_CHARS = 300
"""Neighbours shorter than this become one section, until it is longer than that of a group."""
GROUP_CHARS = 750
MOST_DEFINITIONS = 200
"""The limit of names that a section says it defines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSection:
    """Lines of a file that belong together.

    `kind` is `function`, `method`, `class`, `interface`, `type`, `constant`, `module` (a namespace or the
    like), `heading`, `key`, `statement`, `cell` or `text`. `name` is the symbol, heading or key, empty for
    what has none; `symbol_path` has the names around it too, such as `Server.start`. `signature` is the
    line or lines that declare the symbol, without its body. `definitions` are the symbols that the lines
    declare, `references` the names that they call or import, in order and without repeats.
    """

    kind: str
    name: str
    symbol_path: str
    start_line: int
    end_line: int
    text: str
    signature: str
    definitions: tuple[str, ...]
    references: tuple[str, ...]


Section = CodeSection
"""The short name, for modules in which nothing else is called a section."""


def sections_of(path: str, text: str) -> list[CodeSection]:
    """The sections of a file in order; their line ranges cover it exactly once."""
    lines = lines_of(text)
    if not lines:
        return []
    blocks = _blocks_of(path, text, lines)
    is_document = language_of(path) in ("markdown", "rst")
    return [_section(block, lines, is_document) for block in _whole(_cover(blocks, lines), lines)]


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends; joined, they are the text."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _blocks_of(path: str, text: str, lines: Sequence[str]) -> list[CodeBlock]:
    """The outermost blocks that a file declares, in order."""
    language = language_of(path)
    reader = formats.READERS.get(language)
    if reader is not None:
        return reader(lines)
    blocks = syntax.blocks_of(language, text)
    return outline.blocks_of(lines) if blocks is None else blocks


# -- covering ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A part of the cover: lines from `start` (counted from zero) up to `end` without it."""

    start: int
    end: int
    block: CodeBlock | None
    around: tuple[str, ...]
    definitions: tuple[str, ...]


def _cover(blocks: Sequence[CodeBlock], lines: Sequence[str]) -> list[_Span]:
    """Spans that cover all lines once: small blocks whole, large ones as head, members and the rest."""
    sizes = [0]
    for line in lines:
        sizes.append(sizes[-1] + len(line))
    spans: list[_Span] = []
    # Each entry is what is left to cover at one level: a place, an end, blocks, and whose they are.
    levels: list[tuple[int, list[CodeBlock], CodeBlock | None, tuple[str, ...]]] = []
    place = 0
    levels.append((len(lines), list(reversed(blocks)), None, ()))
    while levels:
        end, waiting, owner, around = levels[-1]
        while waiting and (waiting[-1].start < place or waiting[-1].end > end):
            waiting.pop()  # It shares a line with what is covered.
        if not waiting:
            levels.pop()
            if place < end:
                spans.append(_rest(place, end, owner, around))
                place = end
            continue
        block = waiting.pop()
        if place < block.start:
            spans.append(_rest(place, block.start, owner, around))
            place = block.start
        inner = around if owner is None or not owner.name else (*around, owner.name)
        if block.members and sizes[block.end] - sizes[block.start] > GROUP_CHARS:
            levels.append((block.end, list(reversed(block.members)), block, inner))
        else:
            spans.append(
                _Span(start=block.start, end=block.end, block=block, around=inner, definitions=_names(block))
            )
            place = block.end
    return spans


def _rest(start: int, end: int, owner: CodeBlock | None, around: tuple[str, ...]) -> _Span:
    """Lines outside of symbols; the first of a class or the like are its head."""
    head = owner is not None and owner.start == start
    names = (owner.name,) if owner is not None and head and owner.name and owner.kind != "heading" else ()
    return _Span(start=start, end=end, block=owner, around=around, definitions=names)


def _names(block: CodeBlock) -> tuple[str, ...]:
    """The names of a block and of what is inside it, in order."""
    found: dict[str, None] = {}
    waiting = [block]
    while waiting and len(found) < MOST_DEFINITIONS:
        one = waiting.pop()
        if one.kind not in ("heading", "cell", "statement"):
            found |= dict.fromkeys(name for name in (one.name, *one.others) if name)
        waiting.extend(reversed(one.members))
    return tuple(found)[:MOST_DEFINITIONS]


# -- small and large -----------------------------------------------------------------------------


def _whole(spans: Sequence[_Span], lines: Sequence[str]) -> list[_Span]:
    """Spans of a useful size: small neighbours together, large ones in pieces."""
    sizes = [sum(map(len, lines[span.start : span.end])) for span in spans]
    grouped: list[_Span] = []
    size = 0
    for span, own in zip(spans, sizes, strict=True):
        if grouped and _joins(grouped[-1], size, span, own, lines):
            grouped[-1] = _joined(grouped[-1], span)
            size += own
        else:
            grouped.append(span)
            size = own
    return [piece for span in grouped for piece in _pieces(span, lines)]


def _joins(before: _Span, size: int, span: _Span, own: int, lines: Sequence[str]) -> bool:
    """Whether a span is one section with the span before it."""
    if own < SMALL_CHARS and not any(line.strip() for line in lines[span.start : span.end]):
        return True  # Empty lines belong to what is above them.
    return (
        before.around == span.around
        and min(own, size) < SMALL_CHARS
        and size + own <= GROUP_CHARS
        and not (_is_head(before) or _is_head(span))
    )


def _is_head(span: _Span) -> bool:
    return span.block is not None and bool(span.block.members) and span.block.end != span.end


def _joined(first: _Span, second: _Span) -> _Span:
    named = first if first.definitions or not second.definitions else second
    return _Span(
        start=first.start,
        end=second.end,
        block=named.block,
        around=named.around,
        definitions=tuple(dict.fromkeys((*first.definitions, *second.definitions)))[:MOST_DEFINITIONS],
    )


def _pieces(span: _Span, lines: Sequence[str]) -> Iterator[_Span]:
    """A span cut where the indentation is least, so that no piece is too long; one line is never cut."""
    start = span.start
    names = span.definitions
    while start < span.end:
        end = _cut(start, span.end, lines)
        yield _Span(start=start, end=end, block=span.block, around=span.around, definitions=names)
        names = ()
        start = end


def _cut(start: int, end: int, lines: Sequence[str]) -> int:
    """The row at which a piece from `start` on ends."""
    size = 0
    row = start
    while row < end and (row == start or (size + len(lines[row]) <= MOST_CHARS and row - start < MOST_LINES)):
        size += len(lines[row])
        row += 1
    if row == end or row - start < 4:
        return row
    last = range(start + (row - start) // 2, row + 1)
    return min(last, key=lambda place: (_weight(lines, place), -place))


def _weight(lines: Sequence[str], row: int) -> int:
    """How bad it is to cut before a row: least after an empty line, then by indentation."""
    line = lines[row][:200]
    body = line.lstrip()
    if not body or not lines[row - 1].strip():
        return 0
    return 1 + len(line) - len(body)


def _section(span: _Span, lines: Sequence[str], is_document: bool) -> CodeSection:
    text = "".join(lines[span.start : span.end])
    block = span.block
    name = block.name if block is not None else ""
    around = (*span.around, block.of) if block is not None and block.of and name else span.around
    return CodeSection(
        kind=block.kind if block is not None else "text",
        name=name,
        symbol_path=".".join((*around, name) if name else around),
        start_line=span.start + 1,
        end_line=span.end,
        text=text,
        signature=block.signature if block is not None else "",
        definitions=span.definitions,
        references=references_of(text, span.definitions, is_document=is_document),
    )

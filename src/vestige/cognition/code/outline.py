"""Blocks of a program without its grammar: declarations by their keyword, bodies by indentation."""

from collections.abc import Iterator, Sequence

from vestige.cognition.code.blocks import CodeBlock, nested, signature_from
from vestige.cognition.code.tokens import KEYWORDS
from vestige.core.patterns import lazy_pattern

_KINDS = {
    "function": "def defp defmacro func function fn fun sub proc procedure subroutine method macro",
    "class": "class struct enum trait impl object record union actor extension protocol mixin message",
    "interface": "interface",
    "module": "module namespace package defmodule mod library contract service",
    "type": "type typedef newtype data",
}
_KIND = {keyword: kind for kind, keywords in _KINDS.items() for keyword in keywords.split()}
_DECLARATION = lazy_pattern(
    r"(?:(?:export|default|pub|public|private|protected|internal|static|final|abstract|async|open|override|inline"
    r"|unsafe|extern|virtual|sealed|data|case|local|declare|const)(?:\([a-z]{1,20}\))?[ \t]{1,8}){0,6}"
    rf"({'|'.join(_KIND)})[ \t]{{1,8}}([^\W\d][\w.:$]{{0,100}})"
)
_HEADLESS = lazy_pattern(
    r"(?:[\w:<>,*&~\[\]]{1,80}[ \t]{1,8}){0,6}(?:[\w:<>,~]{0,80}[*&]{1,4})?([^\W\d][\w:~]{0,100})[ \t]?\("
)
"""A line such as `static int *name(…`. What ends a word of the type is in no word: else a line of stars could
be divided in more ways than can be tried."""
_ASSIGNED = lazy_pattern(
    r"(?:(?:export|const|let|var|local)[ \t]{1,8}){0,3}([^\W\d][\w.$]{0,100})[ \t]{0,8}[:=][^=\n]{0,80}"
    r"(?:\bfunction\b|=>|\bfn\b)"
)
_CLOSING = (")", "}", "]", "end", "else", "catch", "except", "finally", "elif", "rescue", "ensure", "then")
_LEADING = ("#", "//", "/*", "*", "--", "@", ";;", "%")
TAB = 4
LONGEST_LINE = 400
"""A declaration is looked for in this many characters of a line."""


def blocks_of(lines: Sequence[str]) -> list[CodeBlock]:
    """The declarations of a text as blocks, each up to the next line that is indented no more than it is."""
    depths = [_depth(line) for line in lines]
    found = [(row, *declared) for row, line in enumerate(lines) if (declared := _declared(line, depths[row]))]
    ends = _ends(depths, lines)
    blocks: list[CodeBlock] = []
    floor = 0
    for row, kind, name in found:
        start = _lead(lines, row, floor)
        blocks.append(
            CodeBlock(
                kind=kind,
                name=name,
                start=start,
                end=max(ends[row], row + 1),
                signature=signature_from(lines[row][:LONGEST_LINE]),
            )
        )
        floor = row + 1
    return nested(blocks)


def _depth(line: str) -> int:
    """How far a line is indented; -1 for an empty one."""
    body = line.lstrip()
    if not body:
        return -1
    return sum(TAB if character == "\t" else 1 for character in line[: len(line) - len(body)])


def _declared(line: str, depth: int) -> tuple[str, str] | None:
    """The kind and the name that a line declares, if it declares any."""
    body = line.lstrip()[:LONGEST_LINE]
    match = _DECLARATION.match(body)
    if match:
        return _KIND[match[1]], match[2].rstrip(".:")
    if depth > 8:
        return None
    match = _ASSIGNED.match(body)
    if match:
        return "function", match[1]
    if depth == 0 and body.rstrip().endswith(("{", ")")):
        match = _HEADLESS.match(body)
        if match and match[1].lower() not in KEYWORDS:
            return "function", match[1]
    return None


def _ends(depths: Sequence[int], lines: Sequence[str]) -> list[int]:
    """For each line, the row after the block that it opens: lines indented deeper, and what closes them."""
    ends = [len(depths)] * len(depths)
    opened: list[int] = []
    last = -1
    for row, depth in enumerate(depths):
        if depth < 0:
            continue
        closing = lines[row].lstrip()[:10].startswith(_CLOSING)
        while opened and depths[opened[-1]] >= depth:
            if closing and depths[opened[-1]] == depth and row - opened[-1] > 1:
                break
            if lines[row].lstrip().startswith("{") and depths[opened[-1]] == depth and opened[-1] == last:
                break
            ends[opened.pop()] = last + 1
        if not (closing and opened and depths[opened[-1]] == depth):
            opened.append(row)
        last = row
    for row in opened:
        ends[row] = last + 1
    return ends


def _lead(lines: Sequence[str], row: int, floor: int) -> int:
    """The row at which the comments directly above a declaration start."""
    while row > floor and lines[row - 1].lstrip().startswith(_LEADING):
        row -= 1
    return row


def paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of lines without an empty line, as ranges."""
    start = None
    for row, line in enumerate(lines):
        if line.strip():
            start = row if start is None else start
        elif start is not None:
            yield start, row
            start = None
    if start is not None:
        yield start, len(lines)

"""Blocks of documents and data: Markdown by heading, JSON, YAML, TOML and the like by key, SQL by statement,
notebooks by cell. Each reader takes the lines of a file; what it does not understand has no blocks."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from vestige.cognition.code.blocks import CodeBlock, nested, signature_from, until_next
from vestige.core.patterns import lazy_pattern

LONGEST_LINE = 2000
"""A line is read up to here: what is longer is data."""

_HEADING = lazy_pattern(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})(.*)$")
_UNDERLINE = lazy_pattern(r'([=\-~^"\'`#*+.:_])\1{2,}\s*$')
_YAML_KEY = lazy_pattern(
    r"""(?:"([^"\n]{1,200})"|'([^'\n]{1,200})'|([^\s#'"\-&*!|>%@`{}\[\],?:][^\n:#]{0,200}|-[^\s:#][^\n:#]{0,200})):(?:\s|$)"""
)
_TOML_TABLE = lazy_pattern(r"\s{0,40}\[\[?([^\]\n]{1,300})\]\]?")
_TOML_KEY = lazy_pattern(r"""\s{0,40}([\w"'.\-]{1,200})\s{0,40}=""")
_SQL_NAME = lazy_pattern(
    r"\s{0,200}(?:create|alter|drop|insert|update|delete|with)\b(?:\s{1,20}(?:or|replace|temp|temporary|unique|virtual"
    r"|materialized|global|local|recursive|if|not|exists|into|from|table|view|index|function|procedure|trigger|type"
    r"|schema|sequence|policy|database|concurrently|definer|role|extension|only))*\s{1,20}"
    r"([\w.\"`\[\]]{1,200})",
    re.IGNORECASE,
)


def markdown(lines: Sequence[str]) -> list[CodeBlock]:
    """A block from each heading to the next of its level or above."""
    return _headings(list(markdown_headings(lines)), len(lines))


def markdown_headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Headings (row, level, title); a `#` inside a fence is no heading."""
    fence = ""
    for row, line in enumerate(lines):
        line = line[:LONGEST_LINE].rstrip()
        marked = _FENCE.match(line)
        if fence:
            if marked and marked[1].startswith(fence) and not marked[2].strip():
                fence = ""
        elif marked and not (marked[1][0] == "`" and "`" in marked[2]):
            fence = marked[1]
        elif heading := _HEADING.match(line):
            yield row, len(heading[1]), (heading[2] or "").rstrip("# \t")


def rest(lines: Sequence[str]) -> list[CodeBlock]:
    """Titles of reStructuredText: a line above marks that are as long; levels as they occur."""
    found: list[tuple[int, int, str]] = []
    marks: list[str] = []
    for row in range(1, len(lines)):
        title, below = lines[row - 1][:LONGEST_LINE].rstrip(), lines[row][:LONGEST_LINE].rstrip()
        match = _UNDERLINE.match(below)
        if not match or not title or title[0].isspace() or _UNDERLINE.match(title) or len(below) < len(title):
            continue
        if match[1] not in marks:
            marks.append(match[1])
        over = row >= 2 and lines[row - 2][:LONGEST_LINE].rstrip() == below
        found.append((row - 1 - over, marks.index(match[1]) + 1, title))
    return _headings(found, len(lines))


def _headings(found: Sequence[tuple[int, int, str]], end: int) -> list[CodeBlock]:
    """Headings (row, level, title) as blocks, those of a deeper level inside."""
    ends = [end] * len(found)
    opened: list[int] = []
    for place, (row, level, _) in enumerate(found):
        while opened and found[opened[-1]][1] >= level:
            ends[opened.pop()] = row
        opened.append(place)
    return nested(
        CodeBlock(
            kind="heading", name=title[:200], start=row, end=ends[place], signature=signature_from(title)
        )
        for place, (row, _, title) in enumerate(found)
    )


def json_keys(lines: Sequence[str]) -> list[CodeBlock]:
    """The keys of the outermost object; a key that shares its line with another has no block of its own."""
    found = list(_json_starts(lines))
    ending = next((row for row, name in found if name is None), len(lines))
    return _keys([(row, name) for row, name in found if name is not None], ending)


def _json_starts(lines: Sequence[str]) -> Iterator[tuple[int, str | None]]:
    """The row and name of each key of the outermost object, then the row of its end without a name."""
    depth, outer, key, quoted = 0, "", "", False
    for row, line in enumerate(lines):
        for match in _JSON_TOKEN.finditer(line):
            token = match[0]
            if token[0] == '"':
                key, quoted = token[1:-1], True
                continue
            if token in "{[":
                depth += 1
                outer = outer or token
            elif token in "}]":
                depth -= 1
                if depth == 0:
                    yield row, None
            elif token == ":" and quoted and depth == 1 and outer == "{":
                yield row, key[:200]
            quoted = False


_JSON_TOKEN = lazy_pattern(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|[{}\[\]:,]')


def yaml_keys(lines: Sequence[str]) -> list[CodeBlock]:
    """Keys that are not indented."""
    found = ((row, _YAML_KEY.match(line[:LONGEST_LINE])) for row, line in enumerate(lines))
    rows = [(row, next(part for part in match.groups() if part)) for row, match in found if match]
    return _keys(rows, len(lines))


def toml_keys(lines: Sequence[str]) -> list[CodeBlock]:
    """Tables, and the keys before the first one."""
    rows: list[tuple[int, str]] = []
    tables = depth = 0
    for row, line in enumerate(lines):
        line = line[:LONGEST_LINE]
        inside = depth > 0
        match = None if inside else _TOML_TABLE.match(line)
        if match:
            tables += 1
        elif not inside and not tables:
            match = _TOML_KEY.match(line)
        if match:
            rows.append((row, match[1].strip("\"' ")))
        if not (match and tables):
            depth = max(0, depth + line.count("[") - line.count("]")) if inside or "=" in line else 0
    return _keys(rows, len(lines))


def _keys(rows: Sequence[tuple[int, str]], end: int) -> list[CodeBlock]:
    first: dict[int, list[str]] = {}
    for row, name in rows:
        first.setdefault(row, []).append(name)
    return [
        CodeBlock(kind="key", name=first[start][0], start=start, end=stop, others=tuple(first[start][1:]))
        for start, stop in until_next(list(first), end)
        if start < stop
    ]


def sql_statements(lines: Sequence[str]) -> list[CodeBlock]:
    """Statements up to the semicolon that ends a line, outside of strings, comments and dollar quotes."""
    blocks: list[CodeBlock] = []
    start, open_quote = 0, ""
    for row, line in enumerate(lines):
        ended, open_quote = _sql_end(line, open_quote)
        if ended:
            blocks.append(_statement(lines, start, row + 1))
            start = row + 1
    if start < len(lines):
        blocks.append(_statement(lines, start, len(lines)))
    return blocks


_SQL_MARK = lazy_pattern(r"--[^\n]*|/\*|\*/|'|\"|\$\w{0,60}\$|;|[^\s;'\"$/*-]+|\S")


def _sql_end(line: str, open_quote: str) -> tuple[bool, str]:
    """Whether a statement ends with this line, and the quote that is still open after it."""
    ended = False
    for match in _SQL_MARK.finditer(line):
        mark = match[0]
        if open_quote:
            if mark == ("*/" if open_quote == "/*" else open_quote):
                open_quote = ""
        elif mark in ("/*", "'", '"') or (mark[0] == "$" and len(mark) > 1):
            open_quote, ended = mark, False
        elif not mark.startswith("--"):
            ended = mark == ";"
    return ended and not open_quote, open_quote


def _statement(lines: Sequence[str], start: int, end: int) -> CodeBlock:
    first = next((row for row in range(start, end) if _says_sql(lines[row])), start)
    head = "".join(lines[first : min(end, first + 5)])[:LONGEST_LINE]
    match = _SQL_NAME.match(head)
    name = match[1].strip('"`[]') if match else ""
    return CodeBlock(
        kind="statement", name=name, start=start, end=end, signature=signature_from(head.partition("(")[0])
    )


def _says_sql(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("--")


def notebook_cells(lines: Sequence[str]) -> list[CodeBlock]:
    """Cells of a notebook as it is written to disk, one token a line: each from its opening bracket on."""
    starts: list[tuple[int, str]] = []
    depth, cells = 0, False
    for row, line in enumerate(lines):
        for match in _JSON_TOKEN.finditer(line):
            token = match[0]
            if token[0] == '"':
                if depth == 1:
                    cells = token == '"cells"'
                elif cells and depth == 3 and token in ('"code"', '"markdown"', '"raw"') and starts:
                    starts[-1] = (starts[-1][0], token.strip('"'))
            elif token in "{[":
                depth += 1
                if cells and depth == 3 and token == "{":
                    starts.append((row, ""))
            elif token in "}]":
                depth -= 1
    rows = sorted(dict(reversed(starts)).items())
    return [
        CodeBlock(kind="cell", name=name and f"{name} {place}", start=start, end=stop)
        for place, ((start, stop), (_, name)) in enumerate(
            zip(until_next([row for row, _ in rows], len(lines)), rows, strict=True), 1
        )
    ]


READERS: Mapping[str, Callable[[Sequence[str]], list[CodeBlock]]] = {
    "markdown": markdown,
    "rst": rest,
    "json": json_keys,
    "yaml": yaml_keys,
    "toml": toml_keys,
    "ini": toml_keys,
    "sql": sql_statements,
    "notebook": notebook_cells,
}

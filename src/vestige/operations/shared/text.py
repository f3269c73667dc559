"""Text for people: tables that fit the terminal, short ids, and marks for what deserves a colour.

A mark is a private-use character before and after a passage; it has no width, and the command line turns it
into a colour or leaves it out. Pipes get JSON instead of any of this.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from datetime import datetime
from typing import Literal

from vestige.core.events import preview
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern
from vestige.core.timezone import time_text

CELL_CHARS = 72
NARROW = 80
"""The columns of a terminal whose width is unknown."""
SHORT_ID_CHARS = 8
"""Characters of a short id: the end of the id, which is random. UUIDs of one hour begin alike."""
GAP = "  "
ROW_INDENT = "    "
LEAST_CELL = 8
"""Columns that a cell keeps in a table that is too wide."""

Role = Literal["id", "good", "fair", "weak", "warning", "error", "quiet", "strong", "link"]
ROLES: dict[str, Role] = {
    "\uf8d0": "id", "\uf8d1": "good", "\uf8d2": "fair", "\uf8d3": "weak", "\uf8d4": "warning",
    "\uf8d5": "error", "\uf8d6": "quiet", "\uf8d7": "strong", "\uf8d8": "link",
}  # fmt: skip
END = "\uf8df"
MARKS: dict[Role, str] = {role: mark for mark, role in ROLES.items()}
_RIGID = lazy_pattern(rf"{MARKS['id']}|\d{{4}}-\d\d-\d\d")
"""The beginning of a cell that is not cut: half an id or date says nothing."""
_PLACE = lazy_pattern(r"\S+?(:\d{1,7}(?:-\d{1,7})?)")
"""A path with lines. It is cut at its beginning, so that the lines stay."""
_UUID = lazy_pattern(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
_BARE_UUID = lazy_pattern(r"[0-9a-f]{32}")
_ALL_MARKS = lazy_pattern(f"[\uf8d0-{END}]")
_SIZE_UNITS = ("bytes", "KB", "MB", "GB")
_THOUSAND = 1000


# -- The page that is being written: its width, and the ids in its lists


@dataclass(slots=True)
class Page:
    """Text for a terminal of `width` columns. `listed` are the ids of its numbered rows, in order."""

    width: int = NARROW
    listed: list[str] = field(default_factory=list)


_page: ContextVar[Page | None] = ContextVar("page", default=None)


@contextmanager
def page_of(width: int) -> Iterator[Page]:
    """Write text for a terminal of this width inside the block."""
    page = Page(width)
    token = _page.set(page)
    try:
        yield page
    finally:
        _page.reset(token)


def page_width() -> int:
    page = _page.get()
    return page.width if page else NARROW


def row_number(listed_id: str) -> str:
    """The number of a new row of a list, under which a person can name its id: `@1` is the first one."""
    page = _page.get()
    if page is None:
        return ""
    page.listed.append(listed_id)
    return styled("quiet", str(len(page.listed)))


# -- Marks


def styled(role: Role, text: str) -> str:
    return f"{MARKS[role]}{text}{END}" if text else ""


def unmarked(text: str) -> str:
    """The text without marks, as a terminal without colours shows it."""
    return _ALL_MARKS.sub("", text)


def passages(text: str) -> Iterator[tuple[str, Role | None]]:
    """The text in pieces, each with its role."""
    role: Role | None = None
    start = 0
    for found in _ALL_MARKS.finditer(text):
        if found.start() > start:
            yield text[start : found.start()], role
        role, start = ROLES.get(found[0]), found.end()
    if start < len(text):
        yield text[start:], role


def warning(text: str) -> str:
    """A line that warns."""
    return styled("warning", f"! {text}")


def advice(text: str) -> str:
    """A line that says what to do."""
    return styled("good", f"→ {text}")


# -- Width: East Asian characters take two columns, combining ones and marks none


def width_of(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if "\uf8d0" <= character <= END or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def fit(text: str, width: int) -> str:
    """The text in at most `width` columns, cut with an ellipsis; marks stay closed."""
    if width_of(text) <= width:
        return text
    kept, used, is_open = [], 0, False
    for character in text:
        if used + _columns(character) > max(0, width - 1):
            break
        used += _columns(character)
        kept.append(character)
        if character in ROLES or character == END:
            is_open = character != END
    return "".join(kept).rstrip() + "…" + (END if is_open else "")


def padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def wrapped(text: str, width: int) -> str:
    """The text with lines that are too long broken at spaces; a broken line keeps its indentation."""
    return "\n".join(piece for line in text.split("\n") for piece in _broken(line, width))


def _broken(line: str, width: int) -> list[str]:
    if width_of(line) <= width:
        return [line]
    indent = " " * min(len(line) - len(line.lstrip(" ")), width // 2)
    lines, current, mark = [], "", ""
    for word in line.strip(" ").split(" "):
        joined = f"{current} {word}" if current else indent + mark + word
        if current and width_of(joined) > width:
            lines.append(current + (END if mark else ""))
            joined = indent + mark + word
        if width_of(joined) > width:  # a word that is longer than a line
            *full, last = _cuts(word, width - width_of(indent))
            lines += [indent + mark + piece + (END if mark else "") for piece in full]
            joined = indent + mark + last
        current = joined
        for character in word:
            mark = "" if character == END else character if character in ROLES else mark
    return [*lines, current]


def _cuts(word: str, width: int) -> list[str]:
    """The pieces of a word, each as wide as fits, and at least one character."""
    pieces, start, used = [], 0, 0
    for place, character in enumerate(word):
        used += _columns(character)
        if used > width and place > start:
            pieces.append(word[start:place])
            start, used = place, _columns(character)
    return [*pieces, word[start:]]


# -- Tables, fields and boxes


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with aligned columns that fits the page: the widest columns are cut first, ids, dates and the
    lines of a place never. Columns without a value are left out."""
    cells = [[one_line(str("" if cell is None else cell)) for cell in row] for row in rows]
    used = [i for i in range(len(headers)) if not cells or any(row[i] for row in cells)]
    heads = [headers[i] for i in used]
    cells = [[row[i] for i in used] for row in cells]
    natural = [max([width_of(head), *(width_of(row[i]) for row in cells)]) for i, head in enumerate(heads)]
    least = [
        width
        if any(_RIGID.match(row[i]) for row in cells)
        else min(width, max(width_of(head), *(_least_cell(row[i]) for row in cells), LEAST_CELL))
        for i, (head, width) in enumerate(zip(heads, natural, strict=True))
    ]
    widths = column_widths(natural, least, page_width() - len(GAP) * (len(heads) - 1))
    lines = [
        [styled("strong", fit(head, width)) for head, width in zip(heads, widths, strict=True)],
        [styled("quiet", "─" * width) for width in widths],
        *([_fit_cell(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells),
    ]
    return "\n".join(_row(line, widths) for line in lines)


def _least_cell(cell: str) -> int:
    """The columns that a cell needs: a place keeps its lines and the end of its path."""
    place = _PLACE.fullmatch(cell)
    return len(place[1]) + LEAST_CELL // 2 if place else 0


def _fit_cell(cell: str, width: int) -> str:
    """The cell in at most `width` columns; a place is cut at its beginning."""
    if width_of(cell) <= width or not _PLACE.fullmatch(cell):
        return fit(cell, width)
    start = next(at for at in range(len(cell)) if width_of(cell[at:]) < width)
    return "…" + cell[start:]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    *first, last = (padded(cell, width) for cell, width in zip(cells, widths, strict=True))
    return GAP.join([*first, last.rstrip()]).rstrip()


def column_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit into `room`: the widest column gives way first, down to its least width."""
    widths = list(natural)
    while sum(widths) > room:
        shrinking = [i for i, width in enumerate(widths) if width > least[i]]
        if not shrinking:
            break
        widths[max(shrinking, key=lambda i: widths[i])] -= 1
    return widths


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Name and value pairs, one a line, values aligned and wrapped; empty values are left out."""
    shown = [(name, str(value)) for name, value in pairs if value not in (None, "", (), [])]
    width = max((width_of(name) for name, _ in shown), default=0)
    lines = []
    for name, value in shown:
        first, *rest = wrapped(value, max(LEAST_CELL, page_width() - width - len(GAP))).split("\n")
        lines.append(f"{styled('quiet', padded(name, width))}{GAP}{first}")
        lines += [" " * (width + len(GAP)) + line for line in rest]
    return "\n".join(lines)


def box(text: str) -> str:
    """The text in a frame as wide as the page."""
    inner = page_width() - 4
    side, line = styled("quiet", "│"), "─" * (inner + 2)
    middle = [f"{side} {padded(one, inner)} {side}" for one in wrapped(text, inner).split("\n")]
    return "\n".join([styled("quiet", f"╭{line}╮"), *middle, styled("quiet", f"╰{line}╯")])


def listed_lines(number: str, text: str, facts: Iterable[str | None]) -> list[str]:
    """A row of a list: number and text on a line, its facts on the next ones."""
    indent = " " * len(ROW_INDENT)
    head = padded(f"{number}", len(ROW_INDENT) - 1) if number else indent[1:]
    first = f"{head} {fit(one_line(text), page_width() - len(ROW_INDENT))}"
    return [first, *facts_lines(facts)]


def facts_lines(facts: Iterable[str | None]) -> list[str]:
    """Short facts in a row, broken between two of them."""
    lines, room = [""], page_width() - len(ROW_INDENT)
    for fact in facts:
        shown = fit(one_line(fact), room) if fact else ""
        joined = f"{lines[-1]} · {shown}" if lines[-1] else shown
        if not shown:
            continue
        if width_of(joined) > room:
            lines.append(shown)
        else:
            lines[-1] = joined
    return [ROW_INDENT + line for line in lines if line]


def bar(share: float, width: int = 10) -> str:
    """A share from 0 to 1 as a bar."""
    filled = max(0, min(width, round(share * width)))
    return "█" * filled + "░" * (width - filled)


# -- Values


def one_line(text: str) -> str:
    return " ".join(text.split()) if any(sign in text for sign in "\n\r\t\v\f") else text


def clip(text: str, limit: int = CELL_CHARS) -> str:
    """The text on one line, cut to `limit` characters. Marks that a memory's text contains are left out."""
    return preview(unmarked(text), limit)


def short_id(full: str) -> str:
    """An id as people see and type it: the end of a UUID, other ids as they are."""
    return styled("id", full[-SHORT_ID_CHARS:] if _is_uuid(full) else full)


def with_short_ids(text: str) -> str:
    """A text that contains no words of a memory, with its UUIDs shortened."""
    return _UUID.sub(lambda found: short_id(found[0]), text)


def _is_uuid(text: str) -> bool:
    return (_UUID.fullmatch(text) or _BARE_UUID.fullmatch(text)) is not None


def percent(share: float | None) -> str:
    """A share as a whole percentage."""
    return "" if share is None else f"{100 * share:.0f} %"


def strength_share(retention: float) -> float:
    """The strength of a memory for people: 100 % for a new one, which has a retention of 73 %."""
    from vestige.cognition.fsrs.strength import NEW

    return min(1.0, retention / NEW)


def strength(retention: float | None) -> str:
    """How strong a memory is, in the colour of its state. A new memory has 100 %."""
    from vestige.cognition.fsrs.strength import ACTIVE_FROM, DORMANT_FROM

    if retention is None:
        return ""
    role: Role = "good" if retention >= ACTIVE_FROM else "fair" if retention >= DORMANT_FROM else "weak"
    return styled(role, percent(strength_share(retention)))


def size(size_bytes: int) -> str:
    """A size in bytes, in the unit that suits it."""
    amount, unit = float(size_bytes), 0
    while amount >= _THOUSAND and unit < len(_SIZE_UNITS) - 1:
        amount, unit = amount / _THOUSAND, unit + 1
    return f"{amount:.0f} {_SIZE_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_SIZE_UNITS[unit]}"


def day(moment: datetime | None) -> str:
    """A time for a person, in the person's zone and with its name."""
    return "" if moment is None else time_text(moment)


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it belongs."""
    if number == 1:
        return f"1 {noun}"
    changes = noun.endswith("y") and noun[-2:-1] not in "aeiou"  # memories, but keys
    plural = noun[:-1] + "ies" if changes else noun + ("es" if noun.endswith(("ch", "sh", "s", "x")) else "s")
    return f"{number:,} {plural}"

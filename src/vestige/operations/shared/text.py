"""Plain-text tables and lines. The command line adds colour; pipes get JSON instead."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from vestige.core.events import preview

CELL_CHARS = 72


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain table with aligned columns; long cells are cut."""
    cells = [[clip(str("" if cell is None else cell)) for cell in row] for row in rows]
    widths = [max([len(head), *(len(row[i]) for row in cells)]) for i, head in enumerate(headers)]
    lines = ["  ".join(head.ljust(width) for head, width in zip(headers, widths, strict=True)).rstrip()]
    lines.append("  ".join("─" * width for width in widths))
    lines.extend(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join(lines)


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Name and value pairs, one a line, values aligned; empty values are left out."""
    shown = [(name, str(value)) for name, value in pairs if value not in (None, "", (), [])]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in shown)


def clip(text: str, limit: int = CELL_CHARS) -> str:
    """The text on one line, cut to `limit` characters."""
    return preview(text, limit)


def percent(share: float | None) -> str:
    """A share as a whole percentage."""
    return "" if share is None else f"{100 * share:.0f} %"


def day(moment: datetime | None) -> str:
    """A date for a table."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it belongs."""
    if number == 1:
        return f"1 {noun}"
    changes = noun.endswith("y") and noun[-2:-1] not in "aeiou"  # memories, but keys
    plural = noun[:-1] + "ies" if changes else noun + ("es" if noun.endswith(("ch", "sh", "s", "x")) else "s")
    return f"{number:,} {plural}"

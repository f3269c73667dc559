"""A block of a file: lines that declare something, with the blocks inside them."""

from collections.abc import Iterable, Sequence
from dataclasses import field

from vestige.core.lazy_dataclass import dataclass

MOST_SIGNATURE = 300


@dataclass(slots=True, kw_only=True)
class CodeBlock:
    """Lines from `start`, counted from zero, up to `end` without it.

    `others` are names that the same lines declare beside `name`; `members` are the blocks inside, in order.
    `of` is what the name belongs to where the declaration itself says so, such as the receiver of a method.
    """

    kind: str
    name: str
    start: int
    end: int
    signature: str = ""
    others: tuple[str, ...] = ()
    of: str = ""
    members: list["CodeBlock"] = field(default_factory=list)


def signature_from(text: str) -> str:
    """What declares a symbol, on one line and not too long."""
    return " ".join(text[: 4 * MOST_SIGNATURE].split())[:MOST_SIGNATURE].rstrip(" {:=")


def nested(blocks: Iterable[CodeBlock]) -> list[CodeBlock]:
    """Blocks in order of their start, each put into the one around it; the outermost ones.

    One that begins inside another and ends after it begins where that one ends.
    """
    outermost: list[CodeBlock] = []
    around: list[CodeBlock] = []
    for block in blocks:
        while around and (around[-1].end <= block.start or around[-1].end < block.end):
            block.start = max(block.start, min(around.pop().end, block.end - 1))
        (around[-1].members if around else outermost).append(block)
        around.append(block)
    return outermost


def until_next(starts: Sequence[int], end: int) -> list[tuple[int, int]]:
    """The range of each start up to the next one, the last up to the end."""
    return list(zip(starts, [*starts[1:], end][: len(starts)], strict=True))

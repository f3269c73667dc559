"""A graph of memories as a picture: SVG and Mermaid. Labels are data, so nothing in them is ever obeyed."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from vestige.cognition.layout import HEIGHT, WIDTH
from vestige.cognition.links import CONTRADICTS, SILENT

SVG_LABEL_CHARS = 24
"""Of a label in a picture only the beginning is written; the rest shows when the pointer rests on it."""
CENTRE, NODE, LINE, OPPOSED = "#5b21b6", "#8b5cf6", "#94a3b8", "#dc2626"
PLAIN = frozenset(" ,")
"""Beside letters and digits, the characters that mean nothing to Mermaid anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A memory in the picture."""

    id: str
    label: str
    x: float
    y: float
    retention: float
    centre: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A link in the picture, by the numbers of its ends."""

    start: int
    end: int
    kind: str
    weight: float


def svg(spots: Sequence[Spot], lines: Sequence[Line]) -> str:
    """A picture that needs no script and loads nothing."""
    root = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        role="img",
        style="font: 11px sans-serif; background: white",
    )
    ET.SubElement(root, "title").text = "Links between memories"
    for line in lines:
        _draw_line(root, spots[line.start], spots[line.end], line)
    for spot in spots:
        _draw_spot(root, spot)
    return ET.tostring(root, encoding="unicode")


def _draw_line(root: ET.Element, start: Spot, end: Spot, line: Line) -> None:
    drawn = ET.SubElement(
        root,
        "line",
        x1=f"{start.x:.1f}",
        y1=f"{start.y:.1f}",
        x2=f"{end.x:.1f}",
        y2=f"{end.y:.1f}",
        stroke=OPPOSED if line.kind == CONTRADICTS else LINE,
        attrib={"stroke-width": f"{0.5 + 2 * min(1.0, max(0.0, line.weight)):.1f}"},
    )
    if line.kind in SILENT:
        drawn.set("stroke-dasharray", "4 3")
    ET.SubElement(drawn, "title").text = f"{printable(line.kind)} ({line.weight:.2f})"


def _draw_spot(root: ET.Element, spot: Spot) -> None:
    group = ET.SubElement(root, "g", transform=f"translate({spot.x:.1f} {spot.y:.1f})")
    ET.SubElement(group, "title").text = f"{printable(spot.label)} [{printable(spot.id)}]"
    ET.SubElement(
        group,
        "circle",
        r="9" if spot.centre else "6",
        fill=CENTRE if spot.centre else NODE,
        # What fades grows pale, and can still be seen.
        opacity=f"{0.3 + 0.7 * spot.retention:.2f}",
    )
    # Near the right edge a label goes to the left of its spot, so that it is not cut off.
    left = spot.x > WIDTH * 0.75
    label = ET.SubElement(group, "text", x="-12" if left else "12", y="4", fill="#1e293b")
    if left:
        label.set("text-anchor", "end")
    text = printable(spot.label)
    label.text = text if len(text) <= SVG_LABEL_CHARS else text[: SVG_LABEL_CHARS - 1] + "…"


def mermaid(spots: Sequence[Spot], lines: Sequence[Line]) -> str:
    """The graph for whoever draws Mermaid: Markdown in many places."""
    nodes = [
        f'  n{number}{"((" if spot.centre else "["}"{_quoted(spot.label)}"{"))" if spot.centre else "]"}'
        for number, spot in enumerate(spots)
    ]
    links = [f'  n{line.start} -->|"{_quoted(line.kind)}"| n{line.end}' for line in lines]
    return "\n".join(["graph LR", *nodes, *links])


def _quoted(text: str) -> str:
    """The text with every character that Mermaid, Markdown or HTML could take as theirs as a number code."""
    return "".join(char if char.isalnum() or char in PLAIN else f"#{ord(char)};" for char in printable(text))


def printable(text: str) -> str:
    """The text without what cannot be seen: control characters are forbidden in XML, and marks that turn
    the direction of writing disguise what follows."""
    return "".join(char if char.isprintable() else " " for char in text)

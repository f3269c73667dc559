"""Small charts as SVG, drawn by hand: grouped bars, and lines. They need nothing to be looked at."""

import textwrap
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#9aa5b1", "#c9a227", "#d1495b", "#2e86ab", "#1b4965", "#6a994e", "#7b2cbf")
_WIDTH, _HEIGHT = 960, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 64, 72
_LETTER = 6.6
"""About the width of a letter."""
_TICKS = 5

Points = Sequence[tuple[float, float]]


def bars(
    title: str, groups: Sequence[str], series: Mapping[str, Sequence[float | None]], *, unit: str = ""
) -> str:
    """A group of bars per name in `groups`, one bar per series; None leaves a gap."""
    known = [value for values in series.values() for value in values if value is not None]
    top = _nice(max(known, default=1.0))
    step = _inner_width() / max(1, len(groups))
    width = 0.8 * step / max(1, len(series))
    parts = [*_frame(title, list(series), top, unit)]
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        for place, value in enumerate(values):
            if value is None:
                continue
            x = _LEFT + place * step + 0.1 * step + number * width
            y = _y(value, top)
            told = escape(f"{groups[place]}, {name}: {_number(value)}{unit}")
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT - _BOTTOM - y:.1f}" '
                f'fill="{colour}"><title>{told}</title></rect>'
            )
    for place, group in enumerate(groups):
        for number, line in enumerate(textwrap.wrap(group, max(6, int(step / _LETTER)))):
            y = _HEIGHT - _BOTTOM + 16 + 13 * number
            parts.append(_text(_LEFT + (place + 0.5) * step, y, line, "middle", size=11))
    return _drawing(parts)


def lines(
    title: str, series: Mapping[str, Points], *, across: str, up: str, right: float | None = None
) -> str:
    """A line per series over common axes that begin at 0."""
    every = [point for points in series.values() for point in points]
    far = right or _nice(max((x for x, _ in every), default=1.0))
    top = _nice(max((y for _, y in every), default=1.0))
    parts = [*_frame(title, list(series), top, "")]
    for tick in range(_TICKS + 1):
        x = _LEFT + _inner_width() * tick / _TICKS
        parts.append(_text(x, _HEIGHT - _BOTTOM + 18, _number(far * tick / _TICKS), "middle"))
    for number, points in enumerate(series.values()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(
            f"{_LEFT + _inner_width() * x / far:.1f},{_y(y, top):.1f}" for x, y in points if x <= far
        )
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts.append(_text(_LEFT + _inner_width() / 2, _HEIGHT - 12, across, "middle"))
    parts.append(_text(_LEFT, _TOP - 8, up, "start"))
    return _drawing(parts)


def _frame(title: str, names: Sequence[str], top: float, unit: str) -> list[str]:
    parts = [_text(_LEFT, 22, title, "start", size=15)]
    for tick in range(_TICKS + 1):
        value = top * tick / _TICKS
        y = _y(value, top)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#e3e7eb"/>'
        )
        parts.append(_text(_LEFT - 6, y + 4, f"{_number(value)}{unit}", "end"))
    x = float(_LEFT)
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{x:.0f}" y="34" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 14, 43, name, "start"))
        x += 34 + _LETTER * len(name)
    return parts


def _drawing(parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="12">'
    )
    ground = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#27323f">'
        f"{escape(text)}</text>"
    )


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1_000 else f"{value:,.0f}"


def _inner_width() -> int:
    return _WIDTH - _LEFT - _RIGHT


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * min(value, top) / top


def _nice(value: float) -> float:
    """The end of an axis: the least of 1, 2, 2.5, 5 times a power of ten that holds the value."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= value)

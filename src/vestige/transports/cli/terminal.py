"""Output on a terminal: colours, links and progress. `rich` is imported here, and only for a terminal."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID
    from rich.text import Text

    from vestige.operations.shared.text import Role

STYLES: "dict[Role, str]" = {
    "id": "cyan",
    "good": "green",
    "fair": "yellow",
    "weak": "red",
    "warning": "yellow",
    "error": "bold red",
    "quiet": "dim",
    "strong": "bold",
    "link": "underline",
}
COUNTED_FROM = 10
"""The least total whose rate means something: a smaller one counts steps or shares."""


def coloured(marked: str, width: int) -> str:
    """Marked text with the escape codes that this terminal understands; plain if it understands none."""
    from rich.console import Console

    console = Console(file=sys.stdout, width=max(width, 1), highlight=False, emoji=False, markup=False)
    if console.color_system is None:
        from vestige.operations.shared.text import unmarked

        return unmarked(marked)
    with console.capture() as captured:
        console.print(_rich_text(marked), end="", no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    return captured.get()


def _rich_text(marked: str) -> "Text":
    from rich.style import Style
    from rich.text import Text

    from vestige.operations.shared.text import passages

    text = Text()
    for passage, role in passages(marked):
        style = Style.parse(STYLES[role]) if role else Style.null()
        if role == "link":
            style += Style(link=_target(passage))
        text.append(passage, style)
    return text


def _target(text: str) -> str:
    if "://" in text:
        return text
    path = Path(text)
    return path.as_uri() if path.is_absolute() else text


class ProgressLine:
    """Progress on standard error, with rate and time left; silent unless it is a terminal."""

    def __init__(self, *, colour: bool = True) -> None:
        self._watched = sys.stderr.isatty()
        self._colour = colour
        self._shown: RichProgress | None = None
        self._task: TaskID | None = None
        self._what = ""

    def __call__(self, done: float, total: float | None, what: str | None) -> None:
        if not self._watched:
            return
        progress = self._shown or self._begin()
        said = what or "Working"
        if self._task is None or said != self._what:
            if self._task is not None:
                progress.remove_task(self._task)
            self._task, self._what = progress.add_task(said, total=total), said
        progress.update(self._task, completed=done, total=total)

    def _begin(self) -> "RichProgress":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
        from rich.text import Text

        class Rate(ProgressColumn):
            """How many a second, where there are many."""

            def render(self, task: Any) -> Text:
                counted = task.speed is not None and (task.total or 0) >= COUNTED_FROM
                return Text(f"{task.speed:,.0f}/s" if counted else "", style="dim")

        self._shown = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            Rate(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True, no_color=not self._colour, highlight=False),
            transient=True,
        )
        self._shown.start()
        return self._shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._shown.stop()

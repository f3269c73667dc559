"""Pictures of the terminal for the documentation: real output of real commands, drawn as SVG.

    python -m supply.site.recordings            # writes docs/pictures
    python -m supply.site.recordings --check    # fails if a command now prints something else

Each recording starts with an empty memory. Numbers (ids, times, scores) differ from run to run, so a check
compares the text without them. The model must be installed (`vestige model install`).
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from html import escape, unescape
from io import StringIO
from pathlib import Path
from shlex import split

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from supply.requirements import PROJECT

PICTURES = PROJECT / "docs" / "pictures"
COLUMNS = 88
RECORDINGS = {
    "correction": (
        'vestige ingest "Deployments need two approvals."',
        'vestige ingest "Deployments need three approvals."',
        'vestige search "How many approvals does a deployment need?"',
    ),
    "silence": (
        'vestige ingest "Harbour runs on PostgreSQL 14."',
        'vestige ingest "Ada prefers TypeScript over JavaScript."',
        'vestige search "What is the capital of France?"',
    ),
}
# The text of the picture is kept in its description, for readers who do not see it and for the check.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
    <desc>DESCRIPTION</desc>
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
        font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


def record(name: str) -> tuple[str, str]:
    """Run the commands of a recording; returns what the terminal showed, with colours, and as an SVG."""
    shown = ""
    with tempfile.TemporaryDirectory() as home:
        for command in RECORDINGS[name]:
            shown += f"\x1b[1m$ {command}\x1b[0m\n{_output(command, Path(home))}\n"
    text = Text.from_ansi(shown.rstrip())
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(text, soft_wrap=False)
    template = _SVG.replace("DESCRIPTION", escape(text.plain).replace("{", "{{").replace("}", "}}"))
    picture = console.export_svg(
        title="vestige", theme=DIMMED_MONOKAI, code_format=template, unique_id=f"vestige-{name}"
    )
    return text.plain, "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"


def _output(command: str, home: Path) -> str:
    """What a command prints on a terminal of `COLUMNS`, in an environment of its own."""
    words = split(command)
    program = str(Path(sys.executable).with_name(words[0]))
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    environ = {
        "HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8", "TERM": "xterm-256color", "TZ": "UTC",
        "COLUMNS": str(COLUMNS), "LINES": "40", "XDG_CACHE_HOME": cache, "COLORTERM": "truecolor",
    }  # fmt: skip
    master, slave = pty.openpty()
    with subprocess.Popen(
        [program, *words[1:]], cwd=home, env=environ, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL
    ) as process:
        os.close(slave)
        parts = []
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(master)
    if process.returncode:
        raise SystemExit(f"`{command}` failed with {process.returncode}.")
    return b"".join(parts).decode("utf-8").replace("\r\n", "\n")


def comparable(text: str) -> str:
    """A text without what differs from run to run: ids and numbers, and the space that they take."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b(?=[a-z]*\d)[0-9a-z]{4,}\b", "ID", text)
    return re.sub(r"[ ─━█▉-▏]+", " ", re.sub(r"[\d.]+", "0", text))


def description(svg: str) -> str:
    found = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def outdated() -> list[str]:
    """The recordings whose commands now print something else."""
    found = []
    for name in RECORDINGS:
        kept = PICTURES / f"{name}.svg"
        text, _ = record(name)
        if not kept.exists() or comparable(description(kept.read_text(encoding="utf-8"))) != comparable(text):
            found.append(name)
    return found


def main() -> None:
    if "--check" in sys.argv[1:]:
        if names := outdated():
            raise SystemExit(f"Out of date: {', '.join(names)}. Run: python -m supply.site.recordings")
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in RECORDINGS:
        (PICTURES / f"{name}.svg").write_text(record(name)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

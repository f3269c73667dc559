"""What a benchmark hands back: where and with what it ran, its numbers and targets; as JSON and Markdown."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from vestige import __version__

PROJECT = Path(__file__).parent.parent
LIBRARIES = ("mcp", "numpy", "onnxruntime", "orjson", "pydantic", "tokenizers")

Cell = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that must hold: `value` at least (or at most) `limit`."""

    name: str
    value: float
    limit: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of one run: settings of the run, tables of plain rows, targets."""

    benchmark: str
    settings: Mapping[str, Cell]
    tables: Mapping[str, Sequence[Mapping[str, Cell]]]
    targets: Sequence[Target]
    notes: Sequence[str] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    plots: Mapping[str, str] = field(default_factory=dict)
    """SVG by name; they are written beside the JSON file."""

    def json(self, *, command: Sequence[str], taken_at: datetime) -> dict[str, object]:
        """The report with everything needed to compare it with another."""
        return {
            "benchmark": self.benchmark,
            "taken_at": taken_at.isoformat(timespec="seconds"),
            "command": " ".join(command),
            "commit": commit(),
            "machine": machine(),
            "versions": versions(),
            "settings": dict(self.settings),
            "tables": {name: [_rounded(row) for row in rows] for name, rows in self.tables.items()},
            "targets": [{**_rounded(asdict(target)), "met": target.met} for target in self.targets],
            "notes": list(self.notes),
            "skipped": dict(self.skipped),
        }

    def markdown(self) -> str:
        """The tables and targets for a person."""
        facts = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        parts = [f"## {self.benchmark}", facts]
        parts += [f"### {name}\n\n{table(rows)}" for name, rows in self.tables.items() if rows]
        if self.targets:
            parts.append("### Targets\n\n" + table([_judged(target) for target in self.targets]))
        parts += self.notes
        parts += [f"Skipped: {name} ({reason})." for name, reason in self.skipped.items()]
        return "\n\n".join(parts)


def publish(report: Report, out: Path | None, *, page: bool = False) -> None:
    """Print a report, and write it to `out` if there is one: a file, or a folder for a file of its name. A
    report with plots also has a page; `page` asks for one without."""
    print(report.markdown())
    print(f"\n{_where()}")
    if out is not None:
        out = out / f"{report.benchmark}.json" if out.is_dir() else out
        # Whose folders these are is nobody's business, and no help to who runs it again.
        words = ("DIR" if Path(word).is_absolute() else word for word in sys.argv[1:])
        command = ["python", "-m", _module(report), *words]
        told = report.json(command=command, taken_at=datetime.now(UTC))
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if report.plots or page:
            _write_page(report, out, told)


def _module(report: Report) -> str:
    """The module that was started, or under `vestige bench` the one of this benchmark."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    if started is not None and started.name.startswith("benchmarks."):
        return str(started.name).removesuffix(".__main__")
    return f"benchmarks.{report.benchmark}"


def _write_page(report: Report, out: Path, told: Mapping[str, object]) -> None:
    """The report as a Markdown page with its plots, beside the JSON file."""
    images = []
    for name, drawn in report.plots.items():
        path = out.with_name(f"{out.stem}-{name}.svg")
        path.write_text(drawn, encoding="utf-8")
        images.append(f"![{name}]({path.name})")
    taken = f"`{told['command']}` at {told['commit']}, {told['taken_at']}, on {_where()}."
    head, _, body = report.markdown().partition("\n\n")
    page = [head.removeprefix("#"), taken, *images, body, f"All numbers: [{out.name}]({out.name})"]
    out.with_suffix(".md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


def _where() -> str:
    facts = machine()
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['os']}, Python {facts['python']}"


def table(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Rows of the same columns as a Markdown table."""
    columns = list(rows[0])
    lines = [_line(columns), _line("---" for _ in columns)]
    return "\n".join([*lines, *(_line(_shown(row[column]) for column in columns) for row in rows)])


def machine() -> dict[str, Cell]:
    """What the numbers depend on, and nothing that names the machine or its user."""
    memory = None
    if hasattr(os, "sysconf"):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "os": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str]:
    """Vestige and the libraries that matter for speed."""
    found = {"vestige": __version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The commit of the code, marked when there are changes on top of it."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "benchmarks")
    except (OSError, subprocess.CalledProcessError):  # no git, or not a clone
        return None
    return head + ("+changes" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=PROJECT, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _rounded(row: Mapping[str, Cell]) -> dict[str, Cell]:
    return {name: round(cell, 4) if isinstance(cell, float) else cell for name, cell in row.items()}


def _judged(target: Target) -> dict[str, Cell]:
    return {
        "target": target.name,
        "measured": target.value,
        "wanted": f"{'≥' if target.at_least else '≤'} {target.limit:g}",
        "": "met" if target.met else "MISSED",
    }


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 100 else f"{cell:.0f}"
    return str(cell)

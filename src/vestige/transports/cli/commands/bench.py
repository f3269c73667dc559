"""`vestige bench`: the benchmarks, which are in the source but not in the installed package."""

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from vestige.core.errors import InvalidInput, NotFound, nearest_name
from vestige.settings.settings import forget_own_store

NAMES = (
    "quality", "speed", "peers", "gate", "planted", "simulate", "mechanisms", "prediction", "sleep",
    "contention", "http", "scale", "ingest", "startup",
)  # fmt: skip
PACKAGE = "benchmarks"
PROJECT = Path(__file__).parents[5]
"""The project folder, if this runs from the source."""


def bench_command() -> click.Command:
    """Run a benchmark of the source checkout."""  # words after the name are passed to the benchmark
    return click.Command(
        "bench",
        callback=lambda name, words: run(name, words),
        params=[
            click.Argument(["name"], metavar=f"[{'|'.join(NAMES)}]", required=False),
            click.Argument(["words"], metavar="[OPTIONS]…", nargs=-1, type=click.UNPROCESSED),
        ],
        help=f"{run.__doc__}",
        short_help="Run a benchmark of the source checkout.",
        # Its options belong to the benchmark, including `--help` after the name.
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )


def run(name: str | None, words: Sequence[str], *, project: Path = PROJECT) -> None:
    """Run a benchmark: quality, speed, peers, gate, planted, simulate, mechanisms, prediction, sleep,
    contention, http, scale, ingest or startup.

    Words after the name are options of the benchmark, such as --quick or --help.
    """
    if name not in NAMES:
        close = nearest_name(name, NAMES) if name else None
        raise InvalidInput(
            f"There is no benchmark `{name}`." if name else "`bench` needs the name of a benchmark.",
            hint=f"Did you mean `{close}`?" if close else f"One of: {', '.join(NAMES)}.",
            details={"argument": "name", "allowed": list(NAMES)},
        )
    if not (project / PACKAGE / "report.py").is_file():
        raise NotFound(
            "The benchmarks are in the source only, and this is an installed package.",
            hint="Clone the project, run `make model` there, then `.venv/bin/vestige bench` from it.",
        )
    module = f"{PACKAGE}.{name}"
    forget_own_store()
    sys.path.insert(0, str(project))
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)

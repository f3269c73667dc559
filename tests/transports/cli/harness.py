"""Runs the command line in this process, with its streams caught, as `vestige` itself would run it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from click.testing import CliRunner

from vestige.app.app import open_app, open_database, open_ends, open_server
from vestige.transports.cli import run
from vestige.transports.cli.openers import OpenApp, OpenEnds

ENVIRONMENT = {"VESTIGE_EMBEDDINGS_PROVIDER": "hashing", "VESTIGE_OFFLINE": "1"}


class Outcome(NamedTuple):
    """What a command line did."""

    exit_code: int
    stdout: str
    stderr: str


def invoke(
    argv: Sequence[str],
    *,
    open_app: OpenApp = open_app,
    open_ends: OpenEnds = open_ends,
    stdin: bytes | str = b"",
    environ: Mapping[str, str] | None = None,
) -> Outcome:
    """Run `vestige` with these words; its output is no terminal, so it answers in JSON unless told."""
    with CliRunner().isolation(input=stdin, env={**ENVIRONMENT, **(environ or {})}) as (out, err, _):
        code = run(open_app, open_server, open_database, open_ends, argv)
    return Outcome(code, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8"))

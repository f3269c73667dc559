"""`vestige bridge`: the HTTP API of OpenClaw deployments, in front of a `vestige-mcp` process."""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from vestige.core.errors import MissingExtra
from vestige.transports.cli.commands.log_lines import write_for_people
from vestige.transports.cli.commands.server_address import url_for_others, warn_unencrypted
from vestige.transports.cli.session import CliSession

NEEDED = ("starlette", "uvicorn", "websockets", "blake3")


def options() -> list[click.Parameter]:
    return [
        click.Option(["--bind"], metavar="HOST:PORT", help="Address to listen on; port 0 picks a free one.")
    ]


def bridge(session: CliSession, bind: str | None) -> None:
    """Serve the HTTP API that OpenClaw deployments use, in front of a `vestige-mcp` process.

    VESTIGE_AUTH_TOKEN is the token that every request needs; with VESTIGE_ALLOW_ANONYMOUS=true none is
    needed, on a loopback address only. Ctrl-C stops it after running requests finish; a second one stops it
    at once.
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise MissingExtra.named("server", "`vestige bridge`")
    from vestige.app.app import system_clock
    from vestige.transports.bridge import app, auth
    from vestige.transports.bridge.supervisor import Supervisor
    from vestige.transports.http.middleware.access_log import set_up_logs
    from vestige.transports.http.run import listening, url_of

    if bind is not None:
        session.flags["bridge.bind"] = bind
    settings, clock = session.settings(), system_clock()
    token = auth.token_of(settings)
    bind_address = auth.bind_of_bridge(settings, token)
    config = session.flags.get("config")
    command = app.child_command(settings, ["--config", str(Path(config).absolute())] if config else [])
    set_up_logs(settings)
    write_for_people()
    served = app.build(
        app.Bridge(
            settings=settings,
            supervisor=Supervisor(command),
            now=clock.now,
            monotonic=clock.monotonic,
            new_id=clock.new_id,
            token=token,
        )
    )
    with listening(bind_address, only_loopback=token is None) as opened:
        warn_unencrypted(opened, settings)
        local = url_of(opened)
        url = url_for_others(opened, settings.server.allowed_hosts) or local

        def started() -> None:
            value = {"url": url, "local": local, "auth": token is not None}
            session.line(value, lambda: _greeting(url, local))

        app.serve(served, settings, opened, started)
    if sys.stderr.isatty():
        click.echo("The bridge has stopped.", err=True)


def _greeting(url: str, local: str) -> str:
    here = f"\n  On this machine:  {local}" if local != url else ""
    return f"The bridge listens on {url}; press Ctrl-C to stop.{here}"

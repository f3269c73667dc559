"""`vestige bridge`: the HTTP API of OpenClaw deployments, in front of a `vestige-mcp` process."""

import logging
from importlib.util import find_spec
from pathlib import Path

import click

from vestige.errors import MissingExtra
from vestige.transports.cli.session import Session

logger = logging.getLogger(__name__)

NEEDED = ("starlette", "uvicorn", "websockets", "blake3")


def options() -> list[click.Parameter]:
    """The options of the command."""
    return [click.Option(["--bind"], metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")]


def bridge(session: Session, bind: str | None) -> None:
    """Serve the HTTP API that OpenClaw deployments use, in front of a `vestige-mcp` process.

    VESTIGE_AUTH_TOKEN is the token that every request needs; VESTIGE_ALLOW_ANONYMOUS=true lets everybody in.
    Ctrl-C ends it when what runs is done; a second one ends it at once.
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise MissingExtra.named("server", "`vestige bridge`")
    from vestige.app import system_clock
    from vestige.bridge import app, auth, run
    from vestige.bridge.supervisor import Supervisor
    from vestige.transports.http.addresses import bind_of
    from vestige.transports.http.logs import set_up_logs
    from vestige.transports.http.run import listening, url_of

    if bind is not None:
        session.flags["bridge.bind"] = bind
    settings, clock = session.settings(), system_clock()
    token, place = auth.token_of(settings), bind_of(settings.bridge.bind)
    config = session.flags.get("config")
    command = run.child_command(settings, ["--config", str(Path(config).absolute())] if config else [])
    set_up_logs(settings)
    if token is None and not place.loopback:
        logger.warning(
            "The bridge listens on %s and needs no token: WHOEVER REACHES IT READS AND CHANGES EVERY MEMORY.",
            place,
        )
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
    with listening(place, only_loopback=False) as opened:
        url = url_of(opened)

        def started() -> None:
            told = {"url": url, "auth": token is not None}
            session.line(told, lambda: f"The bridge listens on {url}; Ctrl-C ends it.")

        run.serve(served, settings, opened, started)

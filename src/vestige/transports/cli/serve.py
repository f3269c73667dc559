"""`vestige serve`: the memory for other programs and other machines, over HTTP."""

import logging
import sys
from importlib.util import find_spec
from typing import Any

import click
import orjson

from vestige.engine import keys
from vestige.engine.context import Call
from vestige.errors import MissingExtra
from vestige.settings import Settings
from vestige.transports.cli.session import Session, Staying

logger = logging.getLogger(__name__)

NEEDED = ("starlette", "uvicorn", "websockets", "blake3")
FIRST_LABEL = "first key"
PLACEHOLDER = "vst_…"


def options() -> list[click.Parameter]:
    """The options of the command."""
    return [
        click.Option(["--bind"], metavar="HOST:PORT", help="Where to listen; port 0 takes a free one."),
        click.Option(["--no-auth"], is_flag=True, help="Need no key. On loopback addresses only."),
    ]


def serve(session: Session, bind: str | None, no_auth: bool) -> None:
    """Serve the memory over HTTP: MCP at /mcp, REST at /api/v1, live events at /ws.

    It listens on this machine only, unless told otherwise, and needs a key (`vestige keys create`). Ctrl-C
    ends it when what runs is done; a second one ends it at once.
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise MissingExtra.named("server", "`vestige serve`")
    from vestige.transports.http import run
    from vestige.transports.http.logs import set_up_logs

    if bind is not None:
        session.flags["server.bind"] = bind
    if no_auth:
        session.flags["auth.enabled"] = False
    settings = session.settings()
    place = run.check_bind(settings)
    set_up_logs(settings)
    with run.listening(place, only_loopback=not settings.auth.enabled) as opened:
        app = session.open_server(session.flags)
        try:
            if settings.auth.enabled:
                _tell_keys(app, settings)
            url = run.url_of(opened)
            run.serve(app, opened, lambda: _started(session, url, auth=settings.auth.enabled))
        finally:
            app.close()


def _started(session: Session, url: str, *, auth: bool) -> None:
    """Say where the server is, and how to connect to it."""
    told = {"url": url, "mcp": f"{url}/mcp", "api": f"{url}/api/v1", "auth": auth}
    session.line(told, lambda: lines(url, auth=auth))


def lines(url: str, *, auth: bool) -> str:
    """What to do with a server, for people."""
    credential = f"Bearer {PLACEHOLDER}"
    entry: dict[str, Any] = {"type": "http", "url": f"{url}/mcp"}
    command = f"claude mcp add --transport http vestige {url}/mcp"
    if auth:
        entry["headers"] = {"Authorization": credential}
        command += f' --header "Authorization: {credential}"'
    config = orjson.dumps({"mcpServers": {"vestige": entry}}).decode()
    return (
        f"Vestige listens on {url}; Ctrl-C ends it.\n"
        f"  Claude Code:  {command}\n"
        f"  Other MCP clients:  {config}\n"
        f"  REST:  {url}/api/v1/docs"
    )


def _tell_keys(app: Staying, settings: Settings) -> None:
    """Make the first key for somebody who looks; tell others how. A key belongs in no log."""
    store = app.engine.store
    if settings.auth.token.get_secret_value():
        logger.warning(
            "VESTIGE_AUTH_TOKEN is deprecated: whoever has it may read and write everything. Make a key with "
            "`vestige keys create` and unset it."
        )
    elif store.list_keys():
        return
    elif store.read_only or not sys.stderr.isatty():
        click.echo("There is no key yet: `vestige keys create --label NAME` makes one.", err=True)
    else:
        _, text = keys.mint(Call(engine=app.engine), FIRST_LABEL, ["admin"])
        click.echo(f"The first key, which may do everything; it is shown only now:\n\n  {text}\n", err=True)

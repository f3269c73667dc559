"""`vestige dashboard`: the dashboard in the browser, logged in, on a server that runs or is started."""

import threading
import webbrowser
from datetime import datetime

import click

from vestige.core.api_key import ApiKey
from vestige.engine.care import keys
from vestige.engine.context import Call, Engine
from vestige.transports.cli.commands.serve import ASK_SECONDS, Greeting, check_extra, serve_until_stopped
from vestige.transports.cli.commands.server_address import is_vestige
from vestige.transports.cli.openers import ServingApplication
from vestige.transports.cli.session import CliSession

LABEL = "dashboard of this machine"
PERMISSIONS = ("admin",)
# The model and the mechanisms are not needed to log in.
_QUIET = {"embeddings.provider": "off", "mechanisms.autopilot": False}


def options() -> list[click.Parameter]:
    return [
        click.Option(["--bind"], metavar="HOST:PORT", help="Address of the server; port 0 picks a free one."),
        click.Option(
            ["--no-open"], is_flag=True, help="Only print the link, which works once, for a minute."
        ),
    ]


def dashboard(session: CliSession, bind: str | None, no_open: bool) -> None:
    """Open the dashboard in the browser, logged in; starts a server if none runs.

    You need no key: the link in the browser logs in once, within a minute. The login belongs to a key named
    "dashboard of this machine", which `vestige keys revoke` revokes.
    """
    check_extra("`vestige dashboard`")
    from vestige.transports.http import run

    if bind is not None:
        session.flags["server.bind"] = bind
    place = run.check_bind(session.settings())
    url = f"http://{place}"
    if not place.wildcard and is_vestige(url, ASK_SECONDS):
        with session.open(**_QUIET) as app:
            _show(session, app.engine, url, no_open=no_open)
        return

    def started(app: ServingApplication, greeting: Greeting) -> None:
        _show(session, app.engine, greeting.local or greeting.url, no_open=no_open)

    session.flags["server.workers"] = 1
    serve_until_stopped(session, started)


def _show(session: CliSession, engine: Engine, url: str, *, no_open: bool) -> None:
    link = link_to(engine, url, engine.now())
    session.line({"dashboard": link}, lambda: f"The dashboard: {link}")
    if not no_open:
        # A browser in the terminal ends only when its user leaves it, and the server has to answer it.
        threading.Thread(target=webbrowser.open, args=(link,)).start()


def link_to(engine: Engine, url: str, now: datetime) -> str:
    """The address of the dashboard with a ticket in its fragment, which browsers send to no server. The page
    exchanges it for a cookie (ADR 0060)."""
    from vestige.transports.http.auth.cookies import Logins, secret_of

    if not engine.settings.auth.enabled:
        return f"{url}/"
    secret = secret_of(engine.settings, engine.entropy)
    logins = Logins(secret, hours=engine.settings.auth.session_hours, entropy=engine.entropy)
    return f"{url}/#ticket={logins.ticket(_key(engine, now).id, now).text}"


def _key(engine: Engine, now: datetime) -> ApiKey:
    """The key of logins by this command, created on first use. Its text is kept nowhere."""
    known = (key for key in engine.store.list_keys() if key.label == LABEL and key.works_at(now))
    return next(known, None) or keys.mint(Call(engine=engine), LABEL, PERMISSIONS)[0]

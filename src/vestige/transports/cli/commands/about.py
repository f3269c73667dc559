"""Commands about the program itself: `config`, `docs`, `completion`, `version`."""

import platform
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from vestige import __version__
from vestige.core.errors import Conflict, InvalidInput, nearest_name
from vestige.transports.cli.catalog import PAGES
from vestige.transports.cli.options import path_option
from vestige.transports.cli.session import CliSession, write_text

COMPLETE_VARIABLE = "_VESTIGE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def docs_options() -> list[click.Parameter]:
    return [
        click.Argument(["page"], metavar="[PAGE]", required=False, shell_complete=_page_names),
        path_option("--write", "DIR", "Write the generated reference into this project directory.", "dir"),
        path_option("--check", "DIR", "Fail if generated files there are out of date.", "dir"),
    ]


def completion_options() -> list[click.Parameter]:
    return [click.Argument(["shell"], metavar="|".join(SHELLS), required=False)]


def config(session: CliSession) -> None:
    """Show the effective settings, and where each comes from and can be set."""
    from vestige.operations.shared.text import table
    from vestige.settings.effective import effective_settings

    settings = session.settings()
    shown = [
        {
            "name": one.name,
            "value": one.value,
            "source": one.source,
            "environment": one.environment,
            "project": one.project,
        }
        for one in effective_settings(settings)
    ]
    rows = [(s["name"], _written(s["value"]), s["source"]) for s in shown]
    notes = (
        f"File: {settings.file}, or --config FILE. The environment overrides files: "
        "`memory.scope` is VESTIGE_MEMORY_SCOPE.\n"
        "A project's own file may set only some of them: see `vestige docs settings`."
    )
    text = table(("setting", "value", "from"), rows)
    session.answer({"settings": shown}, lambda: f"{text}\n\n{notes}")


def _written(value: Any) -> Any:
    """A value as the settings file writes it."""
    if value in ("None", "()"):
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def show_docs(session: CliSession, page: str | None, write: str | None, check: str | None) -> None:
    """Show a reference page: settings, operations, tools, events, errors or command-line."""
    from vestige.operations.registry.groups import registry
    from vestige.operations.shared.text import count, table
    from vestige.transports import docs
    from vestige.transports.cli import builtin, catalog
    from vestige.transports.cli.main import root_command

    # Of the registry itself: the catalog in the package may be one of the files that are out of date.
    root = root_command(catalog.of_registry(registry, builtin.summaries()))
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
    return [name for name in PAGES if name.startswith(incomplete)]


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
    from vestige.operations.shared.text import fields

    value = {"version": __version__, "python": platform.python_version(), "platform": platform.platform()}
    session.answer(value, lambda: fields((("vestige" if k == "version" else k, v) for k, v in value.items())))

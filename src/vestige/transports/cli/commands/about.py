"""Commands about the program itself: `config`, `docs`, `completion`, `version`."""

import platform
import re
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
MASK = "********"
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+(?=@)")


def docs_options() -> list[click.Parameter]:
    return [
        click.Argument(["page"], metavar="[PAGE]", required=False, shell_complete=_page_names),
        path_option("--write", "DIR", "Write the generated reference into this project directory.", "dir"),
        path_option("--check", "DIR", "Fail if generated files there are out of date.", "dir"),
    ]


def completion_options() -> list[click.Parameter]:
    return [click.Argument(["shell"], metavar="|".join(SHELLS), required=False)]


def config(session: CliSession) -> None:
    """Show the effective settings, and where each can be set."""
    from vestige.operations.shared.text import table
    from vestige.settings.settings import allowed_in_project, documented_fields, environment_name

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
    rows = [(s["name"], _written(s["value"]), "yes" if s["project"] else "no") for s in shown]
    notes = (
        f"Files: {settings.data_dir / 'vestige.toml'}, or --config FILE. The environment overrides files: "
        "`memory.scope` is VESTIGE_MEMORY_SCOPE.\n"
        "A project's own file may only set those marked yes. See `vestige docs settings`."
    )
    text = table(("setting", "value", "project"), rows)
    session.answer({"settings": shown}, lambda: f"{text}\n\n{notes}")


def _written(value: Any) -> Any:
    """A value as the settings file writes it."""
    return str(value).lower() if isinstance(value, bool) else value


def masked(value: Any, *, secret: bool) -> Any:
    """A setting's value as it may be shown."""
    from pydantic import SecretStr

    from vestige.settings.settings import without_password

    if secret:
        return MASK if value else ""
    if isinstance(value, SecretStr):  # a URL that may contain a password
        return without_password(value.get_secret_value())
    return value if isinstance(value, bool | int | float) else _CREDENTIALS.sub(MASK, str(value))


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

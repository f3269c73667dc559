"""`vestige migrate`: upgrades the schema, changes the embedding model, or copies a store."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import click

from vestige.core.errors import InvalidInput
from vestige.engine.context import Call
from vestige.settings.settings import Settings
from vestige.store.contract.trouble import Upgrade
from vestige.transports.cli.commands import reembed as reembedding
from vestige.transports.cli.commands.reembed import Chosen, ModelWork
from vestige.transports.cli.commands.transfer import transfer
from vestige.transports.cli.session import CliSession, ProgressLine, resumable


def options() -> list[click.Parameter]:
    return [
        click.Option(["--dry-run"], is_flag=True, help="Only show what would be done."),
        click.Option(["--reembed"], is_flag=True, help="Embed every memory with the configured model."),
        click.Option(["--rollback"], is_flag=True, help="Return to the model before the last --reembed."),
        click.Option(["--drop-old"], is_flag=True, help="Remove the vectors of the previous model."),
        click.Option(["--provider"], metavar="NAME", help="With --reembed or --rollback: another provider."),
        click.Option(["--model"], metavar="NAME", help="With --reembed or --rollback: another model."),
        click.Option(["--from"], metavar="STORE", help="Copy a store: sqlite, postgres, a path or a URL …"),
        click.Option(["--to"], metavar="STORE", help="… to an empty store of the other kind."),
        click.Option(["--verify-only"], is_flag=True, help="With --from and --to: only compare the two."),
    ]


def migrate(
    session: CliSession,
    dry_run: bool,
    reembed: bool,
    rollback: bool,
    drop_old: bool,
    provider: str | None,
    model: str | None,
    verify_only: bool,
    **moved: str | None,
) -> None:
    """Upgrade the store to this version, change its embedding model, or copy it to another kind of store.

    Opening a store upgrades its schema automatically, after a backup; this command reports the steps, or with
    --dry-run shows them.

    --reembed embeds every memory with the configured model. Other processes search and write with the old
    vectors until the new ones are complete. If interrupted, run it again to continue. The vectors of the
    previous model are kept: --rollback returns to them, after embedding what was written since, and
    --drop-old removes them. With --dry-run these show the work, its duration and the disk space.

    --from and --to copy everything into a store of the other kind and compare it row by row; the source is
    not changed. If interrupted, run it again to continue. Rows that cannot be copied are listed, and the exit
    code is 1.
    """
    works = {ModelWork.REEMBED: reembed, ModelWork.ROLLBACK: rollback, ModelWork.DROP_OLD: drop_old}
    if verify_only or any(moved.values()):
        _check_alone(works)
        ends = _both(moved)
        if not transfer(session, *ends, dry_run=dry_run, verify_only=verify_only):
            click.get_current_context().exit(1)
        return
    settings = session.settings()
    chosen = reembedding.choose(settings, works, provider, model)
    found = _view(session.database().upgrade())
    if chosen is None and dry_run:
        session.answer({"dryRun": True, **found}, lambda: _planned(found))
        return
    if dry_run and found["steps"]:
        # Opening the store would upgrade it.
        raise InvalidInput(
            "The store has an older schema, and a dry run needs the current one.",
            hint="Run `vestige migrate` first, or `vestige migrate --dry-run` to see its steps.",
        )
    done = _work(session, settings, chosen, dry_run=dry_run)
    session.answer(
        {"dryRun": dry_run, **found, **done}, lambda: "\n".join(_lines(found, done, dry_run=dry_run))
    )


def _both(moved: Mapping[str, str | None]) -> tuple[str, str]:
    source, destination = moved["from"], moved["to"]
    if source is None or destination is None:
        raise InvalidInput(
            "--from and --to must be given together.",
            hint="For example: `vestige migrate --from sqlite --to postgres`.",
        )
    return source, destination


def _check_alone(works: Mapping[ModelWork, bool]) -> None:
    if any(works.values()):
        raise InvalidInput(
            "--reembed, --rollback and --drop-old cannot be combined with --from and --to.",
            hint="Vectors are copied unchanged: copy the store first, then change its model.",
        )


def _work(session: CliSession, settings: Settings, chosen: Chosen | None, *, dry_run: bool) -> dict[str, Any]:
    """Open the store, which upgrades it, and do or plan the work."""
    resumes = chosen is not None and chosen.work is not ModelWork.DROP_OLD and not dry_run
    with (
        resumable() if resumes else nullcontext(),
        session.open(**(chosen.flags() if chosen else {})) as app,
        ProgressLine() as progress,
    ):
        if chosen is None:
            return {}
        call = Call(engine=app.engine, progress=progress)
        if dry_run:
            return reembedding.plan(call, chosen.work)
        return reembedding.do(call, chosen, settings)


def _lines(found: Mapping[str, Any], done: Mapping[str, Any], *, dry_run: bool) -> list[str]:
    schema = [] if dry_run else [_done(found)]
    return [
        *schema,
        *(reembedding.lines_of(done, dry_run=dry_run) if done else []),
        *(["Nothing has been changed."] * dry_run),
    ]


def _view(found: Upgrade) -> dict[str, Any]:
    return {
        "schema": found.schema,
        "known": found.known,
        "steps": list(found.steps),
        "backups": None if found.backups is None else str(found.backups),
    }


def _planned(view: Mapping[str, Any]) -> str:
    if not view["steps"]:
        return f"The store has schema {view['schema']}, the current one: nothing to do."
    if not view["schema"]:
        return f"There is no store yet; it would be created with schema {view['known']}."
    backups = [f"A backup would be made in {view['backups']}."] if view["backups"] else []
    steps = [*backups, *(f"{step} would be applied." for step in view["steps"])]
    return "\n".join(
        [
            f"The store has schema {view['schema']}, this version needs {view['known']}.",
            *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
            "Nothing has been changed.",
        ]
    )


def _done(view: Mapping[str, Any]) -> str:
    if not view["steps"]:
        return f"The schema is {view['known']}, the current one."
    if not view["schema"]:
        return f"Created a store with schema {view['known']}."
    backup = f"; the backup is in {view['backups']}" if view["backups"] else ""
    return (
        f"Upgraded the schema from {view['schema']} to {view['known']} ({', '.join(view['steps'])}){backup}."
    )

"""`vestige migrate`: a store of an older schema or of another embedding model is brought up to date."""

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
    """The options of the command."""
    return [
        click.Option(["--dry-run"], is_flag=True, help="Only say what would be done."),
        click.Option(["--reembed"], is_flag=True, help="Embed every memory with the configured model."),
        click.Option(["--rollback"], is_flag=True, help="Go back to the model before the last --reembed."),
        click.Option(["--drop-old"], is_flag=True, help="Remove the vectors of the model before."),
        click.Option(["--provider"], metavar="NAME", help="With --reembed or --rollback: another provider."),
        click.Option(["--model"], metavar="NAME", help="With --reembed or --rollback: another model."),
        click.Option(["--from"], metavar="STORE", help="Carry a store: sqlite, postgres, a path or a URL …"),
        click.Option(["--to"], metavar="STORE", help="… to an empty store of the other kind."),
        click.Option(["--verify-only"], is_flag=True, help="With --from and --to: only compare both."),
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
    """Bring the store up to date with this version, or with another embedding model, or carry it elsewhere.

    Opening a store upgrades its schema by itself, after a backup; this says what was done, or with
    --dry-run what would be.

    With --reembed every memory is embedded with the model of the settings. Searches and writes of other
    processes go on with the vectors in use until the new ones are complete. When it is stopped it goes on
    where it was the next time. The vectors of the model before are kept: --rollback puts them in use
    again, after embedding what was written since, and --drop-old removes them. With --dry-run these say
    what is to be done, how long it takes and how much room it needs.

    With --from and --to everything is carried into a store of the other kind, compared row by row, and the
    source is left as it is. When it is stopped it goes on where it was the next time. What cannot be carried
    is told, and the exit code is 1.
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
    found = _told(session.database().upgrade())
    if chosen is None and dry_run:
        session.answer({"dryRun": True, **found}, lambda: _planned(found))
        return
    if dry_run and found["steps"]:
        # Opening the store would upgrade it.
        raise InvalidInput(
            "What this would do can be told when the store has the schema of this version.",
            hint="Run `vestige migrate` first, or `vestige migrate --dry-run` to see what that would do.",
        )
    done = _work(session, settings, chosen, dry_run=dry_run)
    session.answer(
        {"dryRun": dry_run, **found, **done}, lambda: "\n".join(_lines(found, done, dry_run=dry_run))
    )


def _both(moved: Mapping[str, str | None]) -> tuple[str, str]:
    source, destination = moved["from"], moved["to"]
    if source is None or destination is None:
        raise InvalidInput(
            "--from and --to go together.",
            hint="Say where from and where to: `vestige migrate --from sqlite --to postgres`.",
        )
    return source, destination


def _check_alone(works: Mapping[ModelWork, bool]) -> None:
    if any(works.values()):
        raise InvalidInput(
            "--reembed, --rollback and --drop-old do not go with --from and --to.",
            hint="Vectors are carried as they are: carry the store first, then change its model.",
        )


def _work(session: CliSession, settings: Settings, chosen: Chosen | None, *, dry_run: bool) -> dict[str, Any]:
    """Open the store, which upgrades it, and do what is asked for or only plan it."""
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
        *(reembedding.told(done, dry_run=dry_run) if done else []),
        *(["Nothing has been changed."] * dry_run),
    ]


def _told(found: Upgrade) -> dict[str, Any]:
    return {
        "schema": found.schema,
        "known": found.known,
        "steps": list(found.steps),
        "backups": None if found.backups is None else str(found.backups),
    }


def _planned(told: Mapping[str, Any]) -> str:
    if not told["steps"]:
        return f"The store has schema {told['schema']}, as this version wants it: nothing to do."
    if not told["schema"]:
        return f"There is no store yet; it would be made with schema {told['known']}."
    backups = [f"A backup would be made in {told['backups']}."] if told["backups"] else []
    steps = [*backups, *(f"{step} would be applied." for step in told["steps"])]
    return "\n".join(
        [
            f"The store has schema {told['schema']}, this version wants {told['known']}.",
            *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
            "Nothing has been changed.",
        ]
    )


def _done(told: Mapping[str, Any]) -> str:
    if not told["steps"]:
        return f"The schema is {told['known']}, as it should be."
    if not told["schema"]:
        return f"A store was made, with schema {told['known']}."
    backup = f"; the backup from before is in {told['backups']}" if told["backups"] else ""
    return f"The schema went from {told['schema']} to {told['known']} ({', '.join(told['steps'])}){backup}."

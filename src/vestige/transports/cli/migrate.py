"""`vestige migrate`: a store of an older schema or of another embedding model is brought up to date."""

from collections.abc import Mapping
from typing import Any

import click

from vestige.engine.context import Call
from vestige.engine.rebuild import rebuild
from vestige.errors import InvalidInput
from vestige.operations.prose import count
from vestige.settings import Settings
from vestige.transports.cli.session import ProgressLine, Session, Upgrade

NAMED_MODELS = ("fastembed", "openai")
"""The providers that have more than one model."""


def options() -> list[click.Parameter]:
    """The options of the command."""
    return [
        click.Option(["--dry-run"], is_flag=True, help="Only say what would be done to the schema."),
        click.Option(["--reembed"], is_flag=True, help="Embed every memory with the configured model."),
        click.Option(["--model"], metavar="NAME", help="With --reembed: another model of the provider."),
        click.Option(["--from"], metavar="STORE", hidden=True),
        click.Option(["--to"], metavar="STORE", hidden=True),
    ]


def migrate(session: Session, dry_run: bool, reembed: bool, model: str | None, **moved: str | None) -> None:
    """Bring the store up to date with this version, or with another embedding model.

    Opening a store upgrades its schema by itself, after a backup; this says what was done, or with
    --dry-run what would be. With --reembed every memory is embedded with the model of the settings.
    Searches and writes of other processes go on with the vectors in use until the new ones are complete.
    When it is stopped it goes on where it was the next time.
    """
    settings = session.settings()
    _check(settings, moved, model=model, reembed=reembed, dry_run=dry_run)
    found = session.upgrades(settings.database)
    done: dict[str, Any] = _told(found)
    if dry_run:
        session.answer({"dryRun": True, **done}, lambda: _planned(done))
        return
    flags = {} if model is None else {"embeddings.model": model}
    # The file in place is what counts, whatever kind of store the settings name.
    with session.open(**{"storage.backend": "sqlite", **flags}) as app:
        if reembed:
            with ProgressLine() as progress:
                done["embedded"] = rebuild(Call(engine=app.engine, progress=progress), vectors=True).vectors
            signature = app.engine.store.signature()
            done["model"] = None if signature is None else signature.name
    remark = f"Set embeddings.model to {model!r} in vestige.toml: until then other commands go by words only."
    if model is not None and model != settings.embeddings.model:
        done["note"] = remark
    session.answer({"dryRun": False, **done}, lambda: _done(done))


def _check(
    settings: Settings, moved: Mapping[str, str | None], *, model: str | None, reembed: bool, dry_run: bool
) -> None:
    if any(moved.values()):
        raise InvalidInput(
            "This version cannot move memories between kinds of stores: it has SQLite only.",
            hint="--from and --to are kept for that. `vestige export` carries memories to another place.",
        )
    if model is not None and not reembed:
        raise InvalidInput("--model goes with --reembed.")
    if dry_run and reembed:
        raise InvalidInput(
            "--dry-run tells about the schema only.", hint="Leave out --reembed; nothing is lost by it later."
        )
    if model is not None and settings.embeddings.provider not in NAMED_MODELS:
        raise InvalidInput(
            f"The provider {settings.embeddings.provider} has one model only.",
            hint="Set embeddings.provider to fastembed or openai to choose a model.",
        )


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
    lines = [f"The store has schema {told['schema']}, this version wants {told['known']}."]
    lines += [f"1. A backup would be made in {told['backups']}."]
    lines += [f"{number}. {step} would be applied." for number, step in enumerate(told["steps"], 2)]
    return "\n".join([*lines, "Nothing has been changed."])


def _done(told: Mapping[str, Any]) -> str:
    lines = []
    if told["steps"] and told["schema"]:
        lines.append(
            f"The schema went from {told['schema']} to {told['known']} ({', '.join(told['steps'])});"
            f" the backup from before is in {told['backups']}."
        )
    elif told["steps"]:
        lines.append(f"A store was made, with schema {told['known']}.")
    else:
        lines.append(f"The schema is {told['known']}, as it should be.")
    if "embedded" in told:
        lines.append(f"{count(told['embedded'], 'memory')} embedded; the store's model is {told['model']}.")
    if "note" in told:
        lines.append(f"! {told['note']}")
    return "\n".join(lines)

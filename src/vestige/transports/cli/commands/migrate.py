"""`vestige migrate`: upgrades the schema, changes the embedding model, or copies a store."""

import enum
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import click

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care import reembed
from vestige.engine.care.reembed import ReembedEstimate
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none, store_has_other_model
from vestige.operations.shared.text import count
from vestige.settings.settings import Settings
from vestige.store.contract.answers import ProfileStatus
from vestige.store.contract.trouble import Upgrade
from vestige.transports.cli.commands.transfer import transfer
from vestige.transports.cli.session import CliSession, resumable
from vestige.transports.cli.terminal import ProgressLine

# -- `vestige migrate --reembed`, `--rollback` and `--drop-old`: changes the embedding model of the store

NAMED_MODELS = ("fastembed", "openai")
"""Providers with more than one model."""


class ModelWork(enum.StrEnum):
    """Work on the model of a store, by its option."""

    REEMBED = "--reembed"
    ROLLBACK = "--rollback"
    DROP_OLD = "--drop-old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The work, and the model given for it."""

    work: ModelWork
    provider: str | None = None
    model: str | None = None

    def flags(self) -> dict[str, str]:
        named = {"embeddings.provider": self.provider, "embeddings.model": self.model}
        return {name: value for name, value in named.items() if value is not None}

    def differs_from(self, settings: Settings) -> bool:
        """Whether a model other than that of the settings is given."""
        here = settings.embeddings
        return (self.provider or here.provider, self.model or here.model) != (here.provider, here.model)


def choose(
    settings: Settings, works: Mapping[ModelWork, bool], provider: str | None, model: str | None
) -> Chosen | None:
    """The work that the options select, or None; InvalidInput if they cannot be combined."""
    asked = [work for work, wanted in works.items() if wanted]
    if len(asked) > 1:
        raise InvalidInput(
            f"{asked[0]} and {asked[1]} cannot be combined.", hint="Run them one after the other."
        )
    work = asked[0] if asked else None
    if (provider or model) and work not in (ModelWork.REEMBED, ModelWork.ROLLBACK):
        given = "--provider" if provider else "--model"
        raise InvalidInput(f"{given} needs {ModelWork.REEMBED} or {ModelWork.ROLLBACK}.")
    from_provider = provider or settings.embeddings.provider
    if model is not None and from_provider not in NAMED_MODELS:
        raise InvalidInput(
            f"The provider {from_provider} has only one model.",
            hint="Choose a provider with several: --provider fastembed or --provider openai.",
        )
    return None if work is None else Chosen(work=work, provider=provider, model=model)


def plan(call: Call, work: ModelWork) -> dict[str, Any]:
    match work:
        case ModelWork.REEMBED:
            planned = _outlook(reembed.estimate(call, reembed.model(call)))
        case ModelWork.ROLLBACK:
            planned = _outlook(reembed.estimate_rollback(call))
        case ModelWork.DROP_OLD:
            planned = _dropped(reembed.former(call))
    return {**planned, **_profiles(call)}


def carry_out(call: Call, chosen: Chosen, settings: Settings) -> dict[str, Any]:
    if chosen.work is ModelWork.DROP_OLD:
        return {**_dropped(reembed.drop_former(call)), **_profiles(call)}
    if chosen.work is ModelWork.ROLLBACK:
        embedded = reembed.roll_back(call)
    else:
        embedded = reembed.switch_model(call, reembed.model(call))
    signature = call.engine.store.signature()
    name = None if signature is None else signature.name
    done = {"embedded": embedded, "model": name, **_profiles(call)}
    if chosen.differs_from(settings) or not _is_in_use(call):
        done["note"] = (
            f"Set the embeddings in vestige.toml to those of {name}: until then other commands search by "
            "words only."
        )
    return done


def _is_in_use(call: Call) -> bool:
    """Whether the model of this command is that of the vectors in use."""
    embedder = embedder_or_none(call.engine)
    return embedder is not None and not store_has_other_model(call.engine, embedder)


def lines_of(done: Mapping[str, Any], *, dry_run: bool) -> list[str]:
    lines = []
    if "pieces" in done:
        lines += _outlook_lines(done)
    if "embedded" in done:
        lines.append(f"{count(done['embedded'], 'memory')} embedded; the store's model is {done['model']}.")
    if "former" in done:
        lines.append(_former_line(done["former"], dry_run=dry_run))
    for one in done["profiles"]:
        having = f"{count(one['memories'], 'memory')} in {count(one['pieces'], 'piece')}"
        lines.append(f"{one['state']}: {one['profile']}, {having}")
    if "note" in done:
        lines.append(f"! {done['note']}")
    return lines


def _outlook(seen: ReembedEstimate) -> dict[str, Any]:
    return {
        "model": seen.signature.name,
        "memories": seen.memories,
        "done": seen.done,
        "pieces": seen.pieces,
        "seconds": None if seen.seconds is None else round(seen.seconds, 1),
        "bytes": seen.size_bytes,
    }


def _dropped(left: ProfileStatus | None) -> dict[str, Any]:
    return {"former": None if left is None else _profile(left)}


def _profiles(call: Call) -> dict[str, Any]:
    return {"profiles": [_profile(one) for one in call.engine.store.profiles()]}


def _profile(seen: ProfileStatus) -> dict[str, Any]:
    return {
        "profile": seen.signature.profile,
        "model": seen.signature.name,
        "dimension": seen.signature.dimension,
        "state": seen.state.value,
        "memories": seen.memories,
        "pieces": seen.pieces,
    }


def _outlook_lines(done: Mapping[str, Any]) -> list[str]:
    have = f"{done['done']:,} of {count(done['memories'], 'memory')} have vectors of {done['model']}"
    if not done["pieces"]:
        return [f"{have}; nothing needs embedding."]
    room = f"{done['bytes'] / 1e6:,.1f} MB"
    return [
        f"{have}; {count(done['pieces'], 'piece')} would be embedded, in about {_duration(done['seconds'])}.",
        f"Their vectors need about {room}, besides the existing ones.",
    ]


def _former_line(left: Mapping[str, Any] | None, *, dry_run: bool) -> str:
    if left is None:
        return "There is no previous model."
    memories = count(left["memories"], "memory")
    if dry_run:
        return f"The vectors of {left['profile']}, the previous model, would be removed: {memories}."
    return f"Removed the vectors of {left['profile']}, the previous model: {memories}."


def _duration(seconds: float) -> str:
    for size, noun in ((3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return count(round(seconds / size), noun)
    return count(max(1, round(seconds)), "second")


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
    chosen = choose(settings, works, provider, model)
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
        ProgressLine(colour=session.colour) as progress,
    ):
        if chosen is None:
            return {}
        call = Call(engine=app.engine, progress=progress)
        if dry_run:
            return plan(call, chosen.work)
        return carry_out(call, chosen, settings)


def _lines(found: Mapping[str, Any], done: Mapping[str, Any], *, dry_run: bool) -> list[str]:
    schema = [] if dry_run else [_done(found)]
    return [
        *schema,
        *(lines_of(done, dry_run=dry_run) if done else []),
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

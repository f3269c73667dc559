"""Short ids on the command line: `@1` is the first row of the last list, and part of an id stands for it.

The last list is kept in the data directory, as ids only: a file of texts would survive their deletion.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from click.shell_completion import CompletionItem

from vestige.core.errors import InvalidInput
from vestige.core.patterns import lazy_pattern
from vestige.transports.arguments import Argument
from vestige.transports.cli.session import CliSession

if TYPE_CHECKING:
    from vestige.transports.cli.openers import LocalApplication

SIGN = "@"
SHOWN_CHARS = 8
MOST_KEPT = 1_000
MOST_LISTS = 20
"""Terminals of a user whose last lists are kept."""
LAST_LIST_NAME = lazy_pattern(r"last-list-(\d+|user)(-\d+)?\.(json|\d+\.tmp)")
"""The names of all files that this module writes to the data directory."""


def last_list_file(data_dir: Path) -> Path:
    """The file of the last list in this terminal. Other users, and other terminals of this user, have their
    own."""
    session = f"-{os.getsid(0)}" if hasattr(os, "getsid") else ""
    return data_dir / f"last-list-{_user()}{session}.json"


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def keep_list(data_dir: Path, ids: Sequence[str]) -> None:
    """Keep the ids of a list that was shown. Without permission to write, nothing is kept."""
    if not ids or not data_dir.is_dir():
        return
    with suppress(OSError):
        file = last_list_file(data_dir)
        draft = file.with_suffix(f".{os.getpid()}.tmp")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as written:  # noqa: PTH123  pathlib cannot set the mode of a new file
            written.write(orjson.dumps(list(ids[:MOST_KEPT])))
        draft.replace(file)
        _drop_old(file)


def _drop_old(newest: Path) -> None:
    """Remove the lists of terminals that this user has not used for longest."""
    others = [
        (file.stat().st_mtime_ns, file)
        for file in newest.parent.glob(f"last-list-{_user()}*.json")
        if (name := LAST_LIST_NAME.fullmatch(file.name)) and name[1] == _user() and file != newest
    ]
    for _, file in sorted(others, reverse=True)[MOST_LISTS - 1 :]:
        file.unlink(missing_ok=True)


def last_list(data_dir: Path) -> list[str]:
    try:
        kept = orjson.loads(last_list_file(data_dir).read_bytes())
    except (OSError, ValueError):
        return []
    return [one for one in kept if isinstance(one, str)] if isinstance(kept, list) else []


def from_list(
    session: CliSession, arguments: Iterable[Argument], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The values with `@1` replaced by the id in the last list."""
    ids = {one.name for one in arguments if one.id_of}
    return {
        name: _each(value, partial(_listed, session)) if name in ids else value
        for name, value in values.items()
    }


def in_full(
    app: "LocalApplication", arguments: Iterable[Argument], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The values with parts of ids replaced by the ids."""
    given = dict(values)
    ids = [one for one in arguments if one.id_of and one.name in given]
    if not ids:
        return given
    from vestige.engine.context import Call
    from vestige.engine.memory.short_ids import full_id

    call = Call(engine=app.engine)
    for argument in ids:
        find = partial(full_id, call, str(argument.id_of))
        given[argument.name] = _each(given[argument.name], find)
    return given


def first_words(app: "LocalApplication", arguments: Sequence[Argument], values: Mapping[str, Any]) -> str:
    """How the memories begin that the values name, in quotes."""
    from vestige.engine.context import Call
    from vestige.engine.memory.short_ids import MEMORY
    from vestige.operations.shared.text import clip

    kinds = [one for one in arguments if one.id_of == MEMORY and one.kind != "list"]
    named = in_full(app, kinds, {one.name: values[one.name] for one in kinds if values.get(one.name)})
    found = app.engine.store.get_many(list(named.values()), access=Call(engine=app.engine).access)
    return ", ".join(f'"{clip(record.memory.content)}"' for record in found)


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [change(one) if isinstance(one, str) else one for one in value]
    return change(value) if isinstance(value, str) else value


def _listed(session: CliSession, text: str) -> str:
    number = text.removeprefix(SIGN)
    if not text.startswith(SIGN) or not number.isdecimal():
        return text
    ids = last_list(session.settings().data_dir)
    if 1 <= int(number) <= len(ids):
        return ids[int(number) - 1]
    rows = "1 row" if len(ids) == 1 else f"{len(ids)} rows"
    have = f"The last list has {rows}." if ids else "No list was shown in this terminal yet."
    raise InvalidInput(
        f"There is no row {text}. {have}",
        hint="Show a list first, for example with `vestige ls`.",
        details={"argument": text},
    )


def complete_id(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Rows of the last list, as `@1` or by their short ids."""
    ids = last_list(ctx.ensure_object(CliSession).settings().data_dir)
    rows = [(f"{SIGN}{number}", one) for number, one in enumerate(ids, 1)]
    if incomplete.startswith(SIGN):
        return [CompletionItem(row, help=one) for row, one in rows if row.startswith(incomplete)]
    short = [(one[-SHOWN_CHARS:], one) for one in ids]
    found = [
        CompletionItem(text, help=one)
        for text, one in [*short, *((one, one) for one in ids)]
        if text.startswith(incomplete)
    ]
    return found if incomplete else [CompletionItem(row, help=one) for row, one in rows] + found[: len(ids)]

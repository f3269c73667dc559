"""Obsidian: a vault is a folder of notes, with tags also in the text."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vestige.exchange.importers.notes.markdown import Vault, records
from vestige.exchange.importers.records import Reading, Target

FOLDER = ".obsidian"
"""The folder that makes a folder a vault."""


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=records(path, Vault(target=target, inline_tags=True)))

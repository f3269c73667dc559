"""The part of the store contract about care."""

from datetime import datetime
from pathlib import Path
from typing import Protocol

from vestige.store.contract.trouble import Trouble


class StoreCare(Protocol):
    """Looking after a store: backup, examination, repair, closing."""

    def backup(self, destination: Path) -> None:
        """Write a complete, verified copy to a path that does not exist yet, while others write."""

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        """The problems of this store, from one snapshot; `deep` reads every page. Nothing is changed."""

    def repair(self, repair: str, now: datetime) -> None:
        """Run a repair that `examine` named, on derived data and files only; InvalidInput for any other."""

    def close(self) -> None:
        """Close everything that this store opened. Safe to call twice."""

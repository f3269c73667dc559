"""Locations of clients' files on a machine."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


def _nowhere(_name: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's machine: what decides where a client keeps its settings. `platform` is as in `sys.platform`,
    `config_home` is the folder of program settings if it is not the usual one, and `which` finds a program on
    the user's path."""

    home: Path
    platform: str
    project: Path
    config_home: Path | None = None
    which: Callable[[str], str | None] = _nowhere

    def place(self, template: str) -> Path:
        """The path of a template of the client table on this machine. It starts with `~` (home), `CONFIG`
        (the folder of program settings), or nothing (the project)."""
        first, _, rest = template.partition("/")
        if first == "~":
            return self.home / rest
        if first == "CONFIG":
            return self._settings() / rest
        return self.project / template

    def choose(self, templates: Iterable[str]) -> Path:
        """The first path that exists, or else the first one."""
        places = [self.place(one) for one in templates]
        return next((place for place in places if place.exists()), places[0])

    def has(self, templates: Iterable[str]) -> bool:
        return any(self.place(one).exists() for one in templates)

    def roots(self) -> tuple[Path, ...]:
        """Folders that belong to no client: files of a client are below one of them."""
        return (self.home, self._settings(), self.project)

    def _settings(self) -> Path:
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        usual = self.home / ("AppData/Roaming" if self.platform == "win32" else ".config")
        # The XDG standard requires ignoring a relative path.
        return self.config_home if self.config_home and self.config_home.is_absolute() else usual

"""Where the files of clients are on a machine."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


def _nowhere(_name: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's machine: everything that decides where a client looks for its settings.

    `platform` is as in `sys.platform`, `config_home` where programs keep settings when it is not the usual
    place, and `which` finds a program on the user's path.
    """

    home: Path
    platform: str
    project: Path
    config_home: Path | None = None
    which: Callable[[str], str | None] = _nowhere

    def place(self, template: str) -> Path:
        """The path that a template of the table of clients stands for on this machine.

        It begins with `~` (home), `CONFIG` (where programs keep settings), or nothing (the project).
        """
        first, _, rest = template.partition("/")
        if first == "~":
            return self.home / rest
        if first == "CONFIG":
            return self._settings() / rest
        return self.project / template

    def choose(self, templates: Iterable[str]) -> Path:
        """The first of several places that is there, or else the first one."""
        places = [self.place(one) for one in templates]
        return next((place for place in places if place.exists()), places[0])

    def has(self, templates: Iterable[str]) -> bool:
        """Whether one of these is there."""
        return any(self.place(one).exists() for one in templates)

    def roots(self) -> tuple[Path, ...]:
        """Folders that belong to no client: what a client has is below one of them."""
        return (self.home, self._settings(), self.project)

    def _settings(self) -> Path:
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        usual = self.home / ("AppData/Roaming" if self.platform == "win32" else ".config")
        # A relative one is to be ignored, says the XDG standard.
        return self.config_home if self.config_home and self.config_home.is_absolute() else usual

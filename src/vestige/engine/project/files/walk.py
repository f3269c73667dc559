"""The walk over a project: every file that may be indexed, and why the others may not.

In a git repository git lists the files, so that its own rules decide what is ignored: nested `.gitignore`,
`.git/info/exclude` and the user's excludes. Elsewhere, and where the `.vestigeignore` at the root brings
ignored files back, folders are read here, with the same rules. Links are never followed.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.engine.project.files.fail_safe import (
    LIKELY,
    MAX_FILE_BYTES,
    NEVER,
    OVERRULED,
    SHARED_FOLDER,
    Skip,
    file_reason,
    folder_reason,
)
from vestige.engine.project.files.ignore_rules import IgnoreRule, ignore_rules, verdict
from vestige.engine.project.git import listed_files

OWN = ".vestigeignore"
MAX_IGNORE_BYTES = 1_000_000
MAX_DEPTH = 100
EXAMPLES = 20
"""How many skipped paths of each reason are named."""
_CHECKED = 1_000

Rules = tuple[tuple[IgnoreRule, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """A file of a project, as its folder shows it."""

    path: str
    size: int
    mtime_ns: int
    tracked: bool = False


@dataclass(slots=True, kw_only=True)
class Skips:
    """How many files and folders were left out for each reason, with the first few of them."""

    counts: Counter[Skip] = field(default_factory=Counter)
    examples: dict[Skip, list[str]] = field(default_factory=dict)

    def add(self, reason: Skip, path: str) -> None:
        self.counts[reason] += 1
        named = self.examples.setdefault(reason, [])
        if len(named) < EXAMPLES:
            named.append(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What a walk found: files in the order of their paths, and what it left out. `by_git` is whether git
    listed them."""

    files: list[FileStat]
    skips: Skips
    by_git: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The files that git lists, and the folders that they are in."""

    files: frozenset[str]
    folders: frozenset[str]
    tracked: frozenset[str]
    tracked_folders: frozenset[str]

    @classmethod
    def of(cls, listed: dict[bytes, bool]) -> "_Listing":
        files = {path: tracked for raw, tracked in listed.items() if (path := _decoded(raw)) is not None}
        tracked = frozenset(path for path, is_tracked in files.items() if is_tracked)
        return cls(
            files=frozenset(files),
            folders=frozenset(path[:at] for path in files for at in _slashes(path)),
            tracked=tracked,
            tracked_folders=frozenset(path[:at] for path in tracked for at in _slashes(path)),
        )


def walk(root: Path, check: Callable[[], None] = lambda: None) -> Walked:
    """Walk a project. `check` is called now and then, and may raise to stop."""
    made = _Walk(root, check)
    return made.result()


class _Walk:
    """One walk: the rules of the folders seen so far, and what was found."""

    def __init__(self, root: Path, check: Callable[[], None]) -> None:
        self.root = str(root)
        self.skips = Skips()
        self.files: list[FileStat] = []
        self._check = check
        self._own: dict[str, Rules] = {"": _rules_in(self.root, "", OWN)}
        self._folders: dict[str, Skip | None] = {"": None}
        self._links: dict[str, bool] = {"": False}

    def result(self) -> Walked:
        listed = listed_files(Path(self.root)) if os.path.lexists(f"{self.root}/.git") else None
        by_git = listed is not None
        brings_back = any(rule.negated for rules in self._own[""] for rule in rules)
        if listed is not None and not brings_back:
            self._take_listed(listed)
        else:
            self._take_folders(listed)
        self.files.sort(key=lambda one: one.path)
        return Walked(files=self.files, skips=self.skips, by_git=by_git)

    # -- files that git lists

    def _take_listed(self, listed: dict[bytes, bool]) -> None:
        for number, (raw, tracked) in enumerate(sorted(listed.items())):
            if number % _CHECKED == 0:
                self._check()
            path = _decoded(raw)
            if path is None:
                self.skips.add(Skip.NAME, os.fsdecode(raw).encode("utf-8", "replace").decode())
            elif path.endswith("/"):
                self.skips.add(Skip.SUBMODULE, path)
            elif not self._below_link(path):
                reason = self._folder_of(path, tracked=tracked)
                if reason is None:
                    self._take(path, tracked=tracked)
                else:
                    self.skips.add(reason, path)

    def _below_link(self, path: str) -> bool:
        """Whether a folder on the way to a path is a link: it is tracked, and was replaced by one, which git
        lists too."""
        folder = _above(path)
        known = self._links.get(folder)
        if known is None:
            known = self._below_link(folder) or _is_link(f"{self.root}/{folder}")
            self._links[folder] = known
        return known

    def _folder_of(self, path: str, *, tracked: bool) -> Skip | None:
        """Why nothing in the folder of a path is indexed."""
        folder = _above(path)
        if folder not in self._folders:
            above = self._folder_of(folder, tracked=False)
            self._folders[folder] = above or self._folder_reason(folder)
        reason = self._folders[folder]
        return None if tracked and reason in LIKELY else reason

    # -- folders that are read here

    def _take_folders(self, listed: dict[bytes, bool] | None) -> None:
        known = _Listing.of(listed or {})
        waiting: list[tuple[str, Rules, bool]] = [("", (), listed is not None)]
        while waiting:
            self._check()
            folder, rules, by_git = waiting.pop()
            rules = rules if by_git else (*rules, *_rules_in(self.root, folder, ".gitignore"))
            for name, is_folder in self._entries(folder):
                path = f"{folder}/{name}" if folder else name
                tracked = path in (known.tracked_folders if is_folder else known.tracked)
                reason = self._reason(path, is_folder=is_folder, tracked=tracked)
                seen = by_git and path in (known.folders if is_folder else known.files)
                if reason is None and not seen and self._own_verdict(path, is_folder=is_folder) is not False:
                    reason = Skip.IGNORED if by_git or verdict(rules, path, is_folder=is_folder) else None
                if reason is not None:
                    self.skips.add(reason, path)
                elif not is_folder:
                    self._take(path, tracked=tracked)
                else:
                    # In an ignored folder that was brought back only the rules of its own files hold.
                    waiting.append((path, rules, seen))

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        """Names in a folder, and which of them are folders."""
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(f"{self.root}/{folder}") as entries:
                for entry in entries:
                    if _decoded(os.fsencode(entry.name)) is None:
                        self.skips.add(Skip.NAME, ascii(entry.name))
                    else:
                        found.append((entry.name, entry.is_dir(follow_symlinks=False)))
        except OSError:
            self.skips.add(Skip.UNREADABLE, folder or ".")
        return sorted(found, reverse=True)

    def _reason(self, path: str, *, is_folder: bool, tracked: bool) -> Skip | None:
        """Why a path is left out whether it is ignored or not."""
        if not is_folder:
            return Skip.VESTIGEIGNORE if self._own_verdict(path, is_folder=False) else None
        reason = self._folder_reason(path)
        if reason is not None and not (tracked and reason in LIKELY):
            return reason
        if os.path.lexists(f"{self.root}/{path}/.git"):
            return Skip.SUBMODULE
        return Skip.DEEP if path.count("/") >= MAX_DEPTH else None

    # -- both

    def _own_verdict(self, path: str, *, is_folder: bool) -> bool | None:
        rules = self._own_rules(_above(path))
        return verdict(rules, path, is_folder=is_folder) if rules else None

    def _own_rules(self, folder: str) -> Rules:
        known = self._own.get(folder)
        if known is None:
            above = self._own_rules(_above(folder))
            known = self._own[folder] = (*above, *_rules_in(self.root, folder, OWN))
        return known

    def _folder_reason(self, folder: str) -> Skip | None:
        name = folder[folder.rfind("/") + 1 :]
        if name.lower() in NEVER:
            # Shared memories are tracked, and are read as memories.
            return Skip.SHARED if name.lower() == SHARED_FOLDER else Skip.BUILT
        own = self._own_verdict(folder, is_folder=True)
        if own:
            return Skip.VESTIGEIGNORE
        reason = folder_reason(name)
        return None if own is False and reason in OVERRULED else reason

    def _take(self, path: str, *, tracked: bool) -> None:
        """Keep a file, unless it is one that is never indexed."""
        own = self._own_verdict(path, is_folder=False)
        reason = Skip.VESTIGEIGNORE if own else file_reason(path[path.rfind("/") + 1 :])
        if own is False and reason in OVERRULED:
            reason = None
        if reason is None:
            try:
                seen = os.lstat(f"{self.root}/{path}")
            except (OSError, ValueError) as exc:
                if not isinstance(exc, FileNotFoundError):  # deleted, but still in the index of git
                    self.skips.add(Skip.UNREADABLE, path)
                return
            reason = _kind_reason(seen)
            if reason is None:
                self.files.append(
                    FileStat(path=path, size=seen.st_size, mtime_ns=seen.st_mtime_ns, tracked=tracked)
                )
                return
        self.skips.add(reason, path)


def _kind_reason(seen: os.stat_result) -> Skip | None:
    if stat.S_ISLNK(seen.st_mode):
        return Skip.LINK
    if stat.S_ISDIR(seen.st_mode):
        return Skip.SUBMODULE
    if not stat.S_ISREG(seen.st_mode):
        return Skip.SPECIAL
    return Skip.LARGE if seen.st_size > MAX_FILE_BYTES else None


def _rules_in(root: str, folder: str, name: str) -> Rules:
    """The rules of an ignore file, in reverse order, if the folder has one."""
    path = f"{root}/{folder}/{name}" if folder else f"{root}/{name}"
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return ()
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            rules = ignore_rules(file.read(MAX_IGNORE_BYTES), f"{folder}/" if folder else "")
    except (OSError, ValueError):
        return ()
    return (rules[::-1],) if rules else ()


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_link(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return True


def _above(path: str) -> str:
    """The folder of a path."""
    return path[: path.rfind("/")] if "/" in path else ""


def _slashes(path: str) -> Iterator[int]:
    at = path.find("/")
    while at >= 0:
        yield at
        at = path.find("/", at + 1)

"""The scope of the project that a folder belongs to; two repositories never share one by accident.

A repository keeps its scope: the first write records it in the folder of its version control, which is never
committed or cloned. So a repository that is moved or renamed, or gets another remote, finds its memories. A
copy beside the original becomes a project of its own.
"""

import os
import re
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlsplit

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import PROJECTS_SCOPE, ROOT_SCOPE, covers, normal_scope
from vestige.core.patterns import lazy_pattern

MARKS = (".git", ".hg", ".jj", ".svn")
MAX_CHARS = 1_000_000

# https://host/owner/name.git, ssh://git@host:22/owner/name, and git@host:owner/name.git; a path is not a
# remote.
_REMOTES = (
    lazy_pattern(
        r"^(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[^:/@]+)(?::\d+)?/(?P<path>.+)$", re.IGNORECASE
    ),
    lazy_pattern(r"^(?:[^@/:]+@)?(?P<host>[^:/@\\]{2,}):(?P<path>(?!//)[^:\\]+)$"),
)
UNREADABLE = (OSError, ValueError, RuntimeError)
"""Errors of paths that are too long, contain NUL or form a cycle of links."""


def scope_of(folder: Path) -> str:
    """The scope of the repository around a folder, or the root scope outside any. It is the recorded one,
    else named by path and host of its remote `origin`, so that every clone has the same, else by the folder
    and a hash of its path. No scope of another repository can be below it."""
    root = repository_of(folder)
    if root is None:
        return ROOT_SCOPE
    return _recorded_scope(root) or _named_scope(root)


def record_scope(folder: Path) -> None:
    """Record the scope of the repository around a folder, so that it keeps it. A folder that cannot be
    written to is left as it is."""
    root = repository_of(folder)
    if root is None:
        return
    with suppress(*UNREADABLE):
        control = _control_folder(root)
        record = ScopeRecord(scope=scope_of(root), control=str(control))
        if _record_in(control) == record:
            return
        draft = control / f"{RECORD}.{os.getpid()}"
        draft.write_text(f"{record.scope}\n{record.control}\n", encoding="utf-8")
        draft.replace(control / RECORD)


RECORD = "vestige-scope"
"""The file in the folder of the version control with the scope, and the folder's own path then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRecord:
    scope: str
    control: str


def _recorded_scope(root: Path) -> str | None:
    """The scope that a repository had. None without one, and for a copy whose original is still there."""
    try:
        control = _control_folder(root)
        record = _record_in(control)
        if record is None:
            return None
        original = Path(record.control)
        copied = original != control and _record_in(original) == record
    except UNREADABLE:
        return None
    return None if copied else record.scope


def _record_in(control: Path) -> ScopeRecord | None:
    try:
        scope, path, *_ = _text(control / RECORD).splitlines()
        below = scope == normal_scope(scope) and covers(PROJECTS_SCOPE, scope) and scope != PROJECTS_SCOPE
    except (*UNREADABLE, InvalidInput):
        return None
    return ScopeRecord(scope=scope, control=path) if below else None


def _control_folder(root: Path) -> Path:
    """The folder of the version control: the same one for all worktrees of a repository."""
    mark = next(mark for mark in MARKS if (root / mark).exists())
    return (_git_folder(root) if mark == ".git" else root / mark).resolve()


def _named_scope(root: Path) -> str:
    with suppress(*UNREADABLE):  # a worktree has the name of the main checkout
        control = _control_folder(root)
        root = control.parent if control.name in MARKS else root
    # The name of a folder may not be valid text.
    here = blake2b(os.fsencode(root), digest_size=8).hexdigest()
    name = _remote_name(root) or f"{root.name}~{here[:8]}"
    try:
        return normal_scope(f"{PROJECTS_SCOPE}/{name}") if name.isprintable() else f"{PROJECTS_SCOPE}/{here}"
    except InvalidInput:
        return f"{PROJECTS_SCOPE}/{here}"  # a name that is not valid in a scope


def repository_of(folder: Path) -> Path | None:
    """The root of the version-controlled tree around a folder."""
    try:
        real = folder.resolve()
        return next((place for place in (real, *real.parents) if _marked(place)), None)
    except UNREADABLE:
        return None


def folder_of(uri: str) -> Path | None:
    """The local folder of a `file:` URI, or None for any other URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        return None
    return Path(unquote(parts.path))


def _marked(place: Path) -> bool:
    return any((place / mark).exists() for mark in MARKS)


def _remote_name(root: Path) -> str | None:
    import configparser  # only a repository without a recorded scope needs it

    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        # git indents its entries, which the parser would read as continued lines.
        text = _text(_git_folder(root) / "config")
        config.read_string("\n".join(line.strip() for line in text.splitlines()))
        url = config.get('remote "origin"', "url", fallback=None)
    except (*UNREADABLE, configparser.Error):
        return None
    found = next((match for form in _REMOTES if (match := form.match(url or ""))), None)
    path = found["path"].strip("/").removesuffix(".git").strip("/") if found else ""
    return f"{path}@{found['host'].lower()}" if found and path else None


def _git_folder(root: Path) -> Path:
    """The folder of git's settings; in a worktree a file names it."""
    git = root / ".git"
    if git.is_dir():
        return git
    worktree = root / _text(git).removeprefix("gitdir:").strip()
    common = worktree / "commondir"
    return worktree / _text(common).strip() if common.exists() else worktree


def _text(path: Path) -> str:
    """The text of a small file; reading a pipe or a device would block."""
    if not path.is_file():
        raise OSError(f"{path} is not a file")
    with path.open(encoding="utf-8") as file:
        return file.read(MAX_CHARS)

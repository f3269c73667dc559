"""Which project a folder belongs to, as a scope: two repositories never share one by accident."""

import configparser
import os
import re
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote, urlsplit

from vestige.core.errors import InvalidInput
from vestige.core.models import ROOT_SCOPE, normal_scope

MARKS = (".git", ".hg", ".jj", ".svn")
PROJECTS = "/project"
MAX_CHARS = 1_000_000

# https://host/owner/name.git, ssh://git@host:22/owner/name, and git@host:owner/name.git; a path is no remote.
_REMOTES = (
    re.compile(r"^(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[^:/@]+)(?::\d+)?/(?P<path>.+)$", re.IGNORECASE),
    re.compile(r"^(?:[^@/:]+@)?(?P<host>[^:/@\\]{2,}):(?P<path>(?!//)[^:\\]+)$"),
)
UNREADABLE = (OSError, ValueError, RuntimeError)
"""What a path raises that is too long, holds a NUL or runs in circles."""


def scope_of(folder: Path) -> str:
    """The scope of the repository around a folder, or the root outside any.

    A repository with a remote `origin` is named by its path and host there, so that every clone of it on any
    machine has the same scope. One without is named by its folder and a hash of where that is. Either name
    ends in a part that no other repository's can go on from.
    """
    root = repository_of(folder)
    if root is None:
        return ROOT_SCOPE
    # A folder's name need not be text.
    here = blake2b(os.fsencode(root), digest_size=8).hexdigest()
    name = _remote_name(root) or f"{root.name}~{here[:8]}"
    try:
        return normal_scope(f"{PROJECTS}/{name}") if name.isprintable() else f"{PROJECTS}/{here}"
    except InvalidInput:
        return f"{PROJECTS}/{here}"  # a name that no scope can have


def repository_of(folder: Path) -> Path | None:
    """The root of the version-controlled tree around a folder."""
    try:
        real = folder.resolve()
        return next((place for place in (real, *real.parents) if _marked(place)), None)
    except UNREADABLE:
        return None


def folder_of(uri: str) -> Path | None:
    """The local folder a `file:` URI names, or None for anything else."""
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
    config = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        # git indents its entries, which the parser would take for continued lines.
        text = _text(_git_folder(root) / "config")
        config.read_string("\n".join(line.strip() for line in text.splitlines()))
        url = config.get('remote "origin"', "url", fallback=None)
    except (*UNREADABLE, configparser.Error):
        return None
    found = next((match for form in _REMOTES if (match := form.match(url or ""))), None)
    path = found["path"].strip("/").removesuffix(".git").strip("/") if found else ""
    return f"{path}@{found['host'].lower()}" if found and path else None


def _git_folder(root: Path) -> Path:
    """Where git keeps its settings; a worktree has a file that says where."""
    git = root / ".git"
    if git.is_dir():
        return git
    worktree = root / _text(git).removeprefix("gitdir:").strip()
    common = worktree / "commondir"
    return worktree / _text(common).strip() if common.exists() else worktree


def _text(path: Path) -> str:
    """What a small file says; a pipe or a device in its place would keep us waiting for ever."""
    if not path.is_file():
        raise OSError(f"{path} is no file")
    with path.open(encoding="utf-8") as file:
        return file.read(MAX_CHARS)

"""Questions to git about a work tree: its files, its branch and commit, its history.

Git runs without hooks, file-system monitors, prompts and locks, without the environment of a hook, and may
fetch nothing: the transport of a remote can be a command. A bare repository that lies among the files of a
project is not opened, because anyone who can commit wrote its settings. So reading a repository cannot run
anything that came with it. None is the answer where git is missing, refuses, or takes too long.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.engine.project.files.secrets import without_secrets
from vestige.settings.settings import environment_without

SECONDS = 60.0
_QUIET = (
    "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=",
    "-c", "core.untrackedCache=false", "-c", "safe.bareRepository=explicit",
)  # fmt: skip
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
"""The settings of a repository cannot override these; they can override `protocol.allow`."""
_ASKED = ("%H", "%an", "%as", "%s")
_FIELD, _RECORD = "\x1f", "\x1e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is checked out. `branch` is empty for a detached head, `commit` before the first commit."""

    branch: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCommit:
    """A commit with the files that it changed; its subject is without secrets."""

    commit: str
    author: str
    day: str
    subject: str
    paths: tuple[str, ...] = ()


def listed_files(root: Path) -> dict[bytes, bool] | None:
    """The files that git does not ignore, relative to `root`, and whether each is tracked. What git calls a
    file may have been replaced by a folder or a link since."""
    made = _run(root, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
    if made is None:
        return None
    found: dict[bytes, bool] = {}
    for entry in made.split(b"\0"):
        if len(entry) > 2:
            found[entry[2:]] = entry[:1] != b"?"
    return found


def head_of(root: Path) -> Head | None:
    """The branch and the commit of a work tree."""
    # One question where there is a commit; before the first one, git answers only the single ones.
    made = _run(root, "rev-parse", "--is-inside-work-tree", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
    if made is not None and made.count(b"\n") == 3:
        inside, commit, name, _ = _text(made).split("\n")
        branch = "" if name == "HEAD" else name.removeprefix("refs/heads/")
        return Head(branch=branch, commit=commit) if inside == "true" else None
    return _head_in_parts(root)


def _head_in_parts(root: Path) -> Head | None:
    made = _run(root, "rev-parse", "--is-inside-work-tree")
    if made is None or made.strip() != b"true":
        return None
    name = _run(root, "symbolic-ref", "--quiet", "HEAD") or b""
    commit = _run(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") or b""
    return Head(branch=_text(name).strip().removeprefix("refs/heads/"), commit=_text(commit).strip())


def commits_of(root: Path, *, most: int, paths: tuple[str, ...] = ()) -> list[GitCommit]:
    """The newest commits, of some paths or of all, newest first; without merges."""
    made = _run(
        root, "log", f"-n{most}", "--no-merges", "--no-renames", "--name-only", "-z", "--no-ext-diff",
        "--no-textconv", "--no-show-signature", f"--format={_RECORD}{_FIELD.join(_ASKED)}{_RECORD}", "HEAD",
        "--", *paths,
    )  # fmt: skip
    return [] if made is None else list(_commits(_text(made)))


def text_at(root: Path, commit: str, path: str) -> str | None:
    """The text of a file in a commit."""
    if not commit or commit.startswith("-"):
        return None
    made = _run(root, "cat-file", "blob", f"{commit}:{path}")
    return None if made is None else made.decode("utf-8", "replace")


def _commits(text: str) -> Iterator[GitCommit]:
    pieces = text.split(_RECORD)
    for header, names in zip(pieces[1::2], pieces[2::2], strict=False):
        fields = header.split(_FIELD)
        if len(fields) == 4:
            commit, author, day, subject = fields
            paths = tuple(name.strip("\n") for name in names.split("\0") if name.strip("\n"))
            yield GitCommit(
                commit=commit, author=author, day=day, subject=without_secrets(subject)[0], paths=paths
            )


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _run(root: Path, *words: str) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", *_QUIET, *words],
            cwd=root,
            env=environment_without("GIT_") | _ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None

"""The walk lists what belongs to a project, and says why it leaves out the rest."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.project.conftest import Git
from vestige.engine.project.files.fail_safe import MAX_FILE_BYTES, Skip
from vestige.engine.project.files.walk import walk
from vestige.engine.project.git import Head, commits_of, head_of, text_at

Write = Callable[..., Path]


def paths(root: Path) -> list[str]:
    return [one.path for one in walk(root).files]


def reasons(root: Path) -> dict[str, str]:
    found = walk(root).skips.examples
    return {path: reason.value for reason, names in found.items() for path in names}


def test_files_are_in_the_order_of_their_paths(root: Path, write: Write) -> None:
    for path in ("b.py", "a/z.py", "a/b/c.py", "README.md"):
        write(path)
    assert paths(root) == ["README.md", "a/b/c.py", "a/z.py", "b.py"]


@pytest.mark.parametrize("versioned", [False, True], ids=["folder", "git"])
def test_nested_ignore_files_count(root: Path, write: Write, git: Git, versioned: bool) -> None:
    if not versioned:
        (root / ".git").rename(root.parent / "elsewhere")
    write(".gitignore", "*.log\n/only-here.txt\n")
    write("in/.gitignore", "!keep.log\nsecretly/\n")
    for path in (
        "a.log",
        "in/keep.log",
        "in/other.log",
        "only-here.txt",
        "in/only-here.txt",
        "in/secretly/x.py",
    ):
        write(path)
    assert paths(root) == [".gitignore", "in/.gitignore", "in/keep.log", "in/only-here.txt"]


def test_the_exclude_file_of_the_repository_counts(root: Path, write: Write, git: Git) -> None:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("mine/\n", encoding="utf-8")
    write("mine/notes.md")
    write("a.py")
    assert paths(root) == ["a.py"]


def test_a_tracked_file_counts_although_it_is_ignored(root: Path, write: Write, git: Git) -> None:
    write("gen/made.py")
    write("build/tool.py")
    git("add", "-f", ".")
    write(".gitignore", "gen/\nbuild/\n")
    write("build/output.py")
    assert paths(root) == [".gitignore", "build/tool.py", "gen/made.py"]


def test_vestigeignore_hides_what_git_lists(root: Path, write: Write, git: Git) -> None:
    write(".vestigeignore", "docs/\n*.gen.py\n")
    write("docs/a.md")
    write("x.gen.py")
    write("in/.vestigeignore", "b.py\n")
    write("in/b.py")
    write("in/c.py")
    git("add", ".")
    assert paths(root) == [".vestigeignore", "in/.vestigeignore", "in/c.py"]
    assert reasons(root)["x.gen.py"] == Skip.VESTIGEIGNORE


@pytest.mark.parametrize("versioned", [False, True], ids=["folder", "git"])
def test_vestigeignore_brings_back_what_is_ignored_or_guessed(
    root: Path, write: Write, git: Git, versioned: bool
) -> None:
    if not versioned:
        (root / ".git").rename(root.parent / "elsewhere")
    write(".gitignore", "/made/\n*.txt\n")
    write(".vestigeignore", "!/made/\n!/build/\n!notes.txt\n")
    for path in ("made/a.py", "build/b.py", "dist/c.py", "notes.txt", "other.txt", "made/x.txt", "d.py"):
        write(path)
    write("made/.gitignore", "y.py\n")
    write("made/y.py")
    expected = [
        ".gitignore",
        ".vestigeignore",
        "build/b.py",
        "d.py",
        "made/.gitignore",
        "made/a.py",
        "notes.txt",
    ]
    # In git the rules above a folder that was brought back no longer hold; elsewhere they do.
    assert [path for path in paths(root) if path != "made/x.txt"] == expected


def test_no_pattern_brings_back_a_secret_or_a_binary(root: Path, write: Write) -> None:
    write(".vestigeignore", "!.env\n!*.pem\n!*.png\n!.vestige/\n!*.lock\n")
    for path in (".env", "server.pem", "logo.png", ".vestige/memory.md", "yarn.lock"):
        write(path)
    assert paths(root) == [".vestigeignore", "yarn.lock"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("node_modules/a/index.js", Skip.VENDORED), ("dist/a.js", Skip.BUILT), ("a.min.js", Skip.MINIFIED),
        ("api.pb.go", Skip.GENERATED), ("package-lock.json", Skip.LOCK), (".env.production", Skip.SECRET),
        ("id_rsa", Skip.SECRET), ("cert.PEM", Skip.SECRET), ("photo.JPG", Skip.BINARY),
        ("__pycache__/a.py", Skip.BUILT),
    ],
)  # fmt: skip
def test_what_is_left_out_has_a_reason(root: Path, write: Write, path: str, reason: Skip) -> None:
    write(path)
    write("kept.py")
    found = walk(root)
    assert [one.path for one in found.files] == ["kept.py"]
    assert found.skips.counts == {reason: 1}


def test_an_example_of_an_environment_file_is_no_secret(root: Path, write: Write) -> None:
    write(".env.example", "PORT=80\n")
    assert paths(root) == [".env.example"]


# -- Hostile folders


def test_links_are_never_followed(root: Path, write: Write, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.py").write_text("x = 1\n", encoding="utf-8")
    (root / "out").symlink_to(outside)
    (root / "file.py").symlink_to(outside / "private.py")
    (root / "loop").symlink_to(root)
    (root / "nowhere.py").symlink_to("missing")
    write("a.py")
    assert paths(root) == ["a.py"]
    assert walk(root).skips.counts == {Skip.LINK: 4}


def test_a_tracked_folder_that_became_a_link_is_not_entered(
    root: Path, write: Write, git: Git, tmp_path: Path
) -> None:
    write("in/private.py")
    write("a.py")
    git("add", ".")
    (root / "in").rename(tmp_path / "moved")
    (root / "in").symlink_to(tmp_path / "moved")
    found = walk(root)
    assert [one.path for one in found.files] == ["a.py"]
    assert found.skips.examples[Skip.LINK] == ["in"]


def test_pipes_and_sockets_are_not_opened(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.py")
    monkeypatch.chdir(root)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("door.py")
    write("a.py")
    found = walk(root)
    assert [one.path for one in found.files] == ["a.py"]
    assert found.skips.counts == {Skip.SPECIAL: 2}


def test_a_file_over_the_limit_is_left_out_and_one_of_it_is_not(root: Path, write: Write) -> None:
    for name, size in (("large.txt", MAX_FILE_BYTES + 1), ("fits.txt", MAX_FILE_BYTES)):
        with write(name).open("wb") as file:
            file.truncate(size)
    assert paths(root) == ["fits.txt"]
    assert reasons(root) == {"large.txt": Skip.LARGE}


def test_another_repository_inside_is_left_out(root: Path, write: Write, git: Git) -> None:
    write("sub/.git/HEAD", "ref: refs/heads/main\n")
    write("sub/a.py")
    write("b.py")
    (root / ".git").rename(root.parent / "elsewhere")
    assert paths(root) == ["b.py"]
    assert reasons(root) == {"sub": Skip.SUBMODULE}


def test_a_submodule_is_left_out(root: Path, write: Write, git: Git) -> None:
    git("init", "-q", "lib")
    write("lib/a.py")
    git("-C", "lib", "add", ".")
    git("-C", "lib", "commit", "-qm", "one")
    git("add", "lib")
    write("b.py")
    assert paths(root) == ["b.py"]
    assert reasons(root) == {"lib": Skip.SUBMODULE}


def test_strange_names_are_listed_and_invalid_ones_counted(root: Path, write: Write, git: Git) -> None:
    write("line\nbreak.py")
    write("Same.py")
    write("same.py")
    write('quote".py')
    (root / os.fsdecode(b"bad-\xff.py")).write_text("x = 1\n", encoding="utf-8")
    expected = ["Same.py", "line\nbreak.py", 'quote".py', "same.py"]
    assert paths(root) == expected
    assert walk(root).skips.counts == {Skip.NAME: 1}
    (root / ".git").rename(root.parent / "elsewhere")
    assert paths(root) == expected
    assert walk(root).skips.counts == {Skip.NAME: 1}


def test_deep_folders_end_somewhere(root: Path) -> None:
    folder = root
    for _ in range(150):
        folder = folder / "d"
        folder.mkdir()
        (folder / "a.py").touch()
    found = walk(root)
    assert len(found.files) == 100
    assert found.skips.counts == {Skip.DEEP: 1}


def test_a_folder_without_permission_is_counted(root: Path, write: Write) -> None:
    write("closed/a.py")
    write("b.py")
    (root / "closed").chmod(0)
    try:
        found = walk(root)
        if os.geteuid():  # root may read everything
            assert found.skips.counts == {Skip.UNREADABLE: 1}
        assert "b.py" in [one.path for one in found.files]
    finally:
        (root / "closed").chmod(0o700)


def test_a_deleted_file_that_git_still_lists_is_not_there(root: Path, write: Write, git: Git) -> None:
    write("a.py")
    write("b.py")
    git("add", ".")
    (root / "a.py").unlink()
    assert paths(root) == ["b.py"]


def test_a_repository_runs_nothing_of_its_own(root: Path, write: Write, git: Git, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = write("run.sh", f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o700)
    git("config", "core.fsmonitor", str(script))
    git("config", "filter.evil.clean", str(script))
    write(".gitattributes", "*.py filter=evil\n")
    write("a.py")
    assert "a.py" in paths(root)
    assert not mark.exists()


def test_a_missing_object_is_not_fetched_by_a_command_of_the_repository(
    root: Path, write: Write, git: Git, tmp_path: Path
) -> None:
    """In a partial clone git fetches what is missing, by the transport that its settings name."""
    mark = tmp_path / "ran"
    write("run.sh", f"#!/bin/sh\ntouch {mark}\nexit 1\n").chmod(0o700)
    write("a.py")
    git("add", ".")
    git("commit", "-qm", "Begin")
    tree = git("rev-parse", "HEAD^{tree}").strip()
    (root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.promisor", "true")
    git("config", "remote.origin.url", f"ext::{root / 'run.sh'}")
    git("config", "protocol.ext.allow", "always")

    assert commits_of(root, most=5) == []
    assert text_at(root, "HEAD", "a.py") is None
    assert not mark.exists()


@pytest.mark.parametrize("branch", ["main", "work/face", "a\u2028b", "HEAD"])
def test_the_head_is_the_branch_and_the_commit_if_there_are_some(root: Path, git: Git, branch: str) -> None:
    git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    assert head_of(root) == Head(branch=branch)
    git("commit", "-qm", "Begin", "--allow-empty")
    git("tag", "main")
    commit = git("rev-parse", "HEAD^{commit}").strip()
    assert head_of(root) == Head(branch=branch, commit=commit)
    git("checkout", "-q", "--detach")
    assert head_of(root) == Head(commit=commit)
    assert head_of(root / ".git") is None
    assert head_of(root.parent) is None


def test_a_bare_repository_that_came_as_files_is_no_repository(root: Path, git: Git) -> None:
    """Its settings are files of the project: anybody who can commit wrote them."""
    git("commit", "-qm", "Begin", "--allow-empty")
    planted = root / "docs"
    (root / ".git").rename(planted)
    (planted / "config").write_text("[core]\n\tbare = true\n", encoding="utf-8")

    assert head_of(planted) is None
    assert commits_of(planted, most=5) == []


def test_many_ignore_patterns_of_stars_take_no_longer_than_others(root: Path, write: Write) -> None:
    write(".gitignore", "\n".join("*a" * 200 + "b" for _ in range(50)))
    write("a" * 200 + ".py")
    assert "a" * 200 + ".py" in paths(root)

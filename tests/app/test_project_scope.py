"""Which scope a folder gives."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.world import open_world
from vestige.app.project_scope import folder_of, record_scope, scope_of
from vestige.core.models import covers, normal_scope


def repository(folder: Path, config: str = "") -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(config, encoding="utf-8")
    return folder


def origin(url: str) -> str:
    return f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n\tfetch = +refs/heads/*\n'


def test_a_folder_outside_any_repository_has_the_root_scope(tmp_path: Path) -> None:
    assert scope_of(tmp_path) == "/"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/harbour/crane.git",
        "https://ada:secret@example.org/harbour/crane",
        "git@example.org:harbour/crane.git",
        "git@example.org:/harbour/crane.git",
        "ssh://git@example.org:2222/harbour/crane.git/",
    ],
)
def test_every_clone_of_a_repository_has_the_scope_of_its_origin(tmp_path: Path, url: str) -> None:
    first = repository(tmp_path / "one" / "crane", origin(url))
    second = repository(tmp_path / "two" / "copy", origin("https://example.org/harbour/crane.git"))
    assert scope_of(first) == scope_of(second) == "/project/harbour/crane@example.org"


def test_the_same_path_on_another_host_or_above_is_another_project(tmp_path: Path) -> None:
    urls = ("git@example.org:acme/api.git", "git@example.com:acme/api.git", "git@example.org:acme.git")
    scopes = [scope_of(repository(tmp_path / str(n), origin(url))) for n, url in enumerate(urls)]
    assert len(set(scopes)) == 3
    assert not any(covers(one, other) for one in scopes for other in scopes if one != other)


@pytest.mark.parametrize(
    "url", ["../origin.git", "/srv/git/crane.git", "C:\\git\\crane", "file:///srv/crane.git"]
)
def test_a_remote_on_the_same_disk_names_nothing(tmp_path: Path, url: str) -> None:
    first, second = (repository(tmp_path / name / "crane", origin(url)) for name in "ab")
    assert scope_of(first).startswith("/project/crane~")
    assert scope_of(first) != scope_of(second)


def test_a_folder_deep_in_a_repository_has_its_scope(tmp_path: Path) -> None:
    root = repository(tmp_path / "crane")
    (root / "src" / "deep").mkdir(parents=True)
    assert scope_of(root / "src" / "deep") == scope_of(root)


def test_two_repositories_of_the_same_name_without_a_remote_have_different_scopes(tmp_path: Path) -> None:
    first, second = repository(tmp_path / "a" / "api"), repository(tmp_path / "b" / "api")
    assert scope_of(first).startswith("/project/api~")
    assert scope_of(first) != scope_of(second)


def test_a_worktree_has_the_scope_of_its_repository(tmp_path: Path) -> None:
    root = tmp_path / "main"
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run([*git, str(root), "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    url = "https://example.org/harbour/crane.git"
    subprocess.run([*git, str(root), "remote", "add", "origin", url], check=True)
    subprocess.run([*git, str(root), "worktree", "add", "-q", str(tmp_path / "side")], check=True)
    assert scope_of(tmp_path / "side") == scope_of(root) == "/project/harbour/crane@example.org"


@pytest.mark.parametrize("config", ["not a config", '[remote "origin"]\n\turl\n', "\ufeff[", "[a\n[b"])
def test_a_broken_git_config_falls_back_to_the_folder(tmp_path: Path, config: str) -> None:
    root = repository(tmp_path / "crane", config)
    assert scope_of(root).startswith("/project/crane~")


def test_a_folder_whose_name_is_no_scope_still_gets_one(tmp_path: Path) -> None:
    scope = scope_of(repository(tmp_path / " spaced "))
    assert scope == normal_scope(scope) != "/"


@pytest.mark.skipif(os.name != "posix", reason="needs pipes and names that are no text")
def test_pipes_and_names_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "pipe" / ".git").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe" / ".git" / "config")
    (tmp_path / "other").mkdir()
    os.mkfifo(tmp_path / "other" / ".git")
    bad = Path(os.fsdecode(bytes(tmp_path) + b"/bad\xff"))
    (bad / ".git").mkdir(parents=True)
    evil = repository(tmp_path / "evil", origin("https://example.org/a\x01b.git"))
    for folder in (tmp_path / "pipe", tmp_path / "other", bad, evil):
        scope = scope_of(folder)
        assert scope == normal_scope(scope) != "/"
        assert scope.isprintable()


def test_a_root_is_a_local_file_address_or_nothing(tmp_path: Path) -> None:
    assert folder_of("file:///home/ada/my%20code") == Path("/home/ada/my code")
    assert folder_of("file://localhost/srv") == Path("/srv")
    assert folder_of("https://example.org/x") is None
    assert folder_of("file://elsewhere/x") is None
    assert folder_of("nonsense") is None
    assert folder_of("file://[") is None


def test_a_folder_that_cannot_be_read_has_the_root_scope(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert scope_of(tmp_path / "circle") == "/"
    assert scope_of(Path("/a\0b")) == "/"
    assert scope_of(Path("/" + "x" * 5000)) == "/"


# -- A repository keeps its scope


def test_a_repository_that_is_moved_or_gets_another_remote_keeps_its_scope(tmp_path: Path) -> None:
    root = repository(tmp_path / "crane")
    before = scope_of(root)
    record_scope(root)
    moved = root.rename(tmp_path / "derrick")
    assert scope_of(moved) == before
    record_scope(moved)
    (moved / ".git" / "config").write_text(
        origin("https://example.org/harbour/derrick.git"), encoding="utf-8"
    )
    assert scope_of(moved) == before
    again = moved.rename(tmp_path / "hoist")
    assert scope_of(again / ".git" / "..") == before


def test_a_copy_beside_the_original_is_a_project_of_its_own(tmp_path: Path) -> None:
    root = repository(tmp_path / "crane")
    record_scope(root)
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    assert scope_of(copy) != scope_of(root)
    record_scope(copy)
    assert scope_of(copy).startswith("/project/copy~")
    shutil.rmtree(root)
    assert scope_of(copy).startswith("/project/copy~")


def test_worktrees_without_a_remote_share_the_scope_of_the_main_checkout(tmp_path: Path) -> None:
    root = tmp_path / "main"
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run([*git, str(root), "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, str(root), "worktree", "add", "-q", str(tmp_path / "side")], check=True)
    assert scope_of(tmp_path / "side").startswith("/project/main~")  # also before anything is recorded
    record_scope(tmp_path / "side")
    assert scope_of(tmp_path / "side") == scope_of(root)


@pytest.mark.parametrize(
    "text", ["", "/user\n/x\n", "/project\n/x\n", "not a scope\n", "/project/a\0b\n/x\n"]
)
def test_a_record_that_names_no_project_is_ignored(tmp_path: Path, text: str) -> None:
    root = repository(tmp_path / "crane")
    (root / ".git" / "vestige-scope").write_text(text, encoding="utf-8")
    assert scope_of(root).startswith("/project/crane~")


def test_the_first_write_records_the_scope_and_reading_does_not(tmp_path: Path) -> None:
    root = repository(tmp_path / "crane")
    with open_world(tmp_path / "data", place=root) as world:
        world.find("oak")
        assert not (root / ".git" / "vestige-scope").exists()
        scope = world.call("smart_ingest", content="The mast is oak.")["scope"]
    moved = root.rename(tmp_path / "derrick")
    with open_world(tmp_path / "data", place=moved) as world:
        assert world.call("smart_ingest", content="The keel is lead.")["scope"] == scope


def test_a_repository_that_cannot_be_written_to_is_left_as_it_is(tmp_path: Path) -> None:
    record_scope(tmp_path)  # no repository
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("gitdir: /nowhere/at/all\n", encoding="utf-8")
    record_scope(tmp_path / "odd")
    assert scope_of(tmp_path / "odd").startswith("/project/odd~")

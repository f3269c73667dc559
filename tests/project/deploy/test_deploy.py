"""The image and the compose files of deploy/: what runs is confined, and an empty secret starts nothing."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from testbed.failures import each
from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from vestige import __version__
from vestige.settings.settings import unknown_variables
from vestige.transports.cli.main import root_command

DEPLOY = PROJECT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
ENTRYPOINT = DEPLOY / "image" / "entrypoint.sh"
HEALTHY = DEPLOY / "image" / "healthy.py"
TOOLS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
SECRETS = (
    "VESTIGE_DATABASE_URL", "VESTIGE_AUTH_TOKEN", "VESTIGE_SESSION_SECRET", "VESTIGE_EMBEDDINGS_API_KEY",
    "PGPASSWORD",
)  # fmt: skip

Tree = dict[str, Any]  # what a YAML file holds


def read_compose(name: str) -> Tree:
    found: Tree = yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))
    return found


COMPOSE = {name: read_compose(name) for name in ("compose.yaml", "compose.sqlite.yaml")}
SERVICES = [
    pytest.param(service, id=f"{file}-{name}")
    for file, tree in COMPOSE.items()
    for name, service in tree["services"].items()
]


# -- the image -----------------------------------------------------------------------------------------


def test_the_dockerfile_has_nothing_its_linter_would_mention() -> None:
    hadolint = shutil.which("hadolint", path=TOOLS)
    if hadolint is None:
        pytest.skip("THE DOCKERFILE IS NOT LINTED: there is no hadolint for this platform")
    done = subprocess.run(
        [hadolint, DEPLOY / "Dockerfile"], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_a_user_with_a_number_that_is_not_root() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE) == ["1000:1000"]


def test_the_builder_is_sent_what_the_dockerfile_copies_and_nothing_private() -> None:
    rules = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    assert rules[0] == "*", "everything is left out that is not named"
    sent = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    copied = [
        word
        for line in re.findall(r"^COPY (?!.*--from)(.*)$", DOCKERFILE, re.MULTILINE)
        for word in line.split()[:-1]
        if not word.startswith("--")
    ]
    for path in copied:
        assert (DEPLOY.parent / path).exists(), path
        assert any(fnmatch(path, rule) or path.startswith(f"{rule}/") for rule in sent), path
    assert not any(path.startswith(rule) for rule in sent for path in (".git", ".env", "deploy/secrets"))


def enter(environ: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command by way of the image's entrypoint, in this environment alone."""
    return subprocess.run(
        ["/bin/sh", ENTRYPOINT, *words],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_comes_from_a_file_and_the_name_of_the_file_is_gone(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cr3t $HOME `id` 'x'\n", encoding="utf-8")
    done = enter({f"{name}_FILE": str(file)}, "env")
    assert f"{name}=s3cr3t $HOME `id` 'x'" in done.stdout.splitlines()
    assert f"{name}_FILE" not in done.stdout


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("empty", ["", " ", "\n\t\n"])
def test_an_empty_secret_starts_nothing(name: str, empty: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(empty, encoding="utf-8")
    for environ in ({f"{name}_FILE": str(file)}, {name: empty}):
        done = enter(environ, "echo", "started")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{name} is empty" in done.stderr


def test_a_secret_that_is_missing_or_given_twice_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    missing = enter({"PGPASSWORD_FILE": str(file)}, "echo", "started")
    file.write_text("one", encoding="utf-8")
    twice = enter({"PGPASSWORD_FILE": str(file), "PGPASSWORD": "other"}, "echo", "started")
    assert (missing.returncode, missing.stdout, twice.returncode, twice.stdout) == (2, "", 2, "")
    assert "cannot be read" in missing.stderr
    assert "both set" in twice.stderr
    assert "other" not in twice.stderr


def test_without_secrets_the_command_runs_with_its_words_and_its_exit_code() -> None:
    done = enter({}, "sh", "-c", 'printf "%s|" "$@"; exit 7', "sh", "a b", "", "*")
    assert (done.returncode, done.stdout) == (7, "a b||*|")


@pytest.fixture
def answering() -> Iterator[tuple[int, list[int]]]:
    """A server's port, and a list whose last number is the status that it answers to /health."""
    status = [200]

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status[-1] if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, status
        finally:
            server.shutdown()
            thread.join()


def healthy(port: int) -> int:
    environ = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    return subprocess.run(
        [sys.executable, HEALTHY, str(port)], env=environ, timeout=PATIENCE_SECONDS, check=False
    ).returncode


def test_a_container_is_healthy_while_its_server_says_so(answering: tuple[int, list[int]]) -> None:
    port, status = answering
    assert healthy(port) == 0
    status.append(503)
    assert healthy(port) == 1


def test_a_container_in_which_nobody_listens_is_not_healthy() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # it has the port, so that nobody else listens there
        assert healthy(silent.getsockname()[1]) == 1


# -- compose -------------------------------------------------------------------------------------------


@each("service", SERVICES)
def test_a_service_is_confined(service: Tree) -> None:
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
    assert service["pids_limit"] > 0
    assert service["mem_limit"]


@each("service", SERVICES)
def test_a_service_that_stays_is_watched_and_started_again(service: Tree) -> None:
    stays = service["restart"] == "unless-stopped"
    assert stays == ("test" in service["healthcheck"])
    assert stays or service["healthcheck"] == {"disable": True}


@each("service", SERVICES)
def test_an_image_is_named_with_its_version(service: Tree) -> None:
    assert re.search(r":(\$\{\w+:-)?\d+\.\d+\.\d+", service["image"]), service["image"]


@each("service", SERVICES)
def test_a_service_is_reached_from_this_machine_only(service: Tree) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert service.get("network_mode", "none") == "none"


@each("service", SERVICES)
def test_no_secret_is_in_the_environment_of_a_service(service: Tree) -> None:
    for name, value in service["environment"].items():
        if name.endswith("_FILE"):
            assert Path(value).name in service["secrets"]
        else:
            assert not re.search("PASSWORD|TOKEN|SECRET|KEY", name)
            assert not re.search(r"//[^/@]*:[^/@]*@", value), f"{name} holds a password"


@each("service", SERVICES)
def test_the_settings_of_a_service_exist(service: Tree) -> None:
    names = {name.removesuffix("_FILE") for name in service["environment"]}
    assert unknown_variables(dict.fromkeys(names, "x")) == []


def test_the_database_has_no_port_on_the_host_and_no_way_out() -> None:
    tree = COMPOSE["compose.yaml"]
    assert "ports" not in tree["services"]["postgres"]
    assert tree["services"]["postgres"]["networks"] == ["database"]
    assert tree["networks"]["database"] == {"internal": True}


def test_whatever_serves_waits_for_the_schema_and_the_schema_for_the_database() -> None:
    services = COMPOSE["compose.yaml"]["services"]
    assert services["schema"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("cli", "server", "bridge"):
        assert services[name]["depends_on"]["schema"] == {"condition": "service_completed_successfully"}


def test_without_a_profile_the_database_and_its_schema_are_started() -> None:
    services = COMPOSE["compose.yaml"]["services"]
    assert {name for name, service in services.items() if "profiles" not in service} == {"postgres", "schema"}


@pytest.mark.parametrize("service", [one for one in SERVICES if "postgres" not in str(one.id).split("-")])
def test_what_a_service_runs_is_a_command_with_such_options(service: Tree) -> None:
    program, *words = service["command"]
    assert program == "vestige"
    command: click.Command = root_command()
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None
        command = found
    command.make_context("vestige", words)  # which reads them all, or refuses


def test_the_image_has_what_the_server_and_the_bridge_need() -> None:
    [extras] = re.findall(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    assert {"postgres", "server"} <= set(extras.split(","))


def test_memories_in_sqlite_are_on_a_volume() -> None:
    tree = COMPOSE["compose.sqlite.yaml"]
    assert list(tree["volumes"]) == ["memories"]
    for service in tree["services"].values():
        assert service["volumes"] == ["memories:/data"]


def test_the_script_makes_every_file_that_compose_mounts_and_keeps_what_is_there(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "secrets.sh", tmp_path)
    folder = tmp_path / "secrets"
    subprocess.run(["/bin/sh", tmp_path / "secrets.sh"], capture_output=True, check=True)
    made = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    mounted = {
        Path(entry["file"]).name
        for tree in COMPOSE.values()
        for kind in ("secrets", "configs")
        for entry in tree.get(kind, {}).values()
    }
    assert set(made) == mounted
    assert all(re.fullmatch("[0-9a-f]{32,}", text) for text in made.values())
    assert len(set(made.values())) == len(made)
    assert folder.stat().st_mode & 0o777 == 0o700

    (folder / "bridge_token").chmod(0o600)
    (folder / "bridge_token").write_text("", encoding="utf-8")
    subprocess.run(["/bin/sh", tmp_path / "secrets.sh"], capture_output=True, check=True)
    again = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert again["bridge_token"], "an empty one is made again"
    assert {**again, "bridge_token": made["bridge_token"]} == made


def test_the_version_is_that_of_the_package() -> None:
    text = "".join((DEPLOY / name).read_text(encoding="utf-8") for name in COMPOSE) + DOCKERFILE
    named = re.findall(r"(?:VESTIGE_VERSION:-|-t vestige:)([\d.]+)", text)
    assert set(named) == {__version__}


def compose_command() -> list[str] | None:
    """How compose is called here: as a part of docker, as a program of its own, or not at all."""
    for words in (["docker", "compose"], ["docker-compose"]):
        program = shutil.which(words[0], path=TOOLS)
        if program is None:
            continue
        command = [program, *words[1:]]
        if (
            subprocess.run(
                [*command, "version"], capture_output=True, timeout=PATIENCE_SECONDS, check=False
            ).returncode
            == 0
        ):
            return command
    return None


@pytest.mark.slow
@pytest.mark.parametrize("file", COMPOSE)
def test_compose_itself_accepts_the_file(file: str) -> None:
    command = compose_command()
    if command is None:
        pytest.skip("THE COMPOSE FILES ARE NOT READ BY COMPOSE ITSELF: it is not on this machine")
    words = [*command, "--file", str(DEPLOY / file), "--profile", "*", "config", "--quiet"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")

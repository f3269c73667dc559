"""The supply chain: every package that is installed is pinned with its hashes, and listed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from pip._vendor.packaging.markers import default_environment
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

from supply.lock import locked, pins, written
from supply.requirements import CONSTRAINTS, LOCK, PROJECT, of_adapters, pyproject, requirements
from supply.sbom import EXCLUDED, OPTIONAL, REQUIRED, bill
from vestige import __version__
from vestige.embed.minilm.weights import MINILM

EXTRAS = [name for name in pyproject()["project"]["optional-dependencies"] if name != "all"]
PLATFORMS = [
    {"sys_platform": system, "platform_system": name, "os_name": "posix", "platform_machine": machine}
    for system, name, machine in (
        ("linux", "Linux", "x86_64"),
        ("linux", "Linux", "aarch64"),
        ("darwin", "Darwin", "arm64"),
    )
]
PYTHONS = ["3.11", "3.12", "3.13"]


FOLDERS = [PROJECT, PROJECT / "integrations", PROJECT / "integrations" / "crewai"]
"""Folders with a lock file: that of the project, and those of the adapters' tests."""
of_every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@of_every_folder
def test_the_lock_file_has_the_versions_of_the_constraints(folder: Path) -> None:
    versions = {name: version for name, (version, _) in locked(folder / LOCK.name).items()}
    assert versions == pins(folder / CONSTRAINTS.name)


@of_every_folder
def test_every_package_has_hashes_and_the_file_is_as_the_generator_writes_it(folder: Path) -> None:
    found = locked(folder / LOCK.name)
    hashes = [one for _, some in found.values() for one in some]
    assert all(some for _, some in found.values())
    assert all(re.fullmatch(r"[0-9a-f]{64}", one) for one in hashes)
    assert len(hashes) > 2_000  # the files of every platform, not of one
    assert (folder / LOCK.name).read_text(encoding="utf-8") == written(found)


@of_every_folder
def test_the_lock_file_names_no_place(folder: Path) -> None:
    text = (folder / LOCK.name).read_text(encoding="utf-8")
    assert not re.search(r"://|--index|--extra-index|--find-links|@", text)


@pytest.mark.parametrize("name", ["langgraph", "llamaindex", "openai_agents", "pydantic_ai", "crewai"])
def test_an_adapter_has_the_version_of_vestige_and_what_it_requires_is_locked(name: str) -> None:
    folder = PROJECT / "integrations" / name
    assert tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["version"] == __version__
    lock = locked((folder if name == "crewai" else folder.parent) / LOCK.name)
    wanted = {
        canonicalize_name(Requirement(one).name) for one in [*of_adapters([name]), *requirements([], [])]
    }
    assert wanted - set(lock) == set()


def test_the_hashes_of_all_files_of_a_version_come_from_the_index_that_pip_is_set_to(tmp_path: Path) -> None:
    files = {
        "a_b-1.0-py3-none-any.whl": "1" * 64,
        "a_b-1.0-cp312-cp312-win_amd64.whl": "2" * 64,
        "a_b-1.0.tar.gz": "3" * 64,
        "a_b-1.0.1.tar.gz": "4" * 64,
        "a_b-1.0.exe": "5" * 64,
    }
    page = tmp_path / "a-b" / "index.html"
    page.parent.mkdir()
    links = "".join(f'<a href="{name}#sha256={one}">{name}</a>' for name, one in files.items())
    page.write_text(f"<!DOCTYPE html><html><body>{links}</body></html>", encoding="utf-8")
    (tmp_path / "constraints.txt").write_text("a-b==1.0\n", encoding="utf-8")
    code = (
        "import pathlib, supply.lock as lock;"
        "print(lock.written(dict(lock.published(pathlib.Path('constraints.txt')))))"
    )
    environ = {"PYTHONPATH": str(PROJECT), "PIP_INDEX_URL": tmp_path.as_uri(), "PIP_CONFIG_FILE": os.devnull}
    program = [sys.executable, "-c", code]
    done = subprocess.run(
        program, cwd=tmp_path, env=environ, capture_output=True, encoding="utf-8", check=False
    )
    assert re.findall(r"sha256:(\d)", done.stdout) == ["1", "2", "3"], done.stderr


def required(environment: dict[str, str]) -> set[str]:
    """The packages that the set-up commands install on a platform, as far as they are installed here."""
    left = [(Requirement(one), "") for one in requirements(EXTRAS, ["dev", "site"])]
    names: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while left:
        wanted, asked_by = left.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker is not None and not wanted.marker.evaluate({**environment, "extra": asked_by}):
            continue
        names.add(name)
        try:
            needed = [Requirement(one) for one in requires(name) or ()]
        except PackageNotFoundError:  # of another platform
            continue
        for extra in {"", *wanted.extras} - {extra for one, extra in seen if one == name}:
            seen.add((name, extra))
            left += [(one, extra) for one in needed]
    return names


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    "platform", PLATFORMS, ids=lambda one: f"{one['sys_platform']} {one['platform_machine']}"
)
def test_everything_that_a_supported_platform_needs_is_locked(platform: dict[str, str], python: str) -> None:
    versions = {"python_version": python, "python_full_version": f"{python}.1"}
    names = required({**{k: str(v) for k, v in default_environment().items()}, **platform, **versions})
    assert len(names) > 90
    assert names - locked().keys() == set()


def test_nothing_is_locked_that_no_supported_platform_needs() -> None:
    here = {key: str(value) for key, value in default_environment().items()}
    needed = {name for one in PLATFORMS for name in required({**here, **one})}
    building = {"hatchling", "tomlkit", "trove-classifiers", "ziglang"}  # ziglang: for `make dist` only
    assert locked().keys() - needed - {"pip"} - building == set()


@pytest.mark.parametrize(("file", "count"), [("Makefile", 7), ("deploy/Dockerfile", 3)])
def test_every_installation_of_the_set_up_verifies_hashes_or_takes_no_dependencies(
    file: str, count: int
) -> None:
    text = (PROJECT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    parts = [part.strip() for line in text.splitlines() for part in line.split("&&")]
    found = [one for one in parts if "pip install" in one or "$(PIP_INSTALL)" in one]
    installs = [one for one in found if not one.startswith(("#", "PIP_INSTALL :="))]
    assert len(installs) == count
    assert all("--require-hashes" in one or "--no-deps --no-build-isolation" in one for one in installs)


def test_the_requirements_come_from_the_project_file() -> None:
    program = [sys.executable, "-m", "supply.requirements", "--extra", "local,server", "--group", "dev"]
    printed = subprocess.run(program, cwd=PROJECT, capture_output=True, encoding="utf-8", check=True).stdout
    assert printed.splitlines() == requirements(["local", "server"], ["dev"])
    assert {"pydantic>=2.9", "hatchling>=1.25", "starlette>=1.7", "pytest>=8.3"} <= set(printed.splitlines())


def test_the_bill_of_materials_lists_every_package_and_the_models() -> None:
    content = bill()
    assert (content["bomFormat"], content["specVersion"], content["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", content["serialNumber"])
    packages = {one["name"]: one for one in content["components"] if one["type"] == "library"}
    stated = {
        name: (one["version"], tuple(sorted(value["content"] for value in one["hashes"])))
        for name, one in packages.items()
    }
    assert stated == locked()
    assert all(
        one["purl"] == one["bom-ref"] == f"pkg:pypi/{name}@{one['version']}" for name, one in packages.items()
    )
    scopes = {name: one["scope"] for name, one in packages.items()}
    assert (scopes["numpy"], scopes["starlette"], scopes["pytest"]) == (REQUIRED, OPTIONAL, EXCLUDED)
    assert scopes["hatchling"] == OPTIONAL  # it is in the image
    models = [one for one in content["components"] if one["type"] == "machine-learning-model"]
    hashes = {value["content"] for one in models for value in one["hashes"]}
    assert MINILM.pair_model is not None
    assert hashes == {*MINILM.sha256.values(), MINILM.pair_model.sha256}


def test_the_bill_of_materials_refers_only_to_what_it_lists_and_is_the_same_each_time() -> None:
    content = bill()
    listed = {one["bom-ref"] for one in content["components"]}
    assert len(listed) == len(content["components"])
    (root,) = content["dependencies"]
    assert root["ref"] == content["metadata"]["component"]["bom-ref"]
    assert set(root["dependsOn"]) == listed
    assert json.dumps(bill()) == json.dumps(content)


@pytest.mark.parametrize("page", ["docs/concepts/embeddings.md", "training/pair_model/README.md"])
def test_the_pages_about_the_models_state_the_hashes_that_the_code_demands(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    assert all(one in text for one in MINILM.sha256.values())
    assert "Apache-2.0" in text

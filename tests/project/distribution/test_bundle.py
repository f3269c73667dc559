"""What clients install without pip: the .mcpb bundle, the Claude Code plugin, the MCP registry entry."""

import hashlib
import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from supply.bundle import namespace, pack, registry_entry
from supply.lock import pins
from testbed.project import PROJECT
from tests.project.distribution.installation import clean_environ, initialise, run
from tests.transports.conformance.node import NODE, packages
from vestige import __version__

pytestmark = pytest.mark.slow

PLUGIN = PROJECT / "integrations" / "claude-code"
MARKETPLACE = PROJECT / ".claude-plugin" / "marketplace.json"
HOME = "https://github.com/someone/vestige"
WORDS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.fixture(scope="module")
def bundle(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(wheel, tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def unpacked(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


def read(path: Path) -> Any:  # Any: JSON
    return json.loads(path.read_text(encoding="utf-8"))


# -- The .mcpb bundle


def test_the_authors_of_the_format_find_the_manifest_valid(unpacked: Path) -> None:
    program = packages(Path(__file__).with_name("package.json")) / "@anthropic-ai/mcpb/dist/cli/cli.js"
    command = [str(NODE), str(program), "validate", str(unpacked / "manifest.json")]
    assert "Manifest schema validation passes!" in run(command, unpacked, clean_environ(unpacked))


def test_a_wrong_manifest_is_found(unpacked: Path, tmp_path: Path) -> None:
    program = packages(Path(__file__).with_name("package.json")) / "@anthropic-ai/mcpb/dist/cli/cli.js"
    wrong = {**read(unpacked / "manifest.json"), "server": {"type": "snake"}}
    (tmp_path / "manifest.json").write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(AssertionError, match="server"):
        run([str(NODE), str(program), "validate", "manifest.json"], tmp_path, clean_environ(tmp_path))


def test_the_bundle_has_the_wheel_of_its_version_and_the_tools_that_the_server_lists(
    unpacked: Path, wheel: Path
) -> None:
    manifest = read(unpacked / "manifest.json")
    assert manifest["version"] == __version__
    assert (unpacked / wheel.name).read_bytes() == wheel.read_bytes()
    listed = read(PROJECT / "src/vestige/transports/mcp/tools.json")["tools"]["core"]
    assert [tool["name"] for tool in manifest["tools"]] == [tool["name"] for tool in listed]
    assert all(0 < len(tool["description"]) < 400 for tool in manifest["tools"])
    wanted = tomllib.loads((unpacked / "pyproject.toml").read_text(encoding="utf-8"))
    assert wanted["tool"]["uv"]["sources"] == {"vestige": {"path": wheel.name}}
    pinned = dict(line.split("==") for line in wanted["tool"]["uv"]["constraint-dependencies"])
    assert pinned == pins()


def test_the_same_wheel_gives_the_same_bundle(bundle: Path, wheel: Path, tmp_path: Path) -> None:
    assert pack(wheel, tmp_path).read_bytes() == bundle.read_bytes()


def test_a_client_that_follows_the_manifest_gets_a_server(
    unpacked: Path, wheels: Path, tmp_path: Path
) -> None:
    """As a client does it: the command of the manifest, with uv, on a machine that has never seen Vestige."""
    config = read(unpacked / "manifest.json")["server"]["mcp_config"]
    words = [one.replace("${__dirname}", str(unpacked)) for one in (config["command"], *config["args"])]
    python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}
    place = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels), "UV_CACHE_DIR": str(tmp_path / "cache")}
    answered = initialise(words, tmp_path, clean_environ(tmp_path, **python, **place))
    assert answered["serverInfo"] == {"name": "vestige", "title": "Vestige", "version": __version__}


# -- The Claude Code plugin


def test_the_marketplace_lists_the_plugin_with_the_version_of_the_package() -> None:
    """`claude plugin validate` wants the same; it is not run here, because the program is 350 MB."""
    market = read(MARKETPLACE)
    assert {"name", "owner", "plugins"} <= market.keys()
    assert market["owner"]["name"]
    (entry,) = market["plugins"]
    plugin = read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert (PROJECT / entry["source"]).resolve() == PLUGIN
    for name in ("name", "version", "description", "license", "keywords"):
        assert entry[name] == plugin[name]
    assert plugin["version"] == __version__
    assert WORDS.fullmatch(plugin["name"])
    assert WORDS.fullmatch(market["name"])


def test_the_plugin_starts_a_program_that_the_package_installs() -> None:
    servers = read(PLUGIN / ".mcp.json")["mcpServers"]
    assert servers == {"vestige": {"command": "vestige-mcp", "args": []}}
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert "vestige-mcp" in scripts


# -- The entry of the MCP registry


def problems_of_entry(entry: dict[str, Any]) -> list[str]:
    """What the registry refuses in a `server.json` (schema of 2025-12-11), for the fields that ours has."""
    found = [name for name in ("name", "description", "version") if not entry.get(name)]
    if not re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"]) or len(entry["name"]) > 200:
        found.append("name")
    found += [name for name in ("title", "description") if len(entry[name]) > 100]
    if re.search(r"[\^~*<>=x]|latest", entry["version"]):
        found.append("version")
    if not {"url", "source"} <= entry["repository"].keys():
        found.append("repository")
    for one in entry["packages"]:
        found += [
            f"package {name}" for name in ("registryType", "identifier", "transport") if name not in one
        ]
        if one["registryType"] == "mcpb" and not re.fullmatch(r"[a-f0-9]{64}", one.get("fileSha256", "")):
            found.append("package fileSha256")
    known = {"$schema", "name", "title", "description", "version", "repository", "packages"}
    return found + sorted(entry.keys() - known)


def test_the_entry_points_to_the_bundle_of_the_release(bundle: Path) -> None:
    entry = json.loads(registry_entry(bundle, f"{HOME}/"))
    assert problems_of_entry(entry) == []
    assert (entry["name"], entry["version"]) == ("io.github.someone/vestige", __version__)
    (package,) = entry["packages"]
    assert package["identifier"] == f"{HOME}/releases/download/v{__version__}/{bundle.name}"
    assert package["fileSha256"] == hashlib.sha256(bundle.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "vestige"}, "name"),
        ({"description": "x" * 101}, "description"),
        ({"version": "^0.1.0"}, "version"),
        ({"packages": [{"registryType": "mcpb", "identifier": "x", "transport": {}}]}, "package fileSha256"),
        ({"licence": "MIT"}, "licence"),
    ],
)
def test_a_wrong_entry_is_found(change: dict[str, Any], problem: str, bundle: Path) -> None:
    entry = json.loads(registry_entry(bundle, HOME)) | change
    assert problems_of_entry(entry) == [problem]


@pytest.mark.parametrize("home", ["http://github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_a_home_that_the_registry_cannot_verify_is_refused(home: str) -> None:
    with pytest.raises(SystemExit, match="not of the form"):
        namespace(home)

"""The .mcpb bundle for desktop clients, and the entry of the MCP registry that points to it.

A bundle is a zip with a `manifest.json`. Ours is of the kind `uv`: the client brings uv, uv brings Python and
the dependencies, and Vestige itself is in the bundle as its wheel, because it is on no package index.
"""

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

from supply.lock import pins
from supply.requirements import PROJECT, pyproject
from vestige import __version__

SOURCE = PROJECT / "integrations" / "mcpb"
REGISTRY = PROJECT / "integrations" / "registry" / "server.json"
TOOLS = PROJECT / "src" / "vestige" / "transports" / "mcp" / "tools.json"
EXTRA = "local"
_FILES = {"server.py": SOURCE / "server.py", "LICENSE": PROJECT / "LICENSE"}
_EPOCH = (2020, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


def manifest() -> dict[str, Any]:
    """`integrations/mcpb/manifest.json` with what the package knows: its version, licence and tools."""
    content: dict[str, Any] = json.loads((SOURCE / "manifest.json").read_text(encoding="utf-8"))
    project = pyproject()["project"]
    content["version"] = __version__
    content["license"] = project["license"]
    content["keywords"] = project["keywords"]
    content["compatibility"]["runtimes"] = {"python": project["requires-python"]}
    content["tools"] = [
        {"name": tool["name"], "description": first_sentence(tool["description"])} for tool in _core_tools()
    ]
    return content


def _core_tools() -> list[dict[str, Any]]:
    content = json.loads(TOOLS.read_text(encoding="utf-8"))
    return list(content["tools"]["core"])


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


def project_file(wheel: str) -> str:
    """The `pyproject.toml` of the bundle: the wheel beside it, with the versions that the release was tested
    with. A constraint counts only for a package that is installed anyway."""
    constraints = ",\n".join(f'  "{name}=={version}"' for name, version in pins().items())
    return f"""\
[project]
name = "vestige-bundle"
version = "{__version__}"
requires-python = "{pyproject()["project"]["requires-python"]}"
dependencies = ["vestige[{EXTRA}]"]

[tool.uv]
package = false
constraint-dependencies = [
{constraints},
]

[tool.uv.sources]
vestige = {{ path = "{wheel}" }}
"""


def pack(wheel: Path, target: Path) -> Path:
    """Write the bundle around a wheel. The same wheel gives the same bytes."""
    bundle = target / f"vestige-{__version__}.mcpb"
    texts = {
        "manifest.json": json.dumps(manifest(), indent=2, ensure_ascii=False) + "\n",
        "pyproject.toml": project_file(wheel.name),
    }
    files = {name: text.encode() for name, text in texts.items()}
    files |= {name: path.read_bytes() for name, path in _FILES.items()}
    files[wheel.name] = wheel.read_bytes()
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.external_attr, entry.compress_type = _MODE, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return bundle


def registry_entry(bundle: Path, home: str) -> str:
    """The `server.json` of the MCP registry for a bundle that is attached to the release of its version at
    `home`, the address of the repository."""
    content: dict[str, Any] = json.loads(REGISTRY.read_text(encoding="utf-8"))
    home = home.rstrip("/")
    entry = {
        "$schema": content.pop("$schema"),
        "name": namespace(home),
        **content,
        "version": __version__,
        "repository": {"url": home, "source": "github"},
        "packages": [
            {
                "registryType": "mcpb",
                "identifier": f"{home}/releases/download/v{__version__}/{bundle.name}",
                "version": __version__,
                "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            }
        ],
    }
    return json.dumps(entry, indent=2, ensure_ascii=False) + "\n"


def namespace(home: str) -> str:
    """The name in the registry. It lets the owner of a repository use only this one."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+)", home)
    if found is None:
        raise SystemExit(f"{home} is not of the form https://github.com/OWNER/REPOSITORY.")
    return f"io.github.{found[1]}/{found[2]}"

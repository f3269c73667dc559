"""The bill of materials (SBOM) of Vestige in CycloneDX 1.6 JSON, made of the lock file.

    python -m supply.sbom dist/sbom.cdx.json

It lists every pinned package with its version and the sha256 of each of its files, and the model's weights
with theirs. The same lock file gives the same bytes: there is no time and no random number in it.
"""

import json
import re
import sys
import uuid
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from supply.lock import locked
from supply.requirements import CONSTRAINTS, pyproject
from vestige import __version__
from vestige.embed.minilm.weights import MINILM

FORMAT = "1.6"
REQUIRED, OPTIONAL, EXCLUDED = "required", "optional", "excluded"
SCOPES = {
    "Vestige itself": REQUIRED,
    "Tests and checks": EXCLUDED,
    "The documentation site": EXCLUDED,
    "Building the package": OPTIONAL,
    "The compiled library for all platforms": EXCLUDED,
}
"""Whether a section of constraints.txt is needed at run time: always, never, or else with an extra. What
builds the package is in the image too."""
_SECTION = re.compile(r"# (\w[^(;]*?)(?: \(.*|;.*|$)")

Component = dict[str, Any]  # JSON


def bill() -> dict[str, Any]:
    """The bill of materials as JSON."""
    root = {
        "type": "application",
        "bom-ref": f"pkg:pypi/vestige@{__version__}",
        "name": "vestige",
        "version": __version__,
        "purl": f"pkg:pypi/vestige@{__version__}",
        "licenses": [{"expression": pyproject()["project"]["license"]}],
    }
    components = [*_packages(), *_models()]
    content: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": FORMAT,
        "version": 1,
        "metadata": {"component": root},
        "components": components,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True))
    return {**content, "serialNumber": f"urn:uuid:{serial}"}


def _packages() -> list[Component]:
    scopes = _scopes()
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "scope": scopes.get(name, OPTIONAL),
            "purl": f"pkg:pypi/{name}@{version}",
            "hashes": [_hash(one) for one in hashes],
            **_licence(name),
        }
        for name, (version, hashes) in sorted(locked().items())
    ]


def _models() -> list[Component]:
    """The weights of the embedding model, and of the pair model that comes with the package."""
    weights = {
        "type": "machine-learning-model",
        "bom-ref": f"model:{MINILM.name}",
        "name": MINILM.name,
        "version": MINILM.version,
        "scope": OPTIONAL,
        "purl": f"pkg:pypi/{MINILM.package}@{MINILM.version}",
        "hashes": [_hash(one) for one in MINILM.sha256.values()],
        "licenses": [{"expression": "Apache-2.0"}],
    }
    if MINILM.pair_model is None:
        return [weights]
    delta = {
        "type": "machine-learning-model",
        "bom-ref": "model:vestige-pair-model",
        "name": MINILM.pair_model.path.name,
        "version": __version__,
        "scope": OPTIONAL,
        "hashes": [_hash(MINILM.pair_model.sha256)],
        "licenses": [{"expression": "Apache-2.0"}],
    }
    return [weights, delta]


def _hash(sha256: str) -> Component:
    return {"alg": "SHA-256", "content": sha256}


def _licence(name: str) -> dict[str, list[Component]]:
    """The licence that the installed package states as an SPDX expression, if it does."""
    try:
        expression = metadata(name)["License-Expression"]
    except (PackageNotFoundError, KeyError):
        return {}
    return {"licenses": [{"expression": expression}]} if expression else {}


def _scopes() -> dict[str, str]:
    """The scope of each package, by its section in constraints.txt."""
    scopes, current = {}, OPTIONAL
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if heading := _SECTION.match(line):
            current = SCOPES.get(heading[1], OPTIONAL)
        elif "==" in line:
            scopes[line.partition("==")[0]] = current
    return scopes


def main() -> None:
    target = Path(sys.argv[1])
    content = bill()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{target}: {len(content['components'])} components.")


if __name__ == "__main__":
    main()

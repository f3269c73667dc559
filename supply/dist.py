"""What a release publishes: the wheel, the source package, the .mcpb bundle and the MCP registry entry.

    python -m supply.dist dist

The source package contains what the wheel is built of and nothing else. The same tree gives the same bytes.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from supply.bundle import pack, registry_entry
from supply.requirements import PROJECT, pyproject


def build(source: Path, target: Path, kind: str) -> Path:
    """Build the `wheel` or the `sdist` of a source tree, with the build backend of this environment."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target), "--target", kind]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The build failed:\n{done.stdout}{done.stderr}")
    (made,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def main() -> None:
    target = Path(sys.argv[1]).resolve()
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    sdist, wheel = build(PROJECT, target, "sdist"), build(PROJECT, target, "wheel")
    bundle = pack(wheel, target)
    made = [wheel, sdist, bundle]
    home = pyproject()["project"].get("urls", {}).get("Repository")
    if home:
        made.append(target / "server.json")
        made[-1].write_text(registry_entry(bundle, home), encoding="utf-8")
    else:
        print("No server.json: [project.urls] in pyproject.toml has no Repository yet.", file=sys.stderr)
    for one in made:
        print(f"{one.relative_to(target.parent)}: {one.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

"""The requirements of pyproject.toml, one a line, for `pip install --requirement`.

pip can verify the hashes of packages, but not of a folder. So the set-up installs what the project requires,
with hashes, and then the project itself, without dependencies and without a build environment of its own:

    python -m supply.requirements --extra local --group dev > requirements.txt
    pip install --require-hashes --constraint requirements-lock.txt --requirement requirements.txt
    pip install --no-deps --no-build-isolation --editable .

It needs nothing but Python, because it runs before anything is installed.
"""

import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
LOCK = PROJECT / "requirements-lock.txt"
CONSTRAINTS = PROJECT / "constraints.txt"
EDITABLE = "editables"
"""What the build backend needs beside itself for an editable installation."""


def pyproject() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements(extras: Iterable[str], groups: Iterable[str]) -> list[str]:
    """What the project, these extras and groups, and the build of the project require."""
    content = pyproject()
    optional: Mapping[str, list[str]] = content["project"]["optional-dependencies"]
    wanted = [*content["project"]["dependencies"], *content["build-system"]["requires"], EDITABLE]
    wanted += [one for name in extras for one in optional[name]]
    wanted += [one for name in groups for one in content["dependency-groups"][name]]
    return sorted(set(wanted))


def of_adapters(names: Iterable[str]) -> list[str]:
    """What adapters in `integrations/` and their tests require beside the project."""
    files = [PROJECT / "integrations" / name / "pyproject.toml" for name in names]
    contents = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    wanted = [one for content in contents for one in content["project"]["dependencies"]]
    wanted += [one for content in contents for one in content["dependency-groups"]["test"]]
    return sorted({one for one in wanted if not one.startswith("vestige")})


def main() -> None:
    parser = ArgumentParser(prog="python -m supply.requirements", description="Print requirements.")
    parser.add_argument("--extra", action="append", default=[], help="an extra, or several with commas")
    parser.add_argument("--group", action="append", default=[], help="a dependency group")
    parser.add_argument("--adapter", action="append", default=[], help="a folder of integrations/")
    given = parser.parse_args()
    extras = [name for several in given.extra for name in several.split(",")]
    wanted = sorted({*requirements(extras, given.group), *of_adapters(given.adapter)})
    sys.stdout.writelines(f"{one}\n" for one in wanted)


if __name__ == "__main__":
    main()

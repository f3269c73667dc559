"""Builds the documentation site into a folder:

    python -m supply.site.build build/site

A warning of MkDocs is an error: a dead link, a missing anchor, a page outside the navigation.
"""

import logging
import os
import shutil
import sys
from pathlib import Path

from supply.requirements import PROJECT, pyproject
from supply.site.mermaid import mermaid
from supply.site.pages import DECISIONS, decisions, linked, navigation, sources

ASSETS = Path(__file__).with_name("assets")
# MkDocs Material advertises its successor at each start; a warning would fail the build.
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")


def stage(project: Path, target: Path) -> dict[str, str]:
    """Copy pages and pictures to a folder; returns the texts of the pages."""
    home = pyproject()["project"].get("urls", {}).get("Repository")
    shutil.rmtree(target, ignore_errors=True)
    files = sources(project)
    names = {*files, DECISIONS}
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items() if name.endswith(".md")}
    texts[DECISIONS] = decisions(project)
    texts = {name: linked(text, name, names, project, home) for name, text in texts.items()}
    for name in names:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name in texts:
            place.write_text(texts[name], encoding="utf-8")
        else:
            shutil.copyfile(files[name], place)
    shutil.copytree(ASSETS, target / "assets", dirs_exist_ok=True)
    return texts


def build_site(target: Path) -> None:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    source = target.with_name(f"{target.name}-source")
    texts = stage(PROJECT, source)
    (source / "assets" / "mermaid.min.js").write_bytes(mermaid())
    config = load_config(
        str(PROJECT / "mkdocs.yml"),
        docs_dir=str(source),
        site_dir=str(target),
        nav=navigation(PROJECT, texts),
        strict=True,
    )
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    shutil.rmtree(source)


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    target = Path(sys.argv[1]).resolve()
    build_site(target)
    print(f"{target}: {sum(1 for _ in target.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()

"""The pages of the site: which files of the repository they are, their links, and the navigation.

The site has the layout of the repository, so links between pages stay as they are. A link to a file that is
not on the site (source, tests) becomes plain text, or a link to the repository if its address is known.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
PATTERNS = (
    "docs/**/*.md",
    "docs/**/*.json",
    "docs/**/*.svg",
    "docs/pictures/*.png",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "benchmarks/results/*.svg",
    "benchmarks/results/*.json",
    "deploy/README.md",
    "examples/**/*.md",
    "integrations/*/README.md",
    "training/*/README.md",
)
INDEX = "docs/index.md"
DECISIONS = "docs/adr/index.md"
FIRST = "index.md"
"""The first page of the site is the README."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *(?:```|~~~).*?^ *(?:```|~~~) *$|(`+)[^`].*?\1", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)
_TABS = {
    "Start here": ("Start",),
    "Concepts": ("Concepts",),
    "Mechanisms of the memory": ("Concepts", "Mechanisms"),
    "Measurements": ("Benchmarks",),
    "Reference": ("Reference",),
    "For contributors": ("Project",),
}
"""The tab of each heading of docs/index.md; `How to: X` is the section X of the tab How to."""

Nav = list[Any]  # of MkDocs: pages and sections, nested


def sources(project: Path) -> dict[str, Path]:
    """The file of each page and picture, by its path on the site."""
    found = {FIRST: project / "README.md"} | {name: project / name for name in ROOT_PAGES}
    for pattern in PATTERNS:
        for path in sorted(project.glob(pattern)):
            name = path.relative_to(project).as_posix()
            if "node_modules" not in path.parts:
                found[name] = path
    return found


def title(text: str, otherwise: str) -> str:
    found = _TITLE.search(text)
    return found[1].replace("`", "") if found else otherwise


def decisions(project: Path) -> str:
    """The page that lists the architecture decisions."""
    lines = ["# Decisions", "", "What was decided, what else was considered, and why.", ""]
    for path in sorted((project / "docs" / "adr").glob("[0-9]*.md")):
        lines.append(f"- [{title(path.read_text(encoding='utf-8'), path.stem)}]({path.name})")
    return "\n".join([*lines, ""])


def linked(text: str, page: str, site: Iterable[str], project: Path, home: str | None) -> str:
    """The text of a page with links that work on the site."""
    known = set(site)
    code = [found.span() for found in _FENCE.finditer(text)]

    def replaced(link: re.Match[str]) -> str:
        if any(start <= link.start() < end for start, end in code):
            return link.group()
        mark, words, target = link[1], link[2], link[3]
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return link.group()
        whole = normpath((PurePosixPath(page).parent / path).as_posix())
        if whole == "README.md":
            whole = FIRST
        if f"{whole}/index.md" in known:
            whole = f"{whole}/index.md"
        if whole in known:
            steps = "../" * (len(PurePosixPath(page).parts) - 1)
            return f"{mark}[{words}]({steps}{whole}{'#' + anchor if anchor else ''})"
        if not (project / whole).exists():
            raise SystemExit(f"{page}: a link to {target}, which does not exist.")
        return f"[{words}]({home}/blob/main/{whole})" if home else words

    return _LINK.sub(replaced, text)


def navigation(project: Path, texts: Mapping[str, str]) -> Nav:
    """The navigation of MkDocs: the order and groups of docs/index.md, then decisions and results."""
    tabs: dict[str, Any] = {"Start": [{"Vestige": FIRST}, {"All pages": INDEX}]}
    seen = {FIRST, INDEX}
    for heading, pages in _groups(project):
        names = _TABS.get(heading) or (("How to", _capital(heading.removeprefix("How to: "))))
        section = tabs.setdefault(names[0], [])
        if len(names) > 1:
            inner: Nav = []
            section.append({names[1]: inner})
            section = inner
        for page in pages:
            if page not in seen and page in texts:
                seen.add(page)
                section.append({title(texts[page], page): page})
    tabs["Benchmarks"].append({"Reports": _rest(texts, seen, "benchmarks/results/")})
    tabs["Decisions"] = [DECISIONS, *_rest(texts, seen, "docs/adr/")]
    project_pages = _rest(texts, seen, "")
    if project_pages:
        tabs["Project"] += project_pages
    return [{name: pages} for name, pages in tabs.items()]


def unlisted(project: Path) -> set[str]:
    """Pages in docs/ that docs/index.md does not list; architecture decisions are listed by themselves."""
    listed = {page for _, pages in _groups(project) for page in pages}
    found = {path.relative_to(project).as_posix() for path in (project / "docs").rglob("*.md")}
    return {page for page in found - listed - {INDEX} if not page.startswith("docs/adr/")}


def _groups(project: Path) -> Iterator[tuple[str, list[str]]]:
    """The headings of docs/index.md with the pages that each links to."""
    parts = _HEADING.split((project / INDEX).read_text(encoding="utf-8"))
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        targets = (link[3].partition("#")[0] for link in _LINK.finditer(text))
        yield heading, [normpath(f"docs/{target}") for target in targets if target.endswith(".md")]


def _rest(texts: Mapping[str, str], seen: set[str], folder: str) -> Nav:
    left = sorted(page for page in texts if page.startswith(folder) and page not in seen | {DECISIONS})
    seen.update(left)
    return [{title(texts[page], page): page} for page in left]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]

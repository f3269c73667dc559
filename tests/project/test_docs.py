"""What is written agrees with the code: generated pages, descriptions, and every snippet that says so."""

import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from testbed.effort import NIGHTLY
from testbed.preloaded import preloaded_commands
from testbed.project import PROJECT
from testbed.snippets import MARKS, WORDS, Snippet, missing_text, snippets_in
from vestige.operations.registry.groups import registry
from vestige.settings.settings import OTHER_NAMES, documented_fields, environment_name
from vestige.transports.cli.main import root_command
from vestige.transports.docs import files, stale

CODE = re.compile(r"^ *```(?:sh|console)?\n(.*?)^ *```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[\s($]|\.venv/bin/)vestige ([a-z-][^\n|>&)]*)", re.MULTILINE)
OTHERS = ("helm install", "claude mcp add")
"""Commands of other programs, in which `vestige` is a name."""


ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "CHANGELOG.md")
FOLDERS = (
    "src", "tests", "docs", "benchmarks", "deploy", "examples", "integrations", "testbed", "training",
)  # fmt: skip
NOTES = ("benchmarks", "deploy", "examples", "integrations", "tests")
"""Folders with pages beside the code."""
MODULE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.py)\b")
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")
BLIND = re.compile(r"author-\d+: orders")
"""The texts of authors who saw neither the code nor what was fitted on."""
EXAMPLES = frozenset({"src/db.py", "src/handlers.py", "src/store.py", "invoice.py", "new.py"})
"""Files of a user's project, in examples."""


def pages() -> list[Path]:
    return [*(PROJECT / name for name in ROOT_PAGES), *sorted((PROJECT / "docs").rglob("*.md"))]


def all_pages() -> list[Path]:
    """The documentation, and the pages beside the code."""
    beside = (path for name in NOTES for path in sorted((PROJECT / name).rglob("*.md")))
    return [*pages(), *(path for path in beside if "node_modules" not in path.parts)]


def without_code(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that a page's headings get, as hosts of repositories make them."""
    titles = re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower() for title in titles)
    return frozenset(re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in plain)


def broken_links(page: Path) -> Iterator[str]:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        found = page.parent / target if target else page
        if not found.exists():
            yield target
        elif anchor and found.suffix == ".md" and anchor not in anchors(found):
            yield f"{target}#{anchor}"


@cache
def modules() -> frozenset[str]:
    """Every module of the project by its path, and by each end of that path."""
    paths = {path.relative_to(PROJECT) for name in FOLDERS for path in (PROJECT / name).rglob("*.py")}
    whole = {path.as_posix() for path in paths}
    return frozenset("/".join(path.split("/")[at:]) for path in whole for at in range(path.count("/") + 1))


def dead_modules(text: str) -> list[str]:
    return [name for name in MODULE.findall(text) if name not in modules() | EXAMPLES]


def runs() -> Iterator[Any]:
    """The snippets of each page that run in one folder, one after another."""
    for page in pages():
        groups: list[list[Snippet]] = []
        for snippet in snippets_in(page.read_text(encoding="utf-8")):
            if snippet.continued and groups:
                groups[-1].append(snippet)
            else:
                groups.append([snippet])
        for number, group in enumerate(groups, 1):
            yield pytest.param(group, id=f"{page.relative_to(PROJECT)}-{number}")


def test_the_generated_files_are_up_to_date() -> None:
    assert stale(PROJECT, files(registry, root_command())) == [], "run `make fix`"


def test_generating_twice_gives_the_same_bytes() -> None:
    assert files(registry, root_command()) == files(registry, root_command())


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in documented_fields() if not field.description] == []


def test_the_page_of_settings_names_every_variable_of_each() -> None:
    page = (PROJECT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for variable, setting in OTHER_NAMES.items():
        assert f"| `{setting}` | `{environment_name(setting)}` or `{variable}` |" in page


def test_every_operation_and_argument_says_what_it_is() -> None:
    bare = [
        f"{operation.name}.{name}"
        for operation in registry.operations.values()
        for name, field in operation.arguments.model_fields.items()
        if not field.description
    ]
    assert bare == []
    for operation in registry.operations.values():
        assert operation.summary.endswith("."), operation.name


def test_every_command_says_what_it_is() -> None:
    shown = files(registry, root_command())["docs/reference/command-line.md"].decode("utf-8")
    for section in shown.split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        assert text.strip()[:1].isupper(), title


def test_links_between_pages_lead_somewhere() -> None:
    broken = [f"{page.relative_to(PROJECT)}: {link}" for page in all_pages() for link in broken_links(page)]
    assert broken == []


def test_a_link_to_a_missing_page_or_heading_is_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# `vestige` and *more*\n\n```sh\n# no heading\n```\n", encoding="utf-8")
    links = ("other.md", "other.md#vestige-and-more", "other.md#no-heading", "missing.md", "#here")
    page.write_text("# Here\n\n" + " ".join(f"[x]({link})" for link in links), encoding="utf-8")
    assert list(broken_links(page)) == ["other.md#no-heading", "missing.md"]


def test_modules_that_a_page_names_exist() -> None:
    """Decisions are left out: they name what was there when they were made."""
    named = [page for page in all_pages() if page.parent.name != "adr"]
    dead = [
        f"{page.relative_to(PROJECT)}: {name}"
        for page in named
        for name in dead_modules(page.read_text(encoding="utf-8"))
    ]
    assert dead == []


def test_a_module_that_does_not_exist_is_found() -> None:
    text = "Code: `engine/recall/recall.py`, `recall.py`, `engine/recalling.py`, x in cognition/ranking.py"
    assert dead_modules(text) == ["engine/recalling.py", "cognition/ranking.py"]


def test_the_page_on_security_states_the_published_shares_of_orders_that_pass() -> None:
    published = PROJECT / "benchmarks" / "results" / "orders.json"
    tables = json.loads(published.read_text(encoding="utf-8"))["tables"]

    def passed(origin: str, detector: str) -> str:
        rows = [row[detector] for row in tables[f"origin {origin}: held back"] if BLIND.match(row["texts"])]
        counts = [re.findall(r"\d+", row)[:2] for row in rows]
        held, of = (sum(int(count[at]) for count in counts) for at in (0, 1))
        return f"{100 * (of - held) / of:.0f} %"

    stated = re.search(
        r"(\S+ %) from documents and (\S+ %) from agents passed.*; without it, (\S+ %) and (\S+ %)",
        (PROJECT / "SECURITY.md").read_text(encoding="utf-8").replace("\n", " "),
    )
    assert stated is not None
    wanted = [
        passed(origin, detector) for detector in ("both", "rules") for origin in ("document", "assistant")
    ]
    assert list(stated.groups()) == wanted


def test_a_page_names_each_module_of_its_code_once() -> None:
    for page in pages():
        for line in re.findall(r"Code: (.+)", page.read_text(encoding="utf-8")):
            named = MODULE.findall(line)
            assert len(named) == len(set(named)), f"{page.name}: {line}"


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "AGENTS.md", "docs/architecture.md", "docs/releasing.md"]
)
def test_files_that_contributors_are_sent_to_exist(name: str) -> None:
    text = (PROJECT / name).read_text(encoding="utf-8")
    paths = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", text)
    assert paths
    assert [path for path in paths if not (PROJECT / path).exists()] == []


def test_hooks_before_a_commit_use_the_environment_of_the_project_only() -> None:
    config = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert all(hook["entry"].startswith(".venv/bin/python -m ") for hook in hooks)
    assert all(hook["language"] == "system" for hook in hooks)


def test_no_page_has_vestige_installed_by_its_name() -> None:
    """It is on no package index: the name would fail there, or one day be a stranger's."""
    named = re.compile(r"pip install[^`\n]*[\s'\"]vestige\b(?!/)")
    plugin = PROJECT / "integrations" / "openclaw" / "README.md"
    found = [page.name for page in (*pages(), plugin) if named.search(page.read_text(encoding="utf-8"))]
    assert found == []


def test_every_mark_belongs_to_a_snippet_that_can_run() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        found = list(snippets_in(text))
        assert len(MARKS.findall(text)) == sum(one.marks for one in found), page.name
        assert all(one.words <= WORDS for one in found), page.name


def test_the_promised_output_of_a_snippet_is_read_from_its_page() -> None:
    page = (
        "<!-- test: model -->\n```sh\nvestige status\n```\n\n"
        "<!-- expect: one -->\n<!-- expect: two … three -->\n\n"
        "<!-- output -->\n```text\na  b\n\nc …\n```\n\n"
        "<!-- test: continued -->\n```sh\nvestige backup\n```\n"
    )
    first, second = snippets_in(page)
    assert (first.model, first.expected, first.shown) == (True, ("one", "two … three"), ("a  b", "c …"))
    assert (first.marks, second.continued, second.expected, second.marks) == (4, True, (), 1)
    assert missing_text(first.expected, "one, two and three") is None
    assert missing_text(first.expected, "two and three, one") == "two … three"
    assert missing_text(first.expected, "one two\nthree") == "two … three"


def commands(page: Path) -> Iterator[str]:
    """What stands behind `vestige` in the code of a page, up to the end of the command."""
    for block, inline in CODE.findall(page.read_text(encoding="utf-8")):
        code = block.replace("\\\n", " ") if block else inline
        lines = [line for line in code.splitlines() if not any(other in line for other in OTHERS)]
        yield from COMMAND.findall("\n".join(lines))


@cache
def commands_of_vestige() -> click.Group:
    return root_command()


def unknown_words(arguments: str) -> Iterator[str]:
    """The subcommands and options of a command line that `vestige` does not have."""
    command: click.Command = commands_of_vestige()
    known = {"--help": False}
    words = iter(shlex.split(arguments.replace("'", "").replace('"', ""), comments=True))
    for word in words:
        known |= {name: _takes_a_value(option) for option in command.params for name in option.opts}
        known |= {name: False for option in command.params for name in option.secondary_opts}
        if word == "--" or command.name == "bench":
            return
        if word.startswith("--"):
            if word not in known:
                yield word
            elif known[word]:
                next(words, None)
        elif isinstance(command, click.Group) and re.fullmatch("[a-z-]+", word):
            found = command.get_command(click.Context(command), word)
            if found is None:
                yield word
                return
            command = found


def _takes_a_value(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.is_flag


def test_every_command_on_a_page_exists_with_its_options() -> None:
    written = [page for page in pages() if page.parent.name != "reference"]
    named = [(page, command) for page in written for command in commands(page)]
    assert len(named) > 300
    unknown = [
        f"{page.relative_to(PROJECT)}: vestige {command}: {word}"
        for page, command in named
        for word in unknown_words(command)
    ]
    assert unknown == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("search tea --limit 3", []),
        ("--data-dir DIR memory list --table", []),
        ("seek tea", ["seek"]),
        ("search tea --limits 3", ["--limits"]),
        ("keys destroy laptop", ["destroy"]),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, words: list[str]) -> None:
    assert list(unknown_words(line)) == words


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a snippet finds `vestige`: the installed one in `make nightly`, else one that starts faster."""
    installed = Path(sys.executable).parent
    if NIGHTLY:
        yield installed
        return
    with preloaded_commands(tmp_path_factory.mktemp("programs")) as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("group", list(runs()))
def test_a_snippet_prints_what_its_page_promises(
    group: list[Snippet], programs: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found_in = (programs, Path(sys.executable).parent, os.environ["PATH"])
    env = {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join(map(str, found_in)),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "VESTIGE_EMBEDDINGS_PROVIDER": "hashing",
        "VESTIGE_OFFLINE": "1",
    }
    if any(snippet.model for snippet in group):
        del env["VESTIGE_EMBEDDINGS_PROVIDER"]
        env["VESTIGE_EMBEDDINGS_CACHE_DIR"] = str(request.getfixturevalue("real_model_dir").parent)
    for number, snippet in enumerate(group):
        status, printed = piped(snippet, env, tmp_path)
        assert status == 0, printed
        assert missing_text(snippet.expected, printed) is None, printed
        if snippet.shown:
            assert number == 0, "a continued snippet runs once, so it cannot have an <!-- output -->"
            fresh = tmp_path / "terminal"
            fresh.mkdir()
            status, printed = on_a_terminal(snippet, {**env, "HOME": str(fresh)}, fresh)
            assert status == 0, printed
            assert missing_text(snippet.shown, printed) is None, printed


def command_of(snippet: Snippet) -> list[str]:
    if snippet.language == "sh":
        return ["bash", "-e", "-o", "pipefail", "-c", snippet.code]
    return [sys.executable, "-c", snippet.code]


def piped(snippet: Snippet, env: dict[str, str], folder: Path) -> tuple[int, str]:
    """The exit status and the output in a pipe."""
    done = subprocess.run(
        command_of(snippet),
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def on_a_terminal(snippet: Snippet, env: dict[str, str], folder: Path) -> tuple[int, str]:
    """The exit status and the output on a terminal of 100 columns, without colour."""
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    screen = {**env, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    process = subprocess.Popen(
        command_of(snippet), cwd=folder, env=screen, stdin=subprocess.DEVNULL, stdout=inside, stderr=inside
    )
    os.close(inside)
    pieces = []
    with suppress(OSError):  # the other end is closed
        while piece := os.read(outside, 65_536):
            pieces.append(piece)
    os.close(outside)
    status = process.wait(timeout=120)
    return status, b"".join(pieces).decode("utf-8").replace("\r\n", "\n")

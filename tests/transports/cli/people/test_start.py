"""What a start imports and compiles: help and completion load neither operations nor the libraries behind
them, and a command only what it uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from vestige.transports.arguments import Wording

pytestmark = pytest.mark.slow

HEAVY = (
    "pydantic",
    "numpy",
    "rich",
    "sqlite3",
    "vestige.engine",
    "vestige.operations",
    "vestige.store",
    "vestige.app.app",
)
"""Not needed to show help. Each costs a tenth of a second or more, or brings one that does."""
UNUSED_MODULES = (
    "vestige.operations.registry.groups",
    "vestige.operations.memory.ingest",
    "vestige.engine.reactions.table",
    "vestige.engine.care.rebuild",
    "vestige.engine.domains.catalogue",
    "vestige.engine.embedding",
    "vestige.cognition.gate.relation",
    "vestige.store.sqlite.check.repair",
    "configparser",
    "email",
    "importlib.metadata",
    "tomllib",
    "rich",
)
"""What `ls` and `status` do without: other operations, the repair of a store, libraries for files that are
not there."""
UNSEARCHED_MODULES = (
    "vestige.operations.registry.groups",
    "vestige.operations.memory.ingest",
    "vestige.engine.ingest.ingest",
    "vestige.engine.domains.overview",
    "vestige.engine.care.rebuild",
    "vestige.store.sqlite.check.repair",
    "vestige.embed.minilm.child",
    "email",
    "importlib.metadata",
    "numpy._typing._array_like",
    "numpy.ma",
    "rich",
    "subprocess",
    "zipfile",
)
"""What `search` and `add` do without: the installation of the model, domains, masked arrays, an archive."""
REPORT = """
import re._compiler, sys
from vestige.app.console import main

compile_pattern, ours = re._compiler.compile, []

def compile_and_count(*given):
    frame = sys._getframe(1)
    while "/re/" in frame.f_code.co_filename or frame.f_globals["__name__"] == "vestige.core.patterns":
        frame = frame.f_back
    if frame.f_globals["__name__"].startswith("vestige."):
        ours.append(given[0])
    return compile_pattern(*given)

re._compiler.compile = compile_and_count
try:
    main({words!r})
finally:
    print("\\n".join([*sys.modules, str(len(ours))]), file=sys.stderr)
"""


def imported(words: list[str], **environ: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    return set(started(words, **environ)[:-1])


def started(words: list[str], **environ: str) -> list[str]:
    """The modules that a command has imported, then the number of our patterns that it has compiled."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(words=words)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], **environ},
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return done.stderr.split()


@pytest.mark.parametrize("words", [["--help"], ["search", "--help"], ["memory"], ["add", "-h"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    assert imported(words) & set(HEAVY) == set()


@pytest.mark.parametrize("typed", ["vestige se", "vestige search --as", "vestige memory "])
def test_completion_imports_nothing_heavy(typed: str) -> None:
    number = str(len(typed.split(" ")) - 1)
    loaded = imported([], _VESTIGE_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=number)
    assert loaded & set(HEAVY) == set()


def test_a_small_command_imports_only_its_own_operation(tmp_path: Path) -> None:
    here = {"VESTIGE_DATA_DIR": str(tmp_path), "VESTIGE_EMBEDDINGS_PROVIDER": "off"}
    loaded = imported(["status"], **here)
    assert "vestige.operations.care.status" in loaded
    assert loaded & set(UNUSED_MODULES) == set()


def test_a_list_imports_nothing_that_only_writing_or_repairing_needs(tmp_path: Path) -> None:
    here = {"VESTIGE_DATA_DIR": str(tmp_path), "VESTIGE_EMBEDDINGS_PROVIDER": "off"}
    loaded = imported(["ls"], **here)
    assert "vestige.operations.memory.read" in loaded
    assert loaded & set(UNUSED_MODULES) == set()


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["status"], 12),
        (["ls"], 14),
        (["add", "Deployments need two approvals."], 50),
        (["search", "What did she say about her trip to the mountains?"], 65),
    ],
)
def test_a_command_compiles_only_the_patterns_that_it_uses(
    tmp_path: Path, words: list[str], most: int
) -> None:
    *_, patterns = started(words, VESTIGE_DATA_DIR=str(tmp_path), VESTIGE_EMBEDDINGS_PROVIDER="off")
    assert 0 < int(patterns) <= most


@pytest.mark.parametrize("provider", ["off", "local"])
def test_a_search_imports_nothing_that_only_other_commands_need(tmp_path: Path, provider: str) -> None:
    here = {"VESTIGE_DATA_DIR": str(tmp_path), "VESTIGE_OFFLINE": "1", "HOME": os.environ["HOME"]}
    here["VESTIGE_EMBEDDINGS_PROVIDER"] = provider
    for text in ("Deployments need two approvals.", "She hiked in the mountains."):
        imported(["add", text], **here)
    loaded = imported(["search", "How many approvals does a deployment need?"], **here)
    assert "vestige.engine.recall.recall" in loaded
    assert ("onnxruntime" in loaded) is (provider == "local")
    assert loaded & set(UNSEARCHED_MODULES) == set()


@pytest.mark.parametrize("words", [["status"], ["ls"]])
def test_a_small_command_does_not_load_the_model(tmp_path: Path, words: list[str]) -> None:
    loaded = imported(words, VESTIGE_DATA_DIR=str(tmp_path), HOME=os.environ["HOME"], VESTIGE_OFFLINE="1")
    assert loaded & {"onnxruntime", "tokenizers"} == set()


UNUSED = """
import sys
from vestige.app.console import main
try:
    main(["ls"])
finally:
    from vestige.cognition.english.polarity import _table
    from vestige.settings.sections import MemorySettings, StorageSettings
    print("stemmed lists", _table.cache_info().currsize, file=sys.stderr)
    built = [one.__name__ for one in (MemorySettings, StorageSettings) if one.__pydantic_complete__]
    print("validators", len(built), file=sys.stderr)
"""


def test_a_small_command_makes_no_tables_and_validators_that_it_does_not_use(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNUSED],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "VESTIGE_DATA_DIR": str(tmp_path), "VESTIGE_OFFLINE": ""},
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert done.stderr.splitlines() == ["stemmed lists 0", "validators 0"]


def test_words_without_a_mark_are_reworded_without_a_pattern() -> None:
    wording = Wording((), {"search": "search"})
    assert (
        wording.of("Show one memory in full, with its links.") == "Show one memory in full, with its links."
    )
    assert "_given" not in vars(wording)
    assert wording.of("Use `search`.") == "Use `vestige search`."

"""Vestige as it is shipped: `vestige project init` for each repository, and questions to `vestige-mcp`."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.client import Client, Json, console_script
from benchmarks.code.arms import SHOWN, Arm
from benchmarks.code.measures import Place

HOURS = 3_600.0


class ProjectServer:
    """One server on a data directory of its own, which answers about every repository that was put there."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="vestige-code-")
        self._data = f"{self._scratch.name}/data"
        self._client = Client([console_script(), "--data-dir", self._data], timeout_seconds=HOURS)
        self._client.initialize()
        self._held: dict[str, Mapping[str, str]] = {}

    def indexed(self, name: str, files: Mapping[str, str]) -> Path:
        """A folder with these files, indexed as a user does; files that were there before are replaced."""
        folder = Path(self._scratch.name) / "code" / name
        command = "refresh" if name in self._held else "init"
        held = self._held.get(name, {})
        for path in held.keys() - files.keys():
            (folder / path).unlink()
        for path, text in files.items():
            if held.get(path) == text:
                continue
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", errors="replace", newline="")
        for words in (["init", "-q"], ["add", "-A", "-f"]):
            subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
        program = str(Path(sys.executable).parent / "vestige")
        made = [program, "project", command, str(folder), "--data-dir", self._data]
        subprocess.run(made, check=True, capture_output=True)
        self._held[name] = files
        return folder

    def package(self, folder: Path, task: str, budget: int) -> Json:
        """The package of `project_recall` for a task."""
        return self._client.tool(
            "project_recall", {"task": task, "token_budget": budget, "path": str(folder)}
        )

    def places(self, folder: Path, question: str) -> list[str]:
        """The files of the sections that search finds, best first."""
        return [one.path for one in self._found(folder, question)]

    def arm(self, name: str, files: Mapping[str, str]) -> Arm:
        """The answers of the server about files, which are indexed first."""
        folder = self.indexed(name, files)

        return lambda question: self._found(folder, question)

    def _found(self, folder: Path, question: str) -> list[Place]:
        asked = {"action": "search", "query": question, "limit": SHOWN, "detail": "places"}
        found = self._client.tool("project", {**asked, "path": str(folder)})
        return [
            Place(path=hit["path"], start_line=hit["startLine"], end_line=hit["endLine"])
            for hit in found["hits"]
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
        self._scratch.cleanup()

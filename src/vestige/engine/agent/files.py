"""The files of a persistent agent: where they are, appended under a lock, and read tolerantly.

`MEMORY.md`, `sessions/` and `reflections.jsonl` are the source of truth; the store has a copy of them.
`setup.md` and `credentials.md` are never opened here.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vestige.core.errors import ConfigError
from vestige.core.lazy_dataclass import dataclass
from vestige.engine.care.filenames import private
from vestige.settings.settings import Settings

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MEMORY_FILE = "MEMORY.md"
REFLECTIONS_FILE = "reflections.jsonl"
SESSIONS_FOLDER = "sessions"
STATE_FOLDER = "agent"
"""The folder in the data directory for what can be lost: packs of sessions, receipts, the log of hooks."""
MAX_FILE_BYTES = 16_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFiles:
    """The files of the agent on this machine."""

    folder: Path
    knowledge: Path
    on_demand: Path
    state: Path

    @property
    def memory(self) -> Path:
        return self.folder / MEMORY_FILE

    @property
    def sessions(self) -> Path:
        return self.folder / SESSIONS_FOLDER

    @property
    def reflections(self) -> Path:
        return self.folder / REFLECTIONS_FILE

    @property
    def setup(self) -> Path:
        return self.on_demand / "setup.md"

    @property
    def credentials(self) -> Path:
        return self.on_demand / "credentials.md"

    def session_files(self) -> list[Path]:
        """The files of session logs, by their days, oldest first."""
        try:
            found = sorted(self.sessions.iterdir())
        except OSError:
            return []
        return [one for one in found if one.suffix == ".jsonl" and one.is_file()]


def agent_files(settings: Settings) -> AgentFiles:
    given = settings.agent
    return AgentFiles(
        folder=settings.in_home(given.memory_dir, ".claude/memory"),
        on_demand=settings.in_home(given.on_demand_dir, ".claude"),
        knowledge=settings.in_home(given.knowledge_dir, "knowledge"),
        state=settings.data_dir / STATE_FOLDER,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesRead:
    """The objects of a file of JSON lines with their line numbers; `broken` are the other lines' numbers."""

    records: tuple[tuple[int, Mapping[str, Any]], ...] = ()  # Any: JSON
    broken: tuple[int, ...] = ()
    problem: str | None = None


def read_lines(path: Path) -> LinesRead:
    """Every object of a file; a broken line costs only itself, and a missing file is an empty one."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return LinesRead()
    except OSError as exc:
        return LinesRead(problem=f"it cannot be read: {exc.strerror}")
    records: list[tuple[int, Mapping[str, Any]]] = []
    broken: list[int] = []
    for number, line in enumerate(raw[:MAX_FILE_BYTES].split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            records.append((number, value))
        else:
            broken.append(number)
    cut = f"only its first {MAX_FILE_BYTES:,} bytes are read" if len(raw) > MAX_FILE_BYTES else None
    return LinesRead(records=tuple(records), broken=tuple(broken), problem=cut)


def read_text(path: Path) -> str | None:
    """The text of a file, or None without a readable file; bytes that are not UTF-8 are replaced."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError:
        return None


def exact_text(path: Path) -> str | None:
    """The text of a file that is edited, with its line ends; None without one. ConfigError if it is not
    UTF-8 text: it would be damaged."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path} cannot be edited: {why}.", details={"path": str(path)}) from exc


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append an object to a file of JSON lines, as one line and under a lock of the file: no process loses
    the line of another, and a line that a killed process left unfinished does not damage the next one."""
    line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            with _locked(handle):
                size = os.fstat(handle).st_size
                unfinished = size > 0 and _last_byte(handle, size) != b"\n"
                _write_all(handle, (b"\n" if unfinished else b"") + line + b"\n")
        finally:
            os.close(handle)


def replace_text(path: Path, text: str, *, shared: bool = False) -> None:
    """Replace a file as a whole; readers see the old text or the new one. A new file is for its owner only,
    unless it is `shared`."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with open(draft, "wb", opener=None if shared else private) as file:
                file.write(text.encode("utf-8"))
            with suppress(FileNotFoundError):
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file that is replaced rather than appended to: a file beside it, which stays."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with _locked(handle):
            yield
    finally:
        os.close(handle)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise ConfigError(
            f"{path} cannot be written: {exc.strerror or exc}.",
            hint="Check its permissions and the space left, or set `agent.memory_dir`.",
            details={"path": str(path)},
        ) from exc


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    """Waits for the lock of an open file; the kernel frees it when the process ends, however it ends."""
    if sys.platform == "win32":
        os.lseek(handle, 1 << 30, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.lseek(handle, 1 << 30, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_UN)


def _last_byte(handle: int, size: int) -> bytes:
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1)


def _write_all(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]

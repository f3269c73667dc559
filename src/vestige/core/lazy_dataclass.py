"""`dataclass` as in the standard library, except that methods are compiled when the first of them is used.

The standard one writes and compiles the source of six methods for each class when a module is imported, half
a millisecond for each class. A command imports some 270 of our classes and uses a quarter of them (ADR 0048).
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

_COMPILED = ("__init__", "__repr__", "__eq__")
_FACTS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_LAZY_OPTIONS = {"frozen", "slots", "kw_only", "eq"}
_NOT_COPIED = ("__dict__", "__weakref__")


class _Compiled:
    """An attribute of a class that stands for what the standard library makes of the class. The first use of
    any of them replaces all of them."""

    def __init__(self, name: str, compile_all: Callable[[], None]) -> None:
        self._name, self._compile_all = name, compile_all

    def __get__(self, instance: object, owner: type) -> Any:
        self._compile_all()
        return getattr(owner if instance is None else instance, self._name)


def _lazy(cls: type | None = None, /, **options: bool) -> Any:
    """The decorator, with or without options."""
    if cls is None:
        return lambda decorated: _lazy(decorated, **options)
    if options.keys() - _LAZY_OPTIONS or not options.get("slots"):  # rare
        return dataclasses.dataclass(**options)(cls)
    frozen, eq = options.get("frozen", False), options.get("eq", True)
    body = {name: value for name, value in vars(cls).items() if name not in _NOT_COPIED}
    names = [name for name, kind in inspect.get_annotations(cls).items() if not _is_of_the_class(kind)]
    inherited = {slot for base in cls.__mro__[1:-1] for slot in vars(base).get("__slots__", ())}
    made = {name: value for name, value in body.items() if name not in names}
    made |= {"__qualname__": cls.__qualname__, **(_frozen_methods() if frozen else {})}
    made["__slots__"] = tuple(name for name in names if name not in inherited)
    if eq and "__hash__" not in body and not frozen:
        made["__hash__"] = None
    lazily = [*_FACTS, *_COMPILED[: 3 if eq else 2], *(["__hash__"] if eq and frozen else [])]
    lazily = [name for name in lazily if name not in body]

    def compile_all() -> None:
        full: type = dataclasses.dataclass(**options)(type(cls)(cls.__name__, cls.__bases__, dict(body)))
        for name in lazily:
            setattr(found, name, vars(full)[name])

    made |= {name: _Compiled(name, compile_all) for name in lazily}
    found = type(cls)(cls.__name__, cls.__bases__, made)
    return found


if not TYPE_CHECKING:
    dataclass = _lazy


def _is_of_the_class(kind: object) -> bool:
    """Whether an annotation names something of the class, not a field of its objects."""
    if isinstance(kind, str):
        return kind.startswith(("ClassVar", "typing.ClassVar"))
    return kind is ClassVar or get_origin(kind) is ClassVar


def _frozen_methods() -> dict[str, Callable[..., Any]]:
    return {
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
    }


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)

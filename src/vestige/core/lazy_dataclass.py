"""`dataclass` as in the standard library, except that methods are compiled when they are worth it.

The standard one writes and compiles the source of six methods for each class when a module is imported, half
a millisecond for each class. A command imports some 270 of our classes and uses a quarter of them (ADR 0048),
most of these for a few objects, which are made, copied with changes and hashed without compiled methods (ADR
0080).
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

_COMPILED = ("__init__", "__repr__", "__eq__")
_FIELDS = "__dataclass_fields__"
_FACTS = (_FIELDS, "__dataclass_params__", "__match_args__")
_LAZY_OPTIONS = {"frozen", "slots", "kw_only", "eq"}
_NOT_COPIED = ("__dict__", "__weakref__")
FIRST_OBJECTS = 40
"""Objects of a class that are made without its compiled methods, which cost as much as these objects."""


class _Compiled:
    """An attribute of a class that stands for what the standard library makes of the class. The first use of
    any of them replaces all of them."""

    def __init__(self, name: str, compile_all: Callable[[], type]) -> None:
        self._name, self._compile_all = name, compile_all

    def __get__(self, instance: object, owner: type) -> Any:
        found = vars(self._compile_all())[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


class _FirstInit(_Compiled):
    """`__init__` of the first objects of a class. `InitVar`, `KW_ONLY` and every mistake are left to the
    compiled one."""

    def __init__(
        self, compile_all: Callable[[], type], parameters: "Callable[[], _Parameters | None]"
    ) -> None:
        super().__init__("__init__", compile_all)
        self._read, self._parameters, self._left = parameters, _UNREAD, FIRST_OBJECTS

    def __get__(self, instance: object, owner: type) -> Any:
        self._left -= 1
        if instance is None or self._left < 0:
            return super().__get__(instance, owner)
        return partial(self._make, instance)

    def _make(self, made: object, /, *args: object, **named: object) -> None:
        if self._parameters is _UNREAD:
            self._parameters = self._read()
        values = None if self._parameters is None else self._parameters.values(args, named)
        if values is None:
            super().__get__(made, type(made))(*args, **named)
            return
        for name, value in values.items():
            object.__setattr__(made, name, value)
        if check := getattr(made, "__post_init__", None):
            check()


class _LazyFields:
    """The fields of a class, which `replace` reads, without its compiled methods."""

    holder: type
    """The class, which may be a base of the one that is asked."""

    def __init__(self, own: Callable[[], dict[str, Any]]) -> None:
        self._own = own

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        bases = [getattr(base, _FIELDS, {}) for base in reversed(self.holder.__mro__[1:])]
        fields = {name: one for each in [*bases, self._own()] for name, one in each.items()}
        setattr(self.holder, _FIELDS, fields)
        return fields


def _first_hash(compile_all: Callable[[], type], fields_of: _LazyFields) -> Callable[[object], int]:
    """`__hash__` of the first objects that are asked for it, by the fields of the class that defines it. It
    is a function, not a descriptor, because the standard library looks at it to see whether objects of the
    class may be defaults."""
    left = FIRST_OBJECTS

    def first_hash(self: Any) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            made: int = vars(compile_all())["__hash__"](self)
            return made
        own = dataclasses.fields(fields_of.holder)
        compared = (one for one in own if (one.compare if one.hash is None else one.hash))
        return hash(tuple(getattr(self, one.name) for one in compared))

    return first_hash


class _Parameter(NamedTuple):
    """A field as a parameter of `__init__`, or one that gets its value from the default alone."""

    default: object
    factory: Any
    kw_only: bool
    init: bool


class _Parameters:
    """The parameters of an `__init__` by their names."""

    def __init__(self, parameters: Mapping[str, _Parameter]) -> None:
        self._all = parameters
        self._given = {name for name, one in parameters.items() if one.init}
        self._positional = [name for name, one in parameters.items() if one.init and not one.kw_only]

    def values(self, args: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object] | None:
        """The values of all fields in their order; None for arguments that do not fit."""
        given = dict(zip(self._positional, args, strict=False))
        if len(given) < len(args) or given.keys() & named.keys() or named.keys() - self._given:
            return None
        given |= named
        values: dict[str, object] = {}
        for name, one in self._all.items():
            if name in given:
                values[name] = given[name]
            elif one.default is not dataclasses.MISSING:
                values[name] = one.default
            elif one.factory is not dataclasses.MISSING:
                values[name] = one.factory()
            elif one.init:
                return None
        return values


_UNREAD: _Parameters | None = _Parameters({})
"""Stands for parameters before the first object is made."""


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
    kw_only = options.get("kw_only", False)

    def compile_all() -> type:
        full: type = dataclasses.dataclass(**options)(type(cls)(cls.__name__, cls.__bases__, dict(body)))
        for name in lazily:
            setattr(found, name, vars(full)[name])
        return found

    made |= {name: _Compiled(name, compile_all) for name in lazily}
    made[_FIELDS] = fields = _LazyFields(partial(_own_fields, cls, body, kw_only=kw_only))
    if "__hash__" in lazily:
        made["__hash__"] = _first_hash(compile_all, fields)
    if "__init__" in lazily and "__setattr__" not in body:
        made["__init__"] = _FirstInit(compile_all, partial(_parameters, cls, names, body, kw_only=kw_only))
    fields.holder = found = type(cls)(cls.__name__, cls.__bases__, made)
    return found


if not TYPE_CHECKING:
    dataclass = _lazy


def _parameters(
    cls: type, names: Iterable[str], body: Mapping[str, object], *, kw_only: bool
) -> _Parameters | None:
    """The parameters of a class, those of its bases first; None if a field has more options than these."""
    found: dict[str, _Parameter] = {}
    kinds = inspect.get_annotations(cls)
    inherited = [getattr(base, _FIELDS) for base in reversed(cls.__mro__[1:]) if _FIELDS in vars(base)]
    fields = [one for each in inherited for one in each.items()]
    fields += [(name, body.get(name, dataclasses.MISSING)) for name in names]
    for name, value in fields:
        one = _Parameter(value, dataclasses.MISSING, kw_only, init=True)
        if isinstance(value, dataclasses.Field):
            own = kw_only if value.kw_only is dataclasses.MISSING else bool(value.kw_only)
            one = _Parameter(value.default, value.default_factory, own, value.init)
        kind = kinds.get(name, value.type if isinstance(value, dataclasses.Field) else None)
        if _is_no_field(kind) or _is_mutable(one.default):
            return None
        found[name] = one
    return _Parameters(found)


def _own_fields(cls: type, body: Mapping[str, object], *, kw_only: bool) -> dict[str, Any]:
    """The fields that a class adds to those of its bases."""
    kinds = inspect.get_annotations(cls)
    kept = {name: body[name] for name in kinds if name in body}
    kept |= {"__annotations__": kinds, "__module__": cls.__module__, "__doc__": cls.__name__}
    bare = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)
    found: dict[str, Any] = vars(bare(type(cls.__name__, (), kept)))[_FIELDS]
    return found


def _is_no_field(kind: object) -> bool:
    """Whether an annotation is `InitVar` or `KW_ONLY`, which are for the standard library; or maybe is."""
    if isinstance(kind, str):
        return "InitVar" in kind or "KW_ONLY" in kind
    return kind is dataclasses.KW_ONLY or isinstance(kind, dataclasses.InitVar) or kind is dataclasses.InitVar


def _is_mutable(default: object) -> bool:
    """Whether a default may not be shared, as the standard library decides it. Asking a class for its
    `__hash__` would compile it."""
    return next(vars(base)["__hash__"] for base in type(default).__mro__ if "__hash__" in vars(base)) is None


def _is_of_the_class(kind: object) -> bool:
    """Whether an annotation names something of the class, not a field of its objects."""
    if isinstance(kind, str):
        return kind.startswith(("ClassVar", "typing.ClassVar"))
    return kind is ClassVar or getattr(kind, "__origin__", None) is ClassVar


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

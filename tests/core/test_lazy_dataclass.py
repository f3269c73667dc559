"""Our `dataclass` does what the one of the standard library does."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from vestige.core import lazy_dataclass

T = TypeVar("T")
OPTIONS = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True, "kw_only": True},
    {"slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True, "order": True},
]


def point(dataclass: Callable[..., Any], options: dict[str, bool]) -> Any:
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)
        hidden: str = field(default="h", repr=False)
        origin: ClassVar[str] = "here"

        @property
        def total(self) -> int:
            return self.x + self.y

    return dataclass(**options)(Point)


@pytest.fixture(params=[0, lazy_dataclass.FIRST_OBJECTS], ids=["first objects", "later objects"])
def before(request: pytest.FixtureRequest) -> int:
    """How many objects there are already."""
    return int(request.param)


@pytest.fixture(params=OPTIONS, ids=lambda options: "-".join(options) or "plain")
def both(request: pytest.FixtureRequest, before: int) -> tuple[Any, Any]:
    """The same class made by both."""
    ours = point(lazy_dataclass.dataclass, request.param)
    for number in range(before):
        ours(x=number)
    return ours, point(dataclasses.dataclass, request.param)


def derived(dataclass: Callable[..., Any]) -> Any:
    """A class with fields that have further options."""

    class Derived:
        x: int
        _: dataclasses.KW_ONLY
        scale: dataclasses.InitVar[int] = 2  # type: ignore[assignment]  # as it is written
        y: int = 1
        derived: int = field(default=0, init=False)

        def __post_init__(self, scale: int) -> None:
            self.derived = self.x * scale + self.y

    return dataclass(slots=True)(Derived)


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or the kind of its error."""
    try:
        return call()
    except Exception as exc:  # whatever the other one raises has to be the same
        return type(exc)


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: repr(kind(x=1)),
        lambda kind: kind(x=1) == kind(x=1, tags=["a"]),
        lambda kind: kind(x=1) == kind(x=2),
        lambda kind: kind(x=1) == (1, 2),
        lambda kind: len({kind(x=1), kind(x=1)}),
        lambda kind: kind(1, 5).total,
        lambda kind: repr(kind(1, 5)),
        lambda kind: repr(kind(1, y=5, tags=["b"])),
        lambda kind: kind(),
        lambda kind: kind(x=1, z=3),
        lambda kind: kind(1, x=1),
        lambda kind: kind(1, 2, [], "h", "too many"),
        lambda kind: setattr(kind(x=1), "x", 3),
        lambda kind: isinstance(outcome(lambda: setattr(kind(x=1), "other", 3)), type),
        lambda kind: delattr(kind(x=1), "x"),
        lambda kind: kind(x=1).tags is kind(x=1).tags,
        lambda kind: kind.origin,
        lambda kind: kind.__match_args__,
        lambda kind: str(inspect.signature(kind)),
        lambda kind: [(one.name, one.default, one.kw_only) for one in dataclasses.fields(kind)],
        lambda kind: dataclasses.asdict(dataclasses.replace(kind(x=1), y=7)),
        lambda kind: copy.deepcopy(kind(x=1, tags=["a"])).tags,
        lambda kind: hasattr(kind(x=1), "__dict__"),
        lambda kind: kind(x=1) < kind(x=2),
        lambda kind: (kind.__name__, kind.__qualname__, kind.__module__, kind.__doc__),
        lambda kind: dataclasses.is_dataclass(kind),
    ],
)
def test_it_behaves_like_the_standard_one(both: tuple[Any, Any], use: Callable[[Any], Any]) -> None:
    ours, theirs = both
    assert outcome(lambda: use(ours)) == outcome(lambda: use(theirs))


def with_own_values(dataclass: Callable[..., Any]) -> Any:
    """A class with fields that get no argument."""

    class Counted:
        x: int
        seen: int = field(default=0, init=False)
        notes: list[str] = field(default_factory=list, init=False, compare=False)
        later: int = field(init=False)

        def __post_init__(self) -> None:
            if self.x:
                self.later = self.x

    return dataclass(slots=True)(Counted)


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: repr(kind(1)),
        lambda kind: kind(0).later,
        lambda kind: kind(1).notes is kind(1).notes,
        lambda kind: kind(1, 2),
        lambda kind: kind(1, seen=2),
        lambda kind: repr(dataclasses.replace(kind(1), x=2)),
        lambda kind: dataclasses.replace(kind(1), seen=2),
    ],
)
def test_fields_without_an_argument_are_set_alike(use: Callable[[Any], Any]) -> None:
    ours, theirs = with_own_values(lazy_dataclass.dataclass), with_own_values(dataclasses.dataclass)
    assert outcome(lambda: use(ours)) == outcome(lambda: use(theirs))


def test_the_first_hashes_are_those_of_the_compiled_method() -> None:
    @lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
    class Marked(Base):
        kind: str
        note: str = field(default="", compare=False)

    made = Marked(one=1, kind="a", note="b")
    first = hash(made)
    assert not inspect.isfunction(vars(Marked)["__init__"])
    assert first == hash(dataclasses.replace(made, note="c")) == hash((1, "a"))
    assert {hash(made) for _ in range(2 * lazy_dataclass.FIRST_OBJECTS)} == {first}
    assert inspect.isfunction(vars(Marked)["__init__"])


@pytest.mark.parametrize(
    "use",
    [
        lambda kind: repr(kind(3)),
        lambda kind: repr(kind(3, scale=4, y=0)),
        lambda kind: kind(3, 4),
        lambda kind: kind(3, derived=1),
    ],
)
def test_fields_with_options_are_left_to_the_standard_one(use: Callable[[Any], Any]) -> None:
    ours, theirs = derived(lazy_dataclass.dataclass), derived(dataclasses.dataclass)
    assert outcome(lambda: use(ours)) == outcome(lambda: use(theirs))


def test_a_mutable_default_is_refused() -> None:
    @lazy_dataclass.dataclass(slots=True)
    class Shared:
        values: list[int] = []  # noqa: RUF012  what is refused

    with pytest.raises(ValueError):
        Shared()


def test_a_subclass_may_call_the_init_of_its_base() -> None:
    class Shifted(Base):
        def __init__(self, one: int) -> None:
            super().__init__(one=one + 1)

    assert [Shifted(number).one for number in range(2 * lazy_dataclass.FIRST_OBJECTS)][-1] == 80


def test_a_class_without_a_hash_of_its_own_has_that_of_its_base() -> None:
    @lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
    class Kept:
        one: int

    @lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
    class Noted(Kept):
        note: str

    assert hash(Noted(one=1, note="a")) == hash(Noted(one=1, note="b"))
    assert Noted(one=1, note="a") == Noted(one=1, note="b")


def test_a_few_objects_are_made_without_compiling_their_class() -> None:
    @lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
    class Rare:
        x: int = 1

    def compiled() -> bool:
        return inspect.isfunction(vars(Rare)["__init__"])

    assert [Rare().x for _ in range(lazy_dataclass.FIRST_OBJECTS)][-1] == 1
    assert not compiled()
    assert Rare(x=2).x == 2
    assert compiled()


def test_a_changed_copy_is_made_without_compiling_its_class() -> None:
    @lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
    class Kept(Base):
        x: int = 1
        tags: tuple[str, ...] = field(default=(), compare=False)

    copied = dataclasses.replace(Kept(one=1), x=2)
    assert not inspect.isfunction(vars(Kept)["__init__"])
    assert [one.name for one in dataclasses.fields(Kept)] == ["one", "x", "tags"]
    assert (copied.one, copied.x, copied.tags) == (1, 2, ())
    assert copied == Kept(one=1, x=2, tags=("a",))
    assert inspect.isfunction(vars(Kept)["__init__"])


@lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A base."""

    one: int

    def __post_init__(self) -> None:
        if self.one < 0:
            raise ValueError


@lazy_dataclass.dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Base, Generic[T]):
    """A class with a base and a parameter."""

    two: T


def test_fields_and_checks_are_inherited_and_objects_travel() -> None:
    made = Derived(one=1, two="b")
    assert [field.name for field in dataclasses.fields(made)] == ["one", "two"]
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made
    assert Derived[str](one=1, two="b") == made
    with pytest.raises(ValueError):
        Derived(one=-1, two="b")
    with pytest.raises(FrozenInstanceError):
        made.one = 2  # type: ignore[misc]  # what is refused
    assert not hasattr(made, "__dict__")


def test_a_standard_dataclass_can_be_derived_from_one() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Standard(Base):
        three: int

    assert repr(Standard(one=1, three=3)).endswith("Standard(one=1, three=3)")


def test_most_classes_of_a_short_command_are_never_compiled() -> None:
    """What it is for: importing the application compiles few of our classes."""
    code = (
        "import sys, vestige.app.app\n"
        "from vestige.core.lazy_dataclass import _Compiled\n"
        "ours = [(name, module) for name, module in sys.modules.items() if name.startswith('vestige.')]\n"
        "kinds = {kind for name, module in ours for kind in vars(module).values()\n"
        "         if isinstance(kind, type) and kind.__module__ == name}\n"
        "ours = [kind for kind in kinds if '__dataclass_fields__' in vars(kind)]\n"
        "found = [vars(kind).get('__init__') for kind in ours]\n"
        "print(len(found), sum(isinstance(one, _Compiled) for one in found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    classes, untouched = map(int, done.stdout.split())
    assert classes > 90
    assert untouched > 0.8 * classes

"""Switches of libraries in our own processes. Nothing else is imported here: they have to be set before
numpy and pydantic are imported. A program that uses Vestige as a library keeps its own."""

import os
import sys
from types import ModuleType

TYPE_CHECKING = False  # `typing` has the same, and is not imported here
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

_SWITCHES = {
    # Worker threads of numpy's matrix library spin while they wait, which costs more than they save on small
    # matrices, and take cores from the embedding model.
    "OPENBLAS_NUM_THREADS": "1",
    # pydantic would read the description of every installed package to look for its own plug-ins.
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


class _Placeholder(ModuleType):
    """Stands for a module of a library that our programs do not need. The real one takes its place when it is
    asked for what this one lacks."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        from importlib import import_module

        return getattr(import_module(self.__name__), name)


class _NoPlugins(_Placeholder):
    """Stands for pydantic's loader of plug-ins while they are switched off. The real one imports the standard
    library's readers of package metadata and e-mail first, which is a twentieth of the start of a command."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        return ()


class _ArrayTypes(_Placeholder):
    """Stands for numpy's modules of types with the one type that numpy and our modules use at import. The
    real ones define hundreds, which takes a tenth of the import of numpy."""

    def __getattr__(self, name: str) -> object:
        if name != "NDArray":
            return super().__getattr__(name)
        from typing import Any, TypeVar

        # Not from numpy, which asks for this while it is imported itself.
        from numpy._core.multiarray import dtype, ndarray

        self.NDArray = ndarray[tuple[Any, ...], dtype[TypeVar("_ScalarT")]]  # type: ignore[misc]  # a type made at run time
        return self.NDArray


_placeholders: dict[str, type[ModuleType]] = {}


class _Placeholders:
    """Finds and makes each placeholder once; after that the real module is found."""

    @staticmethod
    def find_spec(
        name: str, path: "Sequence[str] | None" = None, _target: ModuleType | None = None
    ) -> "ModuleSpec | None":
        if name not in _placeholders:
            return None
        from importlib.machinery import ModuleSpec

        found = ModuleSpec(name, _Placeholders)  # type: ignore[arg-type]  # it has what a loader needs
        if _placeholders[name] is _ArrayTypes and path is not None:  # a package, whose own modules are real
            found.submodule_search_locations = [f"{one}/{name.rpartition('.')[2]}" for one in path]
        return found

    @staticmethod
    def create_module(spec: "ModuleSpec") -> ModuleType:
        return _placeholders.pop(spec.name)(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing to run."""


def prepare_libraries() -> None:
    """Set the switches that the user has not set, and leave out what our programs do not need."""
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
    if os.environ["PYDANTIC_DISABLE_PLUGINS"] == "__all__" and "pydantic" not in sys.modules:
        _placeholders["pydantic.plugin._loader"] = _NoPlugins
    if "numpy" not in sys.modules:
        _placeholders.update(dict.fromkeys(("numpy._typing", "numpy.typing"), _ArrayTypes))
        # These give docstrings to numpy's functions, which takes longer than the types.
        _placeholders.update(
            dict.fromkeys(("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"), ModuleType)
        )
    if _Placeholders not in sys.meta_path:
        sys.meta_path.insert(0, _Placeholders)

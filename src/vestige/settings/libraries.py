"""Switches of libraries in our own processes. Nothing else is imported here: they have to be set before
numpy and pydantic are imported. A program that uses Vestige as a library keeps its own."""

import os
import sys
from types import ModuleType

_SWITCHES = {
    # Worker threads of numpy's matrix library spin while they wait, which costs more than they save on small
    # matrices, and take cores from the embedding model.
    "OPENBLAS_NUM_THREADS": "1",
    # pydantic would read the description of every installed package to look for its own plug-ins.
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


_PLUGIN_LOADER = "pydantic.plugin._loader"


class _NoPlugins(ModuleType):
    """Stands for pydantic's loader of plug-ins while they are switched off. The real one imports the standard
    library's readers of package metadata and e-mail first, which is a twentieth of the start of a command."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        return ()

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        from importlib import import_module

        sys.modules.pop(_PLUGIN_LOADER, None)
        return getattr(import_module(_PLUGIN_LOADER), name)


def prepare_libraries() -> None:
    """Set the switches that the user has not set."""
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
    if os.environ["PYDANTIC_DISABLE_PLUGINS"] == "__all__" and "pydantic" not in sys.modules:
        sys.modules[_PLUGIN_LOADER] = _NoPlugins(_PLUGIN_LOADER)

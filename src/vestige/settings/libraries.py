"""Switches of libraries in our own processes. Nothing else is imported here: they have to be set before
numpy and pydantic are imported. A program that uses Vestige as a library keeps its own."""

import os

_SWITCHES = {
    # Worker threads of numpy's matrix library spin while they wait, which costs more than they save on small
    # matrices, and take cores from the embedding model.
    "OPENBLAS_NUM_THREADS": "1",
    # pydantic would read the description of every installed package to look for its own plug-ins.
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}


def prepare_libraries() -> None:
    """Set the switches that the user has not set."""
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)

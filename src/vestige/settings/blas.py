"""The threads of numpy's matrix library in our own processes. Nothing else is imported here: it has to be set
before anything imports numpy."""

import os


def calm_blas() -> None:
    """Limit numpy's matrix library to one thread. Call it before numpy is imported.

    Its worker threads spin while they wait, which costs more than they save on small matrices and takes cores
    from the embedding model. Only our own processes do this; a program that uses Vestige as a library keeps
    its settings.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

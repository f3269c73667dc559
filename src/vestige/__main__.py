"""The commands `vestige` (also `python -m vestige`) and `vestige-restore`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""


def main() -> NoReturn:
    """Run `vestige`."""
    with _starting():
        from vestige.app import main as run  # brings numpy

    run()


def restore() -> NoReturn:
    """Run `vestige-restore FILE`."""
    with _starting():
        from vestige.app import restore_main  # brings numpy

    restore_main()


@contextmanager
def _starting() -> Iterator[None]:
    """Ctrl-C while everything is imported, which takes a moment, ends the program without a traceback."""
    try:
        from vestige.settings import calm_blas

        calm_blas()
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

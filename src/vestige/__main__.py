"""The commands `vestige` (also `python -m vestige`) and `vestige-restore`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from vestige import __version__

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells expect."""


def main() -> NoReturn:
    """Run `vestige`."""
    if sys.argv[1:] in (["--version"], ["-V"]):  # avoids all other imports
        print(f"vestige {__version__}")  # noqa: T201 - click would have to be imported
        sys.exit()
    with _quiet():
        from vestige.app.app import main as run  # brings numpy

        run()


def restore() -> NoReturn:
    """Run `vestige-restore FILE`."""
    with _quiet():
        from vestige.app.app import restore_main  # brings numpy

        restore_main()


@contextmanager
def _quiet() -> Iterator[None]:
    """Exit without a traceback on Ctrl-C, also during imports, which take a moment."""
    try:
        from vestige.settings.settings import calm_blas

        calm_blas()
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

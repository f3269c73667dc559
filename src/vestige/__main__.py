"""The commands `vestige` (also `python -m vestige`) and `vestige-restore`."""

import os
import sys
import threading
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
    with _ending():
        from vestige.app.console import main as run

        run()


def restore() -> NoReturn:
    """Run `vestige-restore FILE`."""
    with _ending():
        from vestige.app.console import restore_main

        restore_main()


@contextmanager
def _ending() -> Iterator[None]:
    """Exit without a traceback on Ctrl-C, also during imports, which take a moment. At the end, the process
    is not taken apart object by object: that takes a sixth of a short command."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        if threading.active_count() > 1 or not isinstance(ended.code, int):
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code)


if __name__ == "__main__":
    main()

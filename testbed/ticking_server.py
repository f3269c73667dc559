"""A server that does at the signal SIGUSR1 what it otherwise does every minute, and says when that is done.

A program: its arguments are those of a process that it stands in for, `python -m vestige serve …`.
"""

import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from vestige.app.app import App, open_database, open_ends, open_here, open_server
from vestige.transports.cli import run

DONE = "ticked"


def open_ticking(options: Mapping[str, Any], *, parent: int = 0) -> App:
    """The app of the server."""
    app = open_server(options, parent=parent)

    def tick() -> None:
        app.autopilot.tick()
        sys.stderr.write(f"{DONE}\n")

    signal.signal(signal.SIGUSR1, lambda number, frame: threading.Thread(target=tick).start())
    return app


if __name__ == "__main__":
    sys.exit(run(open_here, open_ticking, open_database, open_ends, sys.argv[sys.argv.index("serve") :]))

"""The log of hooks that failed, which `agent doctor` shows. The program `vestige-hook` imports this module
alone, so that it imports nothing heavy."""

import os

NAME = "hooks.log"
MAX_BYTES = 200_000


def note_failure(state: "str | os.PathLike[str]", line: str) -> None:
    """Add a line to the log in the folder of the agent's state. It never raises: a hook must not fail, not
    even where its log cannot be written."""
    path = os.path.join(state, NAME)  # noqa: PTH118 - pathlib takes 5 ms to import
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)  # noqa: PTH103 - as above
        full = os.path.exists(path) and os.stat(path).st_size > MAX_BYTES  # noqa: PTH110, PTH116 - as above
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if full else os.O_APPEND)
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, (" ".join(line.split())[:500] + "\n").encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except OSError:
        return

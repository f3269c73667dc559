"""The log of a server at a terminal: one short line for each thing, instead of JSON."""

import logging
import sys
from datetime import datetime

import orjson

from vestige.transports.cli.session import visible

ACCESS = "vestige.access"
"""The logger of requests, whose messages are JSON, as the server has it; that cannot be imported before it is
known whether what it needs is installed."""


class ShortLines(logging.Formatter):
    """Log records for somebody who watches."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, and where it went wrong if it did."""
        if record.name == ACCESS:
            return visible(_request(record.getMessage()))
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return visible(f"{record.levelname.capitalize()}: {record.getMessage()}{trace}")


def _request(message: str) -> str:
    told = orjson.loads(message)
    time = datetime.fromisoformat(told["time"]).astimezone()
    who = told.get("caller") or told.get("agent")  # of the server or of the bridge
    words = (told["status"], f"{told['method']} {told['route']}", f"{told['ms']:.0f} ms", who)
    # A label is what somebody else wrote: it stays on its line.
    return "  ".join([f"{time:%H:%M:%S}", *(" ".join(str(word).split()) for word in words if word)])


def write_for_people() -> None:
    """Have what was set up to be logged be written for people, if they watch."""
    for handler in logging.getLogger().handlers if sys.stderr.isatty() else ():
        handler.setFormatter(ShortLines())

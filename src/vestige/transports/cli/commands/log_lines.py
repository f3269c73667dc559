"""Short log lines for a server on a terminal, instead of JSON."""

import logging
import sys
from datetime import datetime

import orjson

from vestige.transports.cli.session import visible, within_width

ACCESS = "vestige.access"
"""The logger of requests, whose messages are JSON. The server's own constant cannot be imported before its
dependencies are known to be installed."""


class ShortLines(logging.Formatter):
    """Formats log records for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name == ACCESS:
            return visible(_request(record.getMessage()))
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        line = within_width(visible(f"{record.levelname.capitalize()}: {record.getMessage()}"))
        return f"{line}{visible(trace)}"


def _request(message: str) -> str:
    request = orjson.loads(message)
    time = datetime.fromisoformat(request["time"]).astimezone()
    who = request.get("caller") or request.get("agent")  # of the server or of the bridge
    words = (request["status"], f"{request['method']} {request['route']}", f"{request['ms']:.0f} ms", who)
    # A label is foreign text: it must stay on its line.
    return "  ".join([f"{time:%H:%M:%S}", *(" ".join(str(word).split()) for word in words if word)])


def write_for_people() -> None:
    """Use short lines for the configured log handlers if standard error is a terminal."""
    for handler in logging.getLogger().handlers if sys.stderr.isatty() else ():
        handler.setFormatter(ShortLines())

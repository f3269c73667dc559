"""The agent that a request comes from: the header `X-Agent-Id`. The agent states it itself, so it is an
attribution: every client that has the token can send any name."""

import re

from starlette.datastructures import Headers

from vestige.transports.bridge.answers import BridgeRefused
from vestige.transports.http.problems import Refusal

HEADER = "X-Agent-Id"
# Printable ASCII. No slash, because it becomes part of a path; no bar, because that ends it in a context.
_AGENT = re.compile(r"[!-.0-\[\]-{}~]([ -.0-\[\]-{}~]{0,126}[!-.0-\[\]-{}~])?")

BAD_AGENT = Refusal(
    status=400,
    code="bad_agent_id",
    message=f"{HEADER} is not the name of an agent.",
    hint="1 to 128 printable ASCII characters without slashes and bars; not `.` or `..`.",
)


def agent_of(headers: Headers) -> str | None:
    """The agent of a request; None without the header; BridgeRefused if the name is not valid."""
    given = headers.getlist(HEADER)
    if not given:
        return None
    name = given[0].strip()
    if len(given) > 1 or not _AGENT.fullmatch(name) or name in (".", ".."):
        raise BridgeRefused(BAD_AGENT)
    return name

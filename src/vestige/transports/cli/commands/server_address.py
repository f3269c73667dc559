"""Addresses of a server: for other machines, and a check whether Vestige answers there."""

import logging
import socket
import threading
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from urllib.parse import urlsplit

import orjson

from vestige.settings.settings import Settings

logger = logging.getLogger(__name__)

UNENCRYPTED = (
    "Keys and tokens are sent unencrypted between machines: put a proxy with HTTPS in front of the server."
)

DOCUMENTATION_ADDRESSES = {socket.AF_INET: "203.0.113.1", socket.AF_INET6: "2001:db8::1"}
"""Documentation addresses (RFC 5737, RFC 3849); their route is the route to other machines."""
_ANY_PORT = 9
_LONGEST_ANSWER = 1_000


def url_for_others(opened: socket.socket, names: Sequence[str]) -> str | None:
    """The URL for other machines of a socket on all addresses: with the first of its names, else an address.
    None for any other socket, and on a machine without a route to others."""
    host, port = opened.getsockname()[:2]
    if not ip_address(host).is_unspecified:
        return None
    families = (socket.AF_INET, socket.AF_INET6) if ":" in host else (socket.AF_INET,)
    name = next((one for one in names if "*" not in one), None) or next(
        filter(None, map(own_address, families)), None
    )
    return f"http://{_authority(name, port)}" if name else None


def own_address(family: socket.AddressFamily) -> str | None:
    """The address of this machine on the route to others. Nothing is sent to find it."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as towards:
            towards.connect((DOCUMENTATION_ADDRESSES[family], _ANY_PORT))
            return str(towards.getsockname()[0])
    except OSError:
        return None


def on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_unencrypted(opened: socket.socket, settings: Settings) -> None:
    """Warn if other machines can connect without a proxy that could encrypt."""
    if not ip_address(opened.getsockname()[0]).is_loopback and not settings.server.trusted_proxies:
        logger.warning(UNENCRYPTED)


def leaves_unencrypted(url: str) -> bool:
    """Whether data sent to a URL goes unencrypted to another machine."""
    return url.startswith("http:") and not on_this_machine(url)


def is_vestige(url: str, seconds: float) -> bool:
    outcomes: list[bool] = []
    # In a thread, because a name lookup has no time limit.
    asking = threading.Thread(target=lambda: outcomes.append(_answers(url, seconds)), daemon=True)
    asking.start()
    asking.join(seconds)
    return any(outcomes)


def _answers(url: str, seconds: float) -> bool:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        asking = kind(parts.hostname or "", parts.port, timeout=seconds)
        try:
            asking.request("GET", f"{parts.path}/health")
            outcomes = orjson.loads(asking.getresponse().read(_LONGEST_ANSWER))
        finally:
            asking.close()
    except (OSError, HTTPException, ValueError):
        return False
    return isinstance(outcomes, dict) and outcomes.keys() == {"status", "version"}


def _authority(name: str, port: int) -> str:
    """A name with the port, unless it has one; an IPv6 address is put in brackets."""
    bare = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
    return bare if urlsplit(f"//{bare}").port else f"{bare}:{port}"

"""Where a server is reached, by other machines as well if it lets them come, and whether one is there."""

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
    "Between machines keys and tokens travel without encryption: put a proxy with https before the server."
)

NOBODYS = {socket.AF_INET: "203.0.113.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documentation (RFC 5737, RFC 3849): the way there is the way to other machines."""
_ANY_PORT = 9
_LONGEST_ANSWER = 1_000


def url_for_others(opened: socket.socket, names: Sequence[str]) -> str | None:
    """Where other machines reach a socket that is open on every address of this one: by the first of its
    names, else by an address. None for any other socket, and on a machine without a way to others."""
    host, port = opened.getsockname()[:2]
    if not ip_address(host).is_unspecified:
        return None
    families = (socket.AF_INET, socket.AF_INET6) if ":" in host else (socket.AF_INET,)
    name = next((one for one in names if "*" not in one), None) or next(
        filter(None, map(own_address, families)), None
    )
    return f"http://{_authority(name, port)}" if name else None


def own_address(family: socket.AddressFamily) -> str | None:
    """The address of this machine on the way to others. Nothing is sent to find it."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as towards:
            towards.connect((NOBODYS[family], _ANY_PORT))
            return str(towards.getsockname()[0])
    except OSError:
        return None


def on_this_machine(url: str) -> bool:
    """Whether an address leads to nobody else."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warn_unencrypted(opened: socket.socket, settings: Settings) -> None:
    """Say so where other machines come without a proxy that could have brought encryption."""
    if not ip_address(opened.getsockname()[0]).is_loopback and not settings.server.trusted_proxies:
        logger.warning(UNENCRYPTED)


def leaves_unencrypted(url: str) -> bool:
    """Whether what is sent to an address can be read on its way to another machine."""
    return url.startswith("http:") and not on_this_machine(url)


def is_vestige(url: str, seconds: float) -> bool:
    """Whether a server of ours answers at an address, within this time."""
    told: list[bool] = []
    # In a thread, because nothing bounds the time that a name takes to be looked up.
    asking = threading.Thread(target=lambda: told.append(_answers(url, seconds)), daemon=True)
    asking.start()
    asking.join(seconds)
    return any(told)


def _answers(url: str, seconds: float) -> bool:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        asking = kind(parts.hostname or "", parts.port, timeout=seconds)
        try:
            asking.request("GET", f"{parts.path}/health")
            told = orjson.loads(asking.getresponse().read(_LONGEST_ANSWER))
        finally:
            asking.close()
    except (OSError, HTTPException, ValueError):
        return False
    return isinstance(told, dict) and told.keys() == {"status", "version"}


def _authority(name: str, port: int) -> str:
    """A name with the port, unless it has one; an IPv6 address stands in brackets."""
    bare = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
    return bare if urlsplit(f"//{bare}").port else f"{bare}:{port}"

"""Where a server is reached: by other machines as well, if it lets them come."""

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

NOBODYS = {socket.AF_INET: "203.0.113.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documentation (RFC 5737, RFC 3849): the way there is the way to other machines."""
_ANY_PORT = 9


def url_for_others(opened: socket.socket, names: Sequence[str]) -> str | None:
    """Where other machines reach a socket that is open on every address of this one: by the first of its
    names, else by an address. None for any other socket, and on a machine without a way to others."""
    host, port = opened.getsockname()[:2]
    if not ip_address(host).is_unspecified:
        return None
    families = (socket.AF_INET, socket.AF_INET6) if ":" in host else (socket.AF_INET,)
    name = next(iter(names), None) or next(filter(None, map(own_address, families)), None)
    return f"http://{_authority(name, port)}" if name else None


def own_address(family: socket.AddressFamily) -> str | None:
    """The address of this machine on the way to others. Nothing is sent to find it."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as towards:
            towards.connect((NOBODYS[family], _ANY_PORT))
            return str(towards.getsockname()[0])
    except OSError:
        return None


def _authority(name: str, port: int) -> str:
    """A name with the port, unless it has one; an IPv6 address stands in brackets."""
    bare = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
    return bare if urlsplit(f"//{bare}").port else f"{bare}:{port}"

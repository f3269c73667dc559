"""Addresses: where a server listens, which are loopback addresses, and which sender a request counts for."""

import ipaddress
import re

from starlette.requests import HTTPConnection
from starlette.types import Scope

from vestige.core.errors import ConfigError
from vestige.core.lazy_dataclass import dataclass

LOCALHOST = "localhost"
_BIND = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]/\s@]+)):(?P<port>\d{1,5})")
_SHARED_BITS = 64
"""One customer has at least a network of this size: its IPv6 addresses count as one sender."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers in which a proxy states the address of its client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """The address that a server listens on, as configured; port 0 takes a free one."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether it is a loopback address. Of a name this is not known, except for localhost."""
        return self.host.lower() == LOCALHOST or is_loopback(self.host)

    @property
    def wildcard(self) -> bool:
        """Whether the server listens on every address of the machine."""
        literal = literal_of(self.host)
        return literal is not None and literal.is_unspecified

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


def bind_of(text: str) -> Bind:
    """Parse `host:port`; ConfigError for anything else."""
    found = _BIND.fullmatch(text.strip())
    port = int(found["port"]) if found else 0
    host = (found["six"] or found["host"]) if found else ""
    if found is None or port > 65_535 or (found["six"] and literal_of(host) is None):
        raise ConfigError(
            f"{text!r} is not an address to listen on.",
            hint="Give host:port, such as 127.0.0.1:3927 or [::1]:3927.",
            details={"setting": "server.bind"},
        )
    return Bind(host=host, port=port)


def bracketed(host: str) -> str:
    """A host as written in a URL: an IPv6 address has brackets."""
    return f"[{host}]" if ":" in host else host


def literal_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address; None for a name. An IPv4 address mapped into IPv6 becomes the IPv4 address."""
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = literal.ipv4_mapped if isinstance(literal, ipaddress.IPv6Address) else None
    return mapped or literal


def is_loopback(host: str) -> bool:
    literal = literal_of(host)
    return literal is not None and literal.is_loopback


def sender_of(scope: Scope) -> str:
    """The sender of a request, for limits: an IPv4 address, or the network of an IPv6 address."""
    client = scope.get("client")
    literal = literal_of(client[0]) if client else None
    if literal is None:
        return str(client[0]) if client else ""
    if literal.version == 6:
        return str(ipaddress.ip_network((literal, _SHARED_BITS), strict=False))
    return str(literal)


def payer_of(scope: Scope) -> str:
    """The sender that a request counts for in shared limits: its key, or its address without a key."""
    key_id: str = scope["state"]["key_id"]
    return key_id or sender_of(scope)


def is_local(connection: HTTPConnection) -> bool:
    """Whether a client is on this machine and did not come through a proxy."""
    client = connection.client
    forwarded = any(name in connection.headers for name in _FORWARDED)
    return client is not None and not forwarded and is_loopback(client.host)

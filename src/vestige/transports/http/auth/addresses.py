"""Addresses: where a server listens, which of them only this machine reaches, and whom one stands for."""

import ipaddress
import re
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import Scope

from vestige.core.errors import ConfigError

LOCALHOST = "localhost"
_BIND = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]/\s@]+)):(?P<port>\d{1,5})")
_SHARED_BITS = 64
"""A household has at least so many bits of IPv6 addresses to itself: they count as one."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What proxies say of the clients they stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """Where a server listens, as it was told; port 0 is any free one."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it. A name may stand for any address, so it cannot be sure."""
        return self.host.lower() == LOCALHOST or is_loopback(self.host)

    @property
    def wildcard(self) -> bool:
        """Whether it is every address of the machine."""
        literal = literal_of(self.host)
        return literal is not None and literal.is_unspecified

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


def bind_of(text: str) -> Bind:
    """A bind from `host:port`, or ConfigError."""
    found = _BIND.fullmatch(text.strip())
    port = int(found["port"]) if found else 0
    host = (found["six"] or found["host"]) if found else ""
    if found is None or port > 65_535 or (found["six"] and literal_of(host) is None):
        raise ConfigError(
            f"{text!r} is no address to listen on.",
            hint="Give host:port, such as 127.0.0.1:3927 or [::1]:3927.",
            details={"setting": "server.bind"},
        )
    return Bind(host=host, port=port)


def bracketed(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def literal_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text is; None for a name. An IPv4 address in IPv6 clothes is that address."""
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = literal.ipv4_mapped if isinstance(literal, ipaddress.IPv6Address) else None
    return mapped or literal


def is_loopback(host: str) -> bool:
    """Whether a literal address is one of this machine alone."""
    literal = literal_of(host)
    return literal is not None and literal.is_loopback


def sender_of(scope: Scope) -> str:
    """Whom a request comes from, for limits: an IPv4 address, or the network of an IPv6 one."""
    client = scope.get("client")
    literal = literal_of(client[0]) if client else None
    if literal is None:
        return str(client[0]) if client else ""
    if literal.version == 6:
        return str(ipaddress.ip_network((literal, _SHARED_BITS), strict=False))
    return str(literal)


def payer_of(scope: Scope) -> str:
    """Whom a request counts for, where much is shared: its key, or where it comes from if it has none."""
    key_id: str = scope["state"]["key_id"]
    return key_id or sender_of(scope)


def is_local(connection: HTTPConnection) -> bool:
    """Whether a client is on this machine and came by itself: one behind a proxy here may be anywhere."""
    client = connection.client
    forwarded = any(name in connection.headers for name in _FORWARDED)
    return client is not None and not forwarded and is_loopback(client.host)

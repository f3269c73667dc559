"""Offline mode: with VESTIGE_OFFLINE, every host but this machine is forbidden."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from vestige.core.errors import ModelUnavailable


def require_loopback(url: str) -> None:
    """Raise ModelUnavailable unless the endpoint is on this machine. The URL itself is validated
    elsewhere."""
    host = urlsplit(url).hostname
    if host is None or is_loopback(host):
        return
    raise ModelUnavailable(
        f"The embeddings endpoint at {host} is on the network, which VESTIGE_OFFLINE forbids to use.",
        hint="Unset VESTIGE_OFFLINE, or give the URL of an endpoint here, such as http://localhost:11434/v1",
        details={"reason": "offline", "host": host},
    )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name alone, without a lookup."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

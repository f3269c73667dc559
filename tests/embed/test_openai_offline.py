"""What VESTIGE_OFFLINE leaves within reach."""

from urllib.parse import urlsplit

import pytest

from testbed.failures import each
from vestige.core.errors import ModelUnavailable
from vestige.embed.openai import is_loopback, require_loopback


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434/v1",
        "http://LOCALHOST/v1",
        "http://127.0.0.1:8080/v1",
        "http://127.9.8.7/v1",
        "https://[::1]:8080/v1",
    ],
)
def test_an_endpoint_on_this_machine_may_be_used_offline(url: str) -> None:
    require_loopback(url)
    assert is_loopback(urlsplit(url).hostname or "")


@each(
    "url",
    [
        "https://api.openai.com/v1",
        "http://192.168.1.20:11434/v1",
        "http://localhost.example.org/v1",
        "http://127.0.0.1.example.org/v1",
        "http://127.0.0.1@example.org/v1",
        "http://0.0.0.0:8080/v1",
        "http://[fe80::1]/v1",
        "http://my-own-name/v1",
    ],
)
def test_any_other_endpoint_is_refused_offline_with_what_to_do(url: str) -> None:
    with pytest.raises(ModelUnavailable, match="VESTIGE_OFFLINE") as caught:
        require_loopback(url)
    assert caught.value.details["reason"] == "offline"
    assert caught.value.hint is not None
    assert "Unset VESTIGE_OFFLINE" in caught.value.hint

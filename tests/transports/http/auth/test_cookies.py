"""A cookie is believed if we signed it for that, and whatever it says, reading it does not fail."""

import hmac
from base64 import urlsafe_b64encode
from datetime import timedelta
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.world import START
from vestige.transports.http.auth.cookies import ID_BYTES, MAX_ENDED, Logins

SECRET = b"x" * 64
HOUR = timedelta(hours=1)
_NUMBERS = count(1)
LOGINS = Logins(SECRET, hours=1, entropy=lambda size: next(_NUMBERS).to_bytes(size, "big"))
CLAIMS = {
    "id": "A" * 22,
    "key": "a key",
    "iat": int(START.timestamp()),
    "exp": int(START.timestamp()) + 3_600,
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def signed(body: str, purpose: str = "login:") -> str:
    """A cookie with a signature that is right for this purpose."""
    told = f"{purpose}{body}".encode("utf-8", "surrogatepass")
    return f"{body}.{encoded(hmac.digest(SECRET, told, 'sha256'))}"


def saying(claims: object) -> str:
    return encoded(orjson.dumps(claims))


def test_a_cookie_is_read_as_it_was_made_until_it_expires() -> None:
    login = LOGINS.begin("a key", START)
    assert LOGINS.read(login.text, START) == login
    assert (login.key_id, login.began, login.ends) == ("a key", START, START + HOUR)
    assert LOGINS.read(login.text, START + HOUR) is None


def test_every_login_has_an_id_of_its_own() -> None:
    one, other = (LOGINS.begin("a key", START) for _ in range(2))
    assert one.id != other.id
    assert len(one.id) == len(encoded(bytes(ID_BYTES)))


def test_what_is_signed_for_this_is_believed() -> None:
    login = LOGINS.read(signed(saying(CLAIMS)), START)
    assert login is not None
    assert (login.id, login.key_id, login.began, login.ends) == ("A" * 22, "a key", START, START + HOUR)


@pytest.mark.parametrize("purpose", ["csrf:", "mark:", "session:", ""])
def test_what_is_signed_for_something_else_is_not(purpose: str) -> None:
    assert LOGINS.read(signed(saying(CLAIMS), purpose), START) is None


def test_a_token_of_a_login_signs_no_other() -> None:
    login = LOGINS.begin("a key", START)
    body = login.text.partition(".")[0]
    for made in (LOGINS.csrf(login), LOGINS.mark(login.text), LOGINS.mark(f"login:{body}")):
        assert LOGINS.read(f"{body}.{made}", START) is None


@pytest.mark.parametrize("name", CLAIMS)
def test_a_cookie_that_leaves_something_out_is_none(name: str) -> None:
    """As those are that were made before logins had ids."""
    claims = {one: value for one, value in CLAIMS.items() if one != name}
    assert LOGINS.read(signed(saying(claims)), START) is None


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_no_cookie(text: str) -> None:
    assert LOGINS.read(text, START) is None
    assert not LOGINS.is_csrf(LOGINS.begin("a key", START), text)


@given(st.text(st.characters(exclude_categories=())))
def test_a_text_is_no_cookie_though_it_is_signed(body: str) -> None:
    assert LOGINS.read(signed(body.replace(".", "")), START) is None


@given(st.binary())
def test_bytes_are_no_cookie_though_they_are_signed(body: bytes) -> None:
    assert LOGINS.read(signed(encoded(body)), START) is None


@given(anything)
def test_a_value_of_another_shape_is_no_cookie_though_it_is_signed(value: object) -> None:
    assert LOGINS.read(signed(saying(value)), START) is None


@given(st.sampled_from(sorted(CLAIMS)), anything)
def test_a_claim_of_any_type_makes_no_reading_fail(name: str, value: Any) -> None:
    login = LOGINS.read(signed(saying({**CLAIMS, name: value})), START)
    if login is not None:
        assert isinstance(login.key_id, str)
        assert len(login.id) == 22
        assert login.ends > START


def test_a_login_that_was_ended_here_is_remembered_as_long_as_it_would_have_lasted() -> None:
    logins = Logins(SECRET, hours=1, entropy=lambda size: next(_NUMBERS).to_bytes(size, "big"))
    first, later = logins.begin("a key", START), logins.begin("a key", START + HOUR)
    logins.end_here(first, START)
    assert logins.ended_here(first)
    assert not logins.ended_here(later)
    logins.end_here(later, START + HOUR)
    assert logins.ended_here(later)
    assert not logins.ended_here(first), "nobody can use it any more"


def test_only_so_many_are_remembered_and_the_first_to_expire_is_forgotten_first() -> None:
    logins = Logins(SECRET, hours=1, entropy=lambda size: next(_NUMBERS).to_bytes(size, "big"))
    made = [logins.begin("a key", START + timedelta(seconds=at)) for at in range(3)]
    logins._ended = {str(at): START + 2 * HOUR for at in range(MAX_ENDED - 2)}
    for login in made:
        logins.end_here(login, START)
    assert [logins.ended_here(login) for login in made] == [False, True, True]
    assert len(logins._ended) == MAX_ENDED

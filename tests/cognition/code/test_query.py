"""What a question asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.code.query import MOST_TERMS, STOP_WORDS, analyse
from vestige.cognition.code.tokens import tokens_of

REPORT = (
    """Cookies with a semicolon fail

I noticed that `parse_cookie` raises; see also requests.sessions.Session and src/app/main.py.

```python
import shop
shop.open(cart)
```

Traceback (most recent call last):
  File "/srv/lib/shop/cookies.py", line 12, in read_header
    raise CookieError(text)
shop.errors.CookieError: no value
"""
    + "It happens every time I open the page with another browser, whatever I do. " * 4
)


@pytest.mark.parametrize(
    "text", ["Pool", "parse_cookie", "Rack::Response", "std.fmt.parseInt", "formatter", "empty?", "open()"]
)
def test_one_name_is_a_symbol(text: str) -> None:
    assert analyse(text).is_symbol


@pytest.mark.parametrize("text", ["how are routes added", "ssh agent plugin", "", "  ", "Pool and Route"])
def test_several_words_are_a_sentence(text: str) -> None:
    assert not analyse(text).is_symbol


def test_a_qualified_name_weighs_by_its_last_part() -> None:
    query = analyse("Rack::Response")
    assert query.symbols == {"rack": 0.5, "response": 1.0}


def test_a_qualified_name_keeps_what_it_is_in() -> None:
    assert analyse("HTTPAdapter.send").qualified == (("httpadapter", "send"),)
    assert analyse("how does Session::get work").qualified == (("session", "get"),)
    assert analyse("send").qualified == ()


def test_names_in_a_sentence_are_symbols_and_their_parts_are_terms() -> None:
    query = analyse("how does ObjectMapper read a parse_tree")
    assert set(query.symbols) == {"objectmapper", "parse_tree"}
    assert set(tokens_of("ObjectMapper parse_tree read")) <= set(query.terms)


def test_words_that_say_nothing_are_left_out() -> None:
    query = analyse("how is the session stored and where")
    assert not STOP_WORDS & set(query.terms)
    assert query.words == tuple(tokens_of("session stored"))


def test_a_report_weighs_its_title_spans_and_errors_over_prose() -> None:
    query = analyse(REPORT)
    assert query.is_report
    assert query.symbols["parse_cookie"] > query.symbols.get("browser", 0)
    assert query.terms["semicolon"] > query.terms["browser"]
    assert query.terms["cookieerror"] > query.terms["browser"]
    assert "read_header" in query.symbols


def test_a_report_names_its_files_and_modules() -> None:
    paths = analyse(REPORT).paths
    assert {"src/app/main.py", "srv/lib/shop/cookies.py", "requests/sessions/Session"} <= set(paths)


@given(st.text(max_size=600))
def test_any_text_can_be_read(text: str) -> None:
    query = analyse(text)
    assert len(query.terms) <= MOST_TERMS or query.is_symbol
    assert all(weight > 0 for weight in query.terms.values())


def test_words_of_other_scripts_are_terms() -> None:
    assert analyse("Как хранится сессия").terms.keys() >= {"сессия"}
    assert "認証" in analyse("認証 の処理").terms

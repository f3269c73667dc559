"""What is taken out of a text: injected blocks and secrets."""

import pytest

from vestige.exchange.transcripts.clean import INJECTED, said, without_secrets


@pytest.mark.parametrize("name", INJECTED)
def test_a_block_of_every_kind_is_taken_out(name: str) -> None:
    assert said(f'before\n<{name} id="7">\nmemory text\n</{name}>\nafter') == "before\n\nafter"


def test_a_block_that_is_not_closed_goes_to_the_end() -> None:
    assert said("mine <vestige-recall id=1> the rest was cut") == "mine"


def test_blocks_inside_of_each_other_and_closing_tags_alone_are_taken_out() -> None:
    nested = "a <deja-recall>x <deja-recall>y</deja-recall> z</deja-recall> b </system-reminder> c"
    assert said(nested) == "a  b  c"


def test_other_tags_stay() -> None:
    assert said("use <div> and </div>, 1 < 2") == "use <div> and </div>, 1 < 2"


def test_the_instructions_of_a_project_are_taken_out() -> None:
    text = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\nmy question"
    assert said(text) == "my question"


def test_secrets_are_replaced_by_their_kind() -> None:
    key = "AKIA" + "Q3EGR7TNLP5XWK2M"
    cleaned = without_secrets(f"export AWS_ACCESS_KEY_ID={key}")
    assert key not in cleaned
    assert "[redacted:" in cleaned


def test_what_a_client_writes_in_the_name_of_the_user_is_taken_out() -> None:
    assert said("[Request interrupted by user for tool use]") == ""
    assert said("[Image: source: /tmp/a b.png]\nWhat is this? [Image #2]") == "What is this?"
    assert said("[Request] stays, and so does a[0]") == "[Request] stays, and so does a[0]"

"""Takes out of a text what its author did not write and what must not be kept: blocks that programs
injected, and secrets."""

import re

from vestige.cognition.secrets.find import find_secrets, redacted
from vestige.core.patterns import lazy_pattern
from vestige.exchange.transcripts.shape import MAX_TEXT_CHARS

INJECTED = (
    "vestige-recall", "vestige-context", "deja-recall", "claude-mem-context", "system-reminder",
    "environment_context", "user_instructions", "permissions instructions", "local-command-stdout",
    "local-command-stderr", "local-command-caveat", "command-message", "command-name", "command-args",
    "command-contents", "agent-notification", "task-notification", "user-prompt-submit-hook",
    "session-start-hook", "ide_opened_file", "ide_selection", "turn_aborted",
)  # fmt: skip
"""Tags of blocks that clients and memories put into a message: ours, those of others, and of hooks."""

_TAG = lazy_pattern(rf"<(/?)({'|'.join(re.escape(name) for name in INJECTED)})(?:\s[^<>]{{0,300}})?>")
_BY_CLIENT = lazy_pattern(
    r"\[(?:Request interrupted by user[\w ]{0,30}|Image: source: [^\]\n]{1,500}|Image #\d{1,3})\]"
)
"""What a client writes in the name of the user."""
_AGENTS_FILE = "# AGENTS.md instructions for "
_END_OF_INSTRUCTIONS = "</INSTRUCTIONS>"


def without_injected(text: str) -> str:
    """The text without injected blocks. A block that is not closed goes to the end of the text: what a
    program injected and cut off is still not the author's."""
    text = _without_agents_file(text)
    if "<" not in text:
        return text.strip()
    kept, at, depth, name = [], 0, 0, ""
    for tag in _TAG.finditer(text):
        closing = bool(tag[1])
        if depth == 0 and not closing:
            kept.append(text[at : tag.start()])
            name, depth = tag[2], 1
        elif depth and tag[2] == name:
            depth += -1 if closing else 1
        elif depth == 0:
            kept.append(text[at : tag.start()])  # a closing tag alone
        if depth == 0:
            at = tag.end()
    if depth == 0:
        kept.append(text[at:])
    return "".join(kept).strip()


def _without_agents_file(text: str) -> str:
    if not text.lstrip().startswith(_AGENTS_FILE):
        return text
    end = text.find(_END_OF_INSTRUCTIONS)
    return "" if end < 0 else text[end + len(_END_OF_INSTRUCTIONS) :]


def storable(text: str) -> str:
    """Text as UTF-8 can have it: half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def without_secrets(text: str) -> str:
    """The text with every secret replaced by its kind."""
    return redacted(text, find_secrets(text)) if text else text


def said(text: str) -> str:
    """What the author of a message wrote, of a length that can be indexed."""
    return _BY_CLIENT.sub("", without_injected(text)[:MAX_TEXT_CHARS]).strip()

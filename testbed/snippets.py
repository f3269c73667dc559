"""Snippets in Markdown that the tests run, with the output that the page promises.

<!-- test -->             runs the block below in a folder of its own
<!-- test: model -->      … with the real embedding model
<!-- test: continued -->  … in the folder of the snippet before it on the page; both words may stand together

<!-- expect: TEXT -->     after the block: its output contains this text; several of them, in this order
<!-- output -->           after the block: on a terminal the output contains the lines of the ```text block
                          below, in this order; `…` stands for anything in a line
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TEST = re.compile(
    r"^<!-- test(?:: (?P<words>[a-z ]+))? -->\n```(?P<language>sh|python)\n(?P<code>.*?)^```\n(?P<rest>.*)",
    re.MULTILINE | re.DOTALL,
)
_EXPECT = re.compile(r"\n*<!-- expect: (?P<text>.+?) -->\n")
_OUTPUT = re.compile(r"\n*<!-- output -->\n```text\n(?P<lines>.*?)^```\n", re.MULTILINE | re.DOTALL)
WORDS = frozenset({"model", "continued"})
MARKS = re.compile(r"^<!-- (?:test|expect|output)\b", re.MULTILINE)
ANYTHING = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A block that is run, and what its output must contain. `marks` counts its comments on the page."""

    language: str
    code: str
    words: frozenset[str]
    expected: tuple[str, ...]
    shown: tuple[str, ...]
    marks: int

    @property
    def model(self) -> bool:
        return "model" in self.words

    @property
    def continued(self) -> bool:
        return "continued" in self.words


def snippets_in(page: str) -> Iterator[Snippet]:
    """The snippets of a page, in order."""
    found = _TEST.search(page)
    while found:
        rest, expected, shown, marks = found["rest"], [], [], 1
        while mark := _EXPECT.match(rest) or _OUTPUT.match(rest):
            rest, marks = rest[mark.end() :], marks + 1
            if "text" in mark.groupdict():
                expected.append(mark["text"])
            else:
                shown += [line.rstrip() for line in mark["lines"].splitlines() if line.strip()]
        yield Snippet(
            language=found["language"],
            code=found["code"],
            words=frozenset((found["words"] or "").split()),
            expected=tuple(expected),
            shown=tuple(shown),
            marks=marks,
        )
        found = _TEST.search(rest)


def missing_text(expected: tuple[str, ...], output: str) -> str | None:
    """The first expected text that the output does not contain behind the ones before it; None if it has
    all."""
    at = 0
    for text in expected:
        pattern = ".*?".join(re.escape(part) for part in text.split(ANYTHING))
        found = re.compile(pattern).search(output, at)
        if found is None:
            return text
        at = found.end()
    return None

"""From a file that was read to the rows of the index: sections, names, words, a summary."""

import re
from collections.abc import Iterator

from vestige.cognition.code.languages import language_of
from vestige.cognition.code.ranking import file_words, search_tokens
from vestige.cognition.code.sections import CodeSection, lines_of, sections_of
from vestige.engine.project.files.source_file import SourceFile, content_hash
from vestige.store.contract.code_index import FileRow, IndexedFile, SectionRow

EXTRACTOR = "3"
"""Changes when the same file would get other rows, so that indexes are brought up to date."""
SIGNATURE_CHARS = 300
SUMMARY_CHARS = 240
MOST_READ, MOST_LINES = 8_000, 120
"""How much of a file is read to see what it says of itself."""

_DOCSTRING = re.compile(r'\s*(?:#[^\n]*\n\s*)*[rRuUbB]{0,2}("""|\'\'\')')
_COMMENT = re.compile(r"[ \t]*(?://[/!]?|#!?|\*+/?|/\*+!?|--|;+|%+|<!--|'''|\"\"\")[ \t]?")
_NOT_PROSE = re.compile(
    r"(?i)(?:copyright|licen[sc]e|spdx-|\(c\)|all rights reserved|@file|eslint|pylint|mypy:|-\*-|vim:"
    r"|^!?/(?:usr/)?bin"
    r"|generated (?:by|from)|do not edit|shellcheck|frozen_string_literal|pyright:|@ts-|flow$|region\b"
    r"|<\?xml|doctype|=====|-----|badge|img\.shields)"
)
_LICENCE = re.compile(r"(?i)licen[sc]e|copyright|all rights reserved|spdx-|warrant(?:y|ies)")
_BEFORE = re.compile(
    r"(?:package|import|use|using|namespace|require|require_once|from|extern|module|mod|declare|library|#\w+|<\?|@)\b"
    r"|[#<(){}'\"@;]|use strict"
)
_TAG = re.compile(r"</?\w{1,20}>|\{@\w{1,20} (?:[\w.#()]{1,100} )?([^}]{0,200})\}|[ \t]@\w{1,20}\b.{0,2000}")
_MARKUP = ("#", "<", "|", "!", "[!", "```", "---", "===", "- ", "* ", "..", ":")
_MODULE_DOC = re.compile(r'@moduledoc[ \t]+(?:~[sS])?(""")')
_HASHED = frozenset({
    "python", "bash", "ruby", "perl", "r", "julia", "elixir", "make", "dockerfile", "yaml", "toml", "nim",
    "crystal", "hcl", "nix", "powershell", "graphql", "ini", "",
})  # fmt: skip
"""Languages with `#` before a comment; in others it begins an instruction or an attribute."""
_RULE = re.compile(r"[=~^*#\"'`.+_-]{3,}")
_WORDY = re.compile(r"[^\W\d_]{2,}(?:[ \t,;:'’-]+[^\W\d_]{1,})+")


def extracted(source: SourceFile, generation: int) -> IndexedFile:
    """The rows of a file."""
    row = FileRow(
        path=source.path,
        size=source.size,
        mtime_ns=source.mtime_ns,
        hash=source.hash,
        generation=generation,
        skip=source.skip or "",
        redacted=source.redacted,
        summary=summary_of(source.path, source.text),
        words=tuple(sorted(file_words(source.path))),
    )
    if source.skip is not None:
        return IndexedFile(file=row)
    sections = sections_of(source.path, source.text)
    return IndexedFile(file=row, sections=tuple(_row(source.path, one) for one in sections))


def section_hash(text: str) -> str:
    return content_hash(text.encode("utf-8", "replace"))


def summary_of(path: str, text: str) -> str:
    """What a file says it is for: the first sentence of its docstring, its comment or its prose."""
    lines = lines_of(text[:MOST_READ])[:MOST_LINES]
    documents = path.lower().endswith((".md", ".mdx", ".rst", ".txt", ".markdown"))
    prose = _prose(lines) if documents else _comment(path, text[:MOST_READ], lines)
    sentence = " ".join(prose.split())
    end = re.search(r"[.!?](?=\s|$)", sentence)
    return (sentence[: end.end()] if end else sentence)[:SUMMARY_CHARS]


def _row(path: str, section: CodeSection) -> SectionRow:
    return SectionRow(
        kind=section.kind,
        name=section.name,
        symbol_path=section.symbol_path,
        start_line=section.start_line,
        end_line=section.end_line,
        signature=section.signature[:SIGNATURE_CHARS],
        hash=section_hash(section.text),
        terms=tuple(search_tokens(path, section)),
        definitions=section.definitions,
        references=section.references,
    )


def _prose(lines: list[str]) -> str:
    """The first paragraph that is no heading, picture, list or table."""
    kept: list[str] = []
    for line in lines:
        plain = line.strip()
        if _is_prose(plain) and not plain.startswith(_MARKUP):
            kept.append(plain)
        elif kept:
            break
    return " ".join(kept)


def _comment(path: str, text: str, lines: list[str]) -> str:
    """The docstring at the beginning, or the first comment that says something."""
    found = _DOCSTRING.match(text) or _MODULE_DOC.search(text)
    if found:
        inside = text[found.end() :].split(found[1], 1)[0].strip()
        return next(filter(None, map(_paragraph, inside.split("\n\n"))), "")
    documented = ""
    for prose, is_top, is_doc in _comment_blocks(lines, hashed=language_of(path) in _HASHED):
        if prose and is_top:
            return prose
        if prose and is_doc:
            documented = prose  # The first type of a file is often what it is for.
            break
    return documented


def _comment_blocks(lines: list[str], *, hashed: bool) -> Iterator[tuple[str, bool, bool]]:
    """The prose of each comment, whether nothing but imports is before it, and whether it documents what
    follows. A licence is no prose."""
    kept: list[str] = []
    is_top = is_doc = is_licence = False
    begun = False
    for line in [*lines, "end"]:
        mark = _COMMENT.match(line)
        if mark and (hashed or not line.lstrip().startswith("#")):
            plain = line[mark.end() :].partition("*/")[0].removesuffix("-->").strip("| \t\r\n")
            if not kept and not is_licence:
                is_top, is_doc = not begun, line.lstrip().startswith(("/**", "///", "//!", "-- |"))
            is_licence = is_licence or bool(_LICENCE.search(plain))
            if plain and not _NOT_PROSE.search(plain):
                kept.append(plain)
            continue
        if kept or is_licence:
            text = "" if is_licence else _plain_markup(" ".join(kept))
            yield text if _is_prose(text) else "", is_top, is_doc
            kept, is_licence = [], False
        begun = begun or bool(line.strip() and not _BEFORE.match(line))


def _plain_markup(text: str) -> str:
    """Prose without tags of documentation."""
    return " ".join(_TAG.sub(lambda tag: tag[1] or "", text).split())


def _paragraph(text: str) -> str:
    """A paragraph of a docstring; nothing of a title with its rule, or of a mark for programs."""
    lines = [line.strip() for line in text.strip().split("\n")]
    ruled = any(_RULE.fullmatch(line) for line in lines[1:])
    return "" if ruled or lines[0].startswith((":", "..", "@")) else " ".join(lines)


def _is_prose(line: str) -> bool:
    return bool(_WORDY.search(line)) and not _NOT_PROSE.search(line)

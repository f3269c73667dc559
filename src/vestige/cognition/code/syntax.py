"""Blocks of a program by its syntax, with the grammars of the extra `code` where they are installed."""

import importlib
from functools import cache
from typing import TYPE_CHECKING

from vestige.cognition.code.blocks import CodeBlock, nested, signature_from
from vestige.cognition.code.grammars import ELIXIR, LEADING, OPAQUE, WRAPPERS, Grammar, grammar_of
from vestige.core.patterns import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

MOST_CHARS = 400_000
"""A longer file is data or made by a program; it is read by its indentation."""
WINDOW = 4096
"""A file longer than this is first read in windows of this many bytes: what is no program in its language
takes the parsers quadratic time, and whether it is shows in each window."""
MOST_WINDOWS = 4
"""The windows that are read, from all over the file."""
MOST_ERRORS = 35 / 1024
"""The errors for each byte of a window above which it is no program; code cut at random has half as many."""
NO_PROGRAM = 0.75
"""The share of such windows from which on a file counts as no program."""
LONGEST_LINE = 20_000
"""The same for a file with a longer line."""
MOST_HEAD = 1200
"""Signatures are read up to this many bytes."""
MOST_DEPTH = 40
"""How deep declarations are looked for: deeper nesting is not written by people."""
_NAME = lazy_pattern(r"[^\W\d][\w$]*[?!]?")
_BRACKET = lazy_pattern(r"[(\[{\n=]")
_RECEIVER = lazy_pattern(r"\*?[ \t]*([^\W\d]\w*)[ \t]*(?:\[[^\]]{0,200}\])?[ \t]*\)$")
_QUALIFIER = lazy_pattern(
    r"(?:[^\W\d]\w*(?:::|\.)){0,8}([^\W\d]\w*)(?:<[^>]{0,100}>)?(?:::|[.:])~?[^\W\d][\w$]*(?![\w$.:])"
)
_QUALIFIED_FIELDS = ("declarator", "left", "name")
_NO_OWNERS = frozenset(("exports", "module", "this", "self", "window", "global"))
_ELIXIR_NAME = lazy_pattern(r"[\w.]+[?!]?")
_NAME_FIELDS = ("name", "declarator", "pattern", "left", "type")
_BODY_FIELDS = ("body", "value", "declarations", "match")
_BODIES = frozenset(("do_block", "struct_declaration", "class_body", "function_body", "enum_class_body"))
_LEAVES = frozenset(("function", "method", "constant"))
"""Kinds of symbols in which no others are looked for."""


def blocks_of(language: str, text: str) -> list[CodeBlock] | None:
    """The declarations of a program, or None where no grammar can read it."""
    grammar = grammar_of(language)
    loaded = None if grammar is None or not _is_sane(text) else _loaded(grammar.module, grammar.entry)
    if grammar is None or loaded is None:
        return None
    from tree_sitter import Parser

    parser, content = Parser(loaded), text.encode("utf-8", "replace")
    if len(content) > WINDOW and not _is_program(content, parser):
        return None
    tree = parser.parse(content)
    blocks = nested(_declarations(tree.root_node, grammar, content))
    # A file that is one error says nothing about its symbols.
    return None if not blocks and tree.root_node.has_error else blocks


def _is_sane(text: str) -> bool:
    return len(text) <= MOST_CHARS and max(map(len, text.split("\n"))) <= LONGEST_LINE


def _is_program(content: bytes, parser: "Parser") -> bool:
    """Whether windows from all over a file look like its language."""
    step = max(WINDOW, len(content) // MOST_WINDOWS)
    starts = [
        content.rfind(b"\n", max(0, place - LONGEST_LINE), place) + 1
        for place in range(0, len(content) - WINDOW // 2, step)
    ]
    bad = good = 0
    for start in starts:
        errors = _errors(parser.parse(content[start : start + WINDOW]).root_node)
        bad, good = (bad + 1, good) if errors > MOST_ERRORS * WINDOW else (bad, good + 1)
        if len(starts) - good < NO_PROGRAM * len(starts):
            return True  # whatever the others are
    return bad < NO_PROGRAM * len(starts)


def _errors(root: "Node") -> int:
    """The nodes that have no place in the syntax, and those that are missing."""
    count = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        count += node.child_count if node.is_error else node.is_missing
        waiting.extend(child for child in node.children if child.has_error)
    return count


@cache
def _loaded(module: str, entry: str) -> "Language | None":
    """The grammar, ready to parse; None where its package is not installed or too old."""
    try:
        from tree_sitter import Language

        return Language(getattr(importlib.import_module(module), entry)())
    except (ImportError, AttributeError, ValueError):
        return None


def has_grammar(language: str) -> bool:
    """Whether files of a language are read by their syntax here."""
    grammar = grammar_of(language)
    return grammar is not None and _loaded(grammar.module, grammar.entry) is not None


def _declarations(root: "Node", grammar: Grammar, content: bytes) -> list[CodeBlock]:
    """Every declaration outside of functions, in order of its first line; those at a line once."""
    found: list[CodeBlock] = []
    # Nodes to visit, each with its depth and the rows from which and up to which it belongs to a declaration.
    waiting: list[tuple[Node, int, int, int]] = [(root, 0, -1, -1)]
    while waiting:
        node, depth, first, last = waiting.pop()
        kind = _kind(node, grammar)
        if kind:
            found.append(_block(node, kind, first, last, content))
        if kind in _LEAVES or depth > MOST_DEPTH:
            continue
        waiting.extend(reversed(_children(node, depth, -1 if kind else first, -1 if kind else last)))
    return _once(found)


def _children(node: "Node", depth: int, first: int, last: int) -> "list[tuple[Node, int, int, int]]":
    """The named children of a node that can declare something, with the rows that belong to them."""
    wraps = node.type in WRAPPERS
    begin = (first if first >= 0 else node.start_point[0]) if wraps else -1
    end = max(last, node.end_point[0]) if wraps else -1
    lead = after = -1
    children = []
    for child in node.named_children:
        row = child.start_point[0]
        if child.type in LEADING or _is_attribute(child):
            lead = lead if lead >= 0 and row <= after + 1 else row
            after = child.end_point[0]
            continue
        own = lead if lead >= 0 and row <= after + 1 else -1
        if child.type not in OPAQUE:
            starts = [place for place in (begin, own) if place >= 0]
            children.append((child, depth + 1, min(starts) if starts else -1, end))
        lead = -1
    return children


def _is_attribute(node: "Node") -> bool:
    """Whether a node is a module attribute of Elixir, such as the documentation of a function."""
    return node.type == "unary_operator" and (node.text or b"").startswith((b"@doc", b"@spec", b"@impl"))


def _kind(node: "Node", grammar: Grammar) -> str:
    """The kind of symbol that a node declares; empty for none."""
    kind = grammar.kinds.get(node.type, "") if node.is_named else ""
    if kind == "elixir":
        target = node.child_by_field_name("target")
        return ELIXIR.get((target.text or b"").decode(), "") if target is not None else ""
    if kind == "zig":
        value = node.named_children[-1].type if node.named_children else ""
        return "class" if value.endswith("_declaration") else "constant"
    if kind == "assigned":
        right = _right(node)
        return "function" if "function" in right else "class" if right == "class" else ""
    if kind == "constant" and "function" in _right(node):
        return "function"
    return "" if kind == "class" and node.type.endswith("_specifier") and not _has_body(node) else kind


def _right(node: "Node") -> str:
    """The type of what is assigned."""
    for name in ("right", "value"):
        child = node.child_by_field_name(name)
        if child is not None:
            return child.type
    last = node.named_children[-1] if node.named_children else None
    if last is not None and last.type == "expression_list" and last.named_children:
        return last.named_children[0].type
    return ""


def _has_body(node: "Node") -> bool:
    return node.child_by_field_name("body") is not None


def _block(node: "Node", kind: str, first: int, last: int, content: bytes) -> CodeBlock:
    start, end = node.start_point[0], node.end_point[0] + (1 if node.end_point[1] else 0)
    return CodeBlock(
        kind=kind,
        name=_name(node),
        start=start if first < 0 else min(start, first),
        end=max(end, start + 1, last + 1 if last >= 0 else 0),
        signature=_signature(node, content),
        of=_of(node) if kind in _LEAVES else "",
    )


def _of(node: "Node") -> str:
    """What a function belongs to that stands outside of it: `Mux` in `func (m *Mux) Route()`, `Foo` in
    `Foo::bar()`; empty for the others."""
    receiver = node.child_by_field_name("receiver")
    if receiver is not None:
        match = _RECEIVER.search((receiver.text or b"")[:300].decode("utf-8", "replace"))
        return match[1] if match else ""
    child = next(
        (one for field in _QUALIFIED_FIELDS if (one := node.child_by_field_name(field)) is not None), None
    )
    while child is not None and (inner := child.child_by_field_name("declarator")) is not None:
        child = inner
    text = (child.text or b"")[:300].decode("utf-8", "replace") if child is not None else ""
    match = _QUALIFIER.match(text.replace(".prototype", ""))
    return match[1] if match and match[1] not in _NO_OWNERS else ""


def _name(node: "Node") -> str:
    """The name that a node declares, without what qualifies it."""
    if node.type == "call":
        arguments = next((child for child in node.named_children if child.type == "arguments"), None)
        return _elixir_name(arguments)
    for field in _NAME_FIELDS:
        child = node.child_by_field_name(field)
        while child is not None and (inner := child.child_by_field_name("declarator")) is not None:
            child = inner
        if child is not None:
            return _last_name(child)
    for child in node.named_children:
        if child.type.endswith(
            ("identifier", "name", "string", "variable_list", "declarator", "declaration")
        ):
            return _name(child) if child.named_children and "decl" in child.type else _last_name(child)
    return ""


def _last_name(node: "Node") -> str:
    """The last identifier of a qualified name, before brackets of any kind."""
    text = (node.text or b"")[:300].decode("utf-8", "replace")
    head, _, tail = text.partition("<")
    if tail and "::" in tail:  # A member of a template, such as `List<int>::add`.
        head = tail.rpartition("::")[2]
    names = _NAME.findall(_BRACKET.split(head, maxsplit=1)[0] or text)
    return names[-1] if names else ""


def _elixir_name(arguments: "Node | None") -> str:
    text = (arguments.text or b"")[:300].decode("utf-8", "replace") if arguments is not None else ""
    match = _ELIXIR_NAME.match(text.lstrip("( "))
    return match[0] if match else ""


def _signature(node: "Node", content: bytes) -> str:
    """The text of a declaration up to its body; its first line where the body has no mark."""
    body = next(
        (child for name in _BODY_FIELDS if (child := node.child_by_field_name(name)) is not None), None
    )
    body = body or next((child for child in node.named_children if child.type in _BODIES), None)
    text = content[node.start_byte : min(node.end_byte, node.start_byte + MOST_HEAD)]
    cut = body.start_byte - node.start_byte if body is not None else 0
    head = text[:cut] if cut > 0 else text.split(b"\n", 1)[0]
    return signature_from(head.decode("utf-8", "replace"))


def _once(found: list[CodeBlock]) -> list[CodeBlock]:
    """Declarations of the same lines as one with several names, clauses of one function as one block."""
    kept: list[CodeBlock] = []
    for block in sorted(found, key=lambda one: (one.start, -one.end)):
        last = kept[-1] if kept else None
        if last is not None and last.start == block.start and last.end == block.end:
            if block.name and block.name != last.name:
                last.others = (*last.others, block.name) if last.name else last.others
                last.name = last.name or block.name
        elif (
            last is not None
            and last.name == block.name
            and last.kind == block.kind
            and _continues(last, block)
        ):
            last.end = max(last.end, block.end)
        else:
            kept.append(block)
    return kept


def _continues(last: CodeBlock, block: CodeBlock) -> bool:
    """Whether a block is a further clause of the function before it."""
    return block.kind == "function" and last.end <= block.start <= last.end + 1 and bool(block.name)

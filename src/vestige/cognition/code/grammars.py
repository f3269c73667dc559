"""What declares a symbol in each grammar: types of syntax nodes, and the package that has the grammar.

The types are those of the versions in `constraints.txt`; a test holds the symbols of a sample of every
language to them, because grammars rename their nodes.
"""

from collections.abc import Mapping

from vestige.core.lazy_dataclass import dataclass

_KINDS: Mapping[str, Mapping[str, str]] = {
    "python": {
        "function": "function_definition",
        "class": "class_definition",
        "constant": "assignment",
        "type": "type_alias_statement",
    },
    "javascript": {
        "function": "function_declaration generator_function_declaration",
        "class": "class_declaration",
        "method": "method_definition",
        "constant": "variable_declarator field_definition",
        "assigned": "assignment_expression",
    },
    "typescript": {
        "function": "function_declaration generator_function_declaration function_signature",
        "class": "class_declaration abstract_class_declaration enum_declaration",
        "interface": "interface_declaration",
        "method": "method_definition abstract_method_signature method_signature",
        "constant": "variable_declarator public_field_definition",
        "type": "type_alias_declaration",
        "module": "module internal_module",
        "assigned": "assignment_expression",
    },
    "go": {
        "function": "function_declaration",
        "method": "method_declaration",
        "type": "type_spec type_alias",
        "constant": "const_spec var_spec",
    },
    "rust": {
        "function": "function_item function_signature_item macro_definition",
        "class": "struct_item enum_item union_item impl_item",
        "interface": "trait_item",
        "type": "type_item associated_type",
        "constant": "const_item static_item",
        "module": "mod_item",
    },
    "java": {
        "class": "class_declaration enum_declaration record_declaration",
        "interface": "interface_declaration annotation_type_declaration",
        "method": "method_declaration constructor_declaration compact_constructor_declaration",
        "constant": "field_declaration",
    },
    "c": {
        "function": "function_definition preproc_function_def",
        "class": "struct_specifier union_specifier enum_specifier",
        "type": "type_definition",
        "constant": "preproc_def declaration",
    },
    "cpp": {
        "function": "function_definition preproc_function_def",
        "class": "class_specifier struct_specifier union_specifier enum_specifier",
        "type": "type_definition alias_declaration concept_definition",
        "constant": "preproc_def declaration",
        "module": "namespace_definition",
    },
    "csharp": {
        "class": "class_declaration struct_declaration enum_declaration record_declaration",
        "interface": "interface_declaration",
        "method": "method_declaration constructor_declaration operator_declaration local_function_statement",
        "constant": "field_declaration property_declaration event_field_declaration indexer_declaration",
        "type": "delegate_declaration",
        "module": "namespace_declaration",
    },
    "ruby": {
        "class": "class",
        "module": "module",
        "method": "method singleton_method",
        "constant": "assignment",
    },
    "php": {
        "function": "function_definition",
        "class": "class_declaration trait_declaration enum_declaration",
        "interface": "interface_declaration",
        "method": "method_declaration",
        "constant": "const_element property_element",
    },
    "bash": {"function": "function_definition", "constant": "variable_assignment"},
    "kotlin": {
        "function": "function_declaration",
        "class": "class_declaration object_declaration companion_object",
        "method": "secondary_constructor",
        "type": "type_alias",
        "constant": "property_declaration",
    },
    "swift": {
        "function": "function_declaration protocol_function_declaration",
        "class": "class_declaration",
        "interface": "protocol_declaration",
        "method": "init_declaration deinit_declaration subscript_declaration",
        "type": "typealias_declaration",
        "constant": "property_declaration",
    },
    "scala": {
        "function": "function_definition function_declaration",
        "class": "class_definition object_definition enum_definition package_object",
        "interface": "trait_definition",
        "type": "type_definition",
        "constant": "val_definition var_definition given_definition",
        "module": "extension_definition",
    },
    "lua": {"function": "function_declaration", "assigned": "assignment_statement"},
    "elixir": {"elixir": "call"},
    "zig": {"function": "function_declaration test_declaration", "zig": "variable_declaration"},
    "haskell": {
        "function": "function bind signature",
        "class": "data_type newtype instance",
        "interface": "class",
        "type": "type_synonym type_synomym type_family",
    },
}

_PACKAGES = {"csharp": "c_sharp", "tsx": "typescript"}
_ENTRIES = {"typescript": "language_typescript", "tsx": "language_tsx", "php": "language_php"}

ELIXIR = {
    "def": "function", "defp": "function", "defmacro": "function", "defmacrop": "function",
    "defguard": "function", "defguardp": "function", "defdelegate": "function", "defcallback": "function",
    "defmodule": "module", "defprotocol": "interface", "defimpl": "class",
}  # fmt: skip
"""The calls that declare a symbol in Elixir, which has no other syntax for it."""

LEADING = frozenset(
    """comment line_comment block_comment multiline_comment doc_comment haddock attribute_item
    inner_attribute_item decorator annotation attribute_list pragma""".split()
)
"""Nodes that belong to the declaration below them."""

WRAPPERS = frozenset(
    """decorated_definition export_statement ambient_declaration template_declaration expression_statement
    lexical_declaration variable_declaration type_declaration const_declaration var_declaration
    property_declaration local_declaration declaration_command type_definition declaration""".split()
)
"""Nodes around one declaration that belong to it whole."""

OPAQUE = frozenset(
    """string string_literal template_string heredoc_body comment block_comment line_comment arguments
    argument_list parameters formal_parameters parameter_list token_tree lambda arrow_function
    function_expression object array dictionary list table_constructor subshell""".split()
)
"""Nodes in which no symbol is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Where a grammar is, and the kind of symbol that each type of node declares."""

    module: str
    entry: str
    kinds: Mapping[str, str]


LANGUAGES = (*_KINDS, "tsx")
"""Languages with a grammar."""


def grammar_of(language: str) -> Grammar | None:
    """The grammar of a language; None for one without."""
    kinds = _KINDS.get("typescript" if language == "tsx" else language)
    if kinds is None:
        return None
    return Grammar(
        module=f"tree_sitter_{_PACKAGES.get(language, language)}",
        entry=_ENTRIES.get(language, "language"),
        kinds={node: kind for kind, nodes in kinds.items() for node in nodes.split()},
    )

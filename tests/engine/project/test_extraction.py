"""What a file says it is for: prose, never a licence, a title or an instruction for a program."""

import pytest

from vestige.engine.project.extraction import summary_of

LICENCE = "/*\n * Copyright (C) 2020 Ada\n *\n * Unless required by law this is distributed as it is.\n */\n"
JAVA = "import b.C;\n\n/** Keeps {@link Price prices}. */\nclass A {}\n"


@pytest.mark.parametrize(
    ("path", "text", "summary"),
    [
        ("a.py", '"""\nshop.money\n~~~~~~~~~~\n\nAmounts of money. More.\n"""\n', "Amounts of money."),
        ("A.java", f"{LICENCE}package a;\n\n{JAVA}", "Keeps prices."),
        ("a.rs", "#![allow(dead_code)]\n//! Amounts of money.\nuse x::y;\n", "Amounts of money."),
        ("a.h", "#ifndef A_H\n#define A_H\n// Amounts of money.\nint a;\n", "Amounts of money."),
        ("a.sh", "#!/bin/bash\n# shellcheck shell=bash\n# Counts the money.\necho\n", "Counts the money."),
        ("a.rb", "# frozen_string_literal: true\nmodule A\n  # Counts the money.\n", "Counts the money."),
        ("a.ex", 'defmodule A do\n  @moduledoc """\n  Counts the money.\n  """\nend\n', "Counts the money."),
        ("a.go", "// Package money counts money.\npackage money\n", "Package money counts money."),
        ("a.js", "const a = 1;\n// A note on what follows.\nconst b = 2;\n", ""),
        ("a.js", "/** @const */ var a_0 = [];\n", ""),
        ("a.rst", ".. _money:\n\nMoney\n=====\n\nCounts the money.\n", "Counts the money."),
    ],
)  # fmt: skip
def test_a_file_is_summed_up_by_its_own_words(path: str, text: str, summary: str) -> None:
    assert summary_of(path, text) == summary

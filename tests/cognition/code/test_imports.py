"""What files import, and which files of the project that is."""

import pytest

from vestige.cognition.code.imports import ModuleFinder, imports_of


def found(path: str, text: str, files: list[str], prefixes: tuple[str, ...] = ()) -> list[str | None]:
    finder = ModuleFinder([path, *files], prefixes)
    return list(dict.fromkeys(finder.find(path, one) for one in imports_of(path, text)))


@pytest.mark.parametrize(
    ("path", "text", "target"),
    [
        ("src/shop/cart.py", "from .money import Price\n", "src/shop/money.py"),
        ("src/shop/cart.py", "from ..shop import money\n", "src/shop/money.py"),
        ("src/shop/cart.py", "from . import (\n    money,  # noqa\n)\n", "src/shop/money.py"),
        ("tests/test_cart.py", "import shop.money as m\n", "src/shop/money.py"),
        ("web/a.ts", "import { x } from './b'\n", "web/b.tsx"),
        ("web/a.ts", "export * from '../lib'\n", "lib/index.js"),
        ("web/a.js", "const b = require('./c.js')\n", "web/c.ts"),
        ("web/a.ts", "import { money } from '@acme/shop/money'\n", "packages/shop/src/money.ts"),
        ("cmd/main.go", 'import (\n\t"fmt"\n\n\tm "example.org/shop/money"\n)\n', "money"),
        ("app/java/org/acme/Cart.java", "import org.acme.Price;\n", "app/java/org/acme/Price.java"),
        ("Cart.kt", "import org.acme.plus\n", "app/java/org/acme"),
        ("src/cart.rs", "use crate::money::{Price, Sum};\n", "src/money/mod.rs"),
        ("src/lib.rs", "mod cart_test;\n", "src/cart_test.rs"),
        ("src/cart.c", '#include "money.h"\n#include <stdio.h>\n', "src/money.h"),
        ("test/cart.cc", '#include "acme/coin.h"\n', "include/acme/coin.h"),
        ("lib/cart.rb", "require_relative 'shop/coin'\n", "lib/shop/coin.rb"),
        ("src/Cart.php", "use Acme\\Shop\\Coin;\n", "src/Acme/Shop/Coin.php"),
        ("lib/cart.ex", "  alias Acme.CoinBox\n", "lib/acme/coin_box.ex"),
        ("src/Cart.hs", "import qualified Acme.Coin as C\n", "src/Acme/Coin.hs"),
        ("lua/cart.lua", 'local c = require("acme.coin")\n', "lua/acme/coin.lua"),
        ("src/cart.zig", 'const m = @import("coin.zig");\n', "src/coin.zig"),
        ("run.sh", "source ./tools/env.sh\n", "tools/env.sh"),
    ],
)  # fmt: skip
def test_an_import_leads_to_the_file_of_the_project(path: str, text: str, target: str) -> None:
    files = [
        "src/shop/__init__.py", "src/shop/money.py", "web/b.tsx", "lib/index.js", "web/c.ts",
        "money/money.go", "packages/shop/src/money.ts", "app/java/org/acme/Price.java", "src/money/mod.rs",
        "src/cart_test.rs", "src/money.h", "include/acme/coin.h", "lib/shop/coin.rb",
        "src/Acme/Shop/Coin.php", "lib/acme/coin_box.ex", "src/Acme/Coin.hs", "lua/acme/coin.lua",
        "src/coin.zig", "tools/env.sh",
    ]  # fmt: skip
    assert target in found(path, text, files, ("example.org/shop",))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/shop/cart.py", "import os\nimport json.decoder\nfrom collections.abc import Mapping\n"),
        ("web/a.ts", "import React from 'react'\n"),
        ("cmd/main.go", 'import "net/http"\n'),
        ("src/cart.rs", "use std::collections::HashMap;\n"),
        ("A.java", "import java.util.List;\n"),
    ],
)
def test_what_others_wrote_is_no_file_of_the_project(path: str, text: str) -> None:
    files = [
        "src/utils/os.py",
        "src/abc.py",
        "web/util/react.ts",
        "http/http.go",
        "src/hash_map.rs",
        "x/List.java",
    ]
    assert found(path, text, files) == [None]


def test_of_several_files_the_nearest_is_meant() -> None:
    files = ["a/core/money.py", "b/core/money.py"]
    assert found("b/cart.py", "import core.money\n", files) == ["b/core/money.py"]


def test_an_import_has_its_line_and_comes_once() -> None:
    text = "# one\nimport shop\n\nimport shop\nfrom money import (\n    a,\n)\n"
    made = [(one.name, one.line) for one in imports_of("x.py", text)]
    assert made == [("shop", 2), ("money", 5), ("money.a", 5)]


def test_a_language_without_imports_has_none() -> None:
    assert imports_of("notes.md", "import shop\n") == []

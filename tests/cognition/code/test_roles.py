"""What a file is for."""

import pytest

from vestige.cognition.code.roles import penalty, role_of


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/app/main.py", "source"),
        ("tests/test_main.py", "test"),
        ("pkg/main_test.go", "test"),
        ("src/main.spec.ts", "test"),
        ("src/test/java/FooTest.java", "test"),
        ("third_party/zlib/inflate.c", "vendored"),
        ("app/_compat.py", "compat"),
        ("examples/hello.py", "example"),
        ("_examples/hello.go", "example"),
        ("dist/axios.js", "built"),
        ("web/app.min.js", "built"),
        ("routes.json", "data"),
        ("package.json", "source"),
        ("docs/conf.py", "manual"),
        ("docs/guide.md", "source"),
        ("app/__init__.py", "package"),
        ("types/index.d.ts", "declaration"),
        ("CHANGELOG.md", "history"),
        ("NEWS", "history"),
        ("docs/en/release-notes.md", "history"),
        ("doc/changes/1.0.rst", "history"),
        ("src/history.py", "source"),
        (".github/workflows/release.yml", "source"),
        ("AUTHORS.rst", "credits"),
        ("LICENSE", "credits"),
        ("docs/history_of_ships.md", "source"),
        ("src/testimony.py", "source"),
        ("src/latest/contest.py", "source"),
    ],
)
def test_a_file_has_the_role_of_its_path(path: str, role: str) -> None:
    assert role_of(path) == role
    assert (penalty(path) == 1.0) == (role == "source")


def test_a_page_that_is_asked_for_weighs_as_any() -> None:
    assert penalty("HISTORY.md", is_named=True) == penalty("LICENSE", is_named=True) == 1.0
    assert penalty("HISTORY.md", of_history=True) == 1.0
    assert penalty("LICENSE", of_history=True) < 1.0
    assert penalty("routes.json", is_named=True) == 1.0
    assert penalty("tests/test_a.py", is_named=True, of_history=True) < 1.0


def test_a_package_that_defines_much_is_source() -> None:
    assert penalty("app/__init__.py", is_rich=True) == 1.0
    assert penalty("tests/__init__.py", is_rich=True) < 1.0

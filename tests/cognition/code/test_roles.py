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
        ("docs/conf.py", "manual"),
        ("docs/guide.md", "source"),
        ("app/__init__.py", "package"),
        ("types/index.d.ts", "declaration"),
        ("src/testimony.py", "source"),
        ("src/latest/contest.py", "source"),
    ],
)
def test_a_file_has_the_role_of_its_path(path: str, role: str) -> None:
    assert role_of(path) == role
    assert (penalty(path) == 1.0) == (role == "source")


def test_a_package_that_defines_much_is_source() -> None:
    assert penalty("app/__init__.py", is_rich=True) == 1.0
    assert penalty("tests/__init__.py", is_rich=True) < 1.0

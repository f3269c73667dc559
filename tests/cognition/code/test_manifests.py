"""What manifests of packages say, in the formats of many languages."""

import pytest

from vestige.cognition.code.manifests import PackageManifest, is_manifest, manifest_of

POETRY = '[tool.poetry]\nname = "shop"\n[tool.poetry.dependencies]\npython = "3"\nnumpy = "2"\n'
PROJECT = '[project]\nname = "shop"\ndependencies = ["numpy>=2; x"]\n[project.scripts]\ns = "shop:main"\n'
SCRIPTS = '{"name": "shop", "scripts": {"test": "vitest"}, "dependencies": {"react": "1"}}'
GO = "module example.org/shop\n\nrequire (\n\tgithub.com/a/b v1.2.0\n\tgithub.com/c/d v1 // indirect\n)\n"
MAVEN = """<project><artifactId>shop</artifactId><dependencies><dependency>
<groupId>junit</groupId><artifactId>junit</artifactId></dependency></dependencies></project>"""
SWIFT = 'let package = Package(\n  name: "Shop",\n  dependencies: [.package(url: "https://x/a/Nimble.git")])'
MAKE = "CC = gcc\ntest: build ## Run the tests\n\tpytest\n.PHONY: test\nbuild:\n\tmake x\n"


@pytest.mark.parametrize(
    ("path", "text", "name", "commands", "dependencies"),
    [
        ("pyproject.toml", PROJECT, "shop", {"s": "shop:main"}, ("numpy>=2",)),
        ("pyproject.toml", POETRY, "shop", {}, ("numpy",)),
        ("package.json", SCRIPTS, "shop", {"test": "vitest"}, ("react",)),
        ("Cargo.toml", '[package]\nname = "shop"\n[dependencies]\nserde = "1"\n', "shop", {}, ("serde",)),
        ("go.mod", GO, "example.org/shop", {}, ("github.com/a/b",)),
        (
            "composer.json",
            '{"name": "a/b", "require": {"php": "8", "psr/log": "3"}}',
            "a/b",
            {},
            ("psr/log",),
        ),
        ("requirements.txt", "# x\n-r other.txt\nnumpy==2\nrich\n", "", {}, ("numpy", "rich")),
        ("Gemfile", "source 'x'\ngem 'rake', '~> 13'\n", "", {}, ("rake",)),
        ("mix.exs", 'app: :shop,\n{:plug, "~> 1.0"},\n', "shop", {}, ("plug",)),
        ("pom.xml", MAVEN, "shop", {}, ("junit:junit",)),
        ("build.gradle.kts", 'dependencies {\n  implementation("org.a:b:1.0")\n}\n', "", {}, ("org.a:b",)),
        ("Shop.csproj", '<PackageReference Include="Moq" Version="4" />', "", {}, ("Moq",)),
        ("Package.swift", SWIFT, "Shop", {}, ("Nimble",)),
        ("Makefile", MAKE, "", {"build": "", "test": "Run the tests"}, ()),
    ],
)
def test_a_manifest_names_the_package_its_commands_and_what_it_needs(
    path: str, text: str, name: str, commands: dict[str, str], dependencies: tuple[str, ...]
) -> None:
    made = manifest_of(path, text)
    assert made == PackageManifest(path=path, name=name, commands=commands, dependencies=dependencies)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package.json", "{"), ("package.json", "[1]"), ("package.json", '{"scripts": 3}'),
        ("pyproject.toml", "= ="), ("Cargo.toml", "[package]\nname = "), ("composer.json", "null"),
    ],
)  # fmt: skip
def test_a_malformed_manifest_says_nothing(path: str, text: str) -> None:
    made = manifest_of(path, text)
    assert made is None or not made.commands


def test_other_files_are_no_manifests() -> None:
    assert not is_manifest("src/app.py")
    assert manifest_of("src/app.py", "") is None

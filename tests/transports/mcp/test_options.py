"""What `vestige-mcp` knows before it answers: flags, environment, settings file, in that order."""

import sys
from pathlib import Path

import pytest

from vestige.settings.directories import default_data_directory
from vestige.settings.settings import load_settings
from vestige.transports.mcp.options import parse_options

FILE = '[mcp]\nprofile = "full"\ninstructions = "full"\n'


def chosen(*arguments: str, **environ: str) -> tuple[str, str]:
    options = parse_options(list(arguments), environ)
    return options.profile, options.instructions


@pytest.mark.parametrize(
    "where", ["data_dir flag", "data_dir variable", "config flag", "config variable", "home"]
)
def test_the_settings_file_is_found_where_the_settings_find_it(tmp_path: Path, where: str) -> None:
    folder, arguments, environ = tmp_path / "data", [], {"HOME": str(tmp_path)}
    if where == "home":
        folder = Path(default_data_directory(environ, sys.platform))
    place = str(folder / "vestige.toml" if where.startswith("config") else folder)
    if where.endswith("flag"):
        arguments = ["--config" if where.startswith("config") else "--data-dir", place]
    elif where.endswith("variable"):
        environ["VESTIGE_CONFIG" if where.startswith("config") else "VESTIGE_DATA_DIR"] = place
    assert chosen(*arguments, **environ) == ("core", "minimal")

    folder.mkdir(parents=True)
    (folder / "vestige.toml").write_text(FILE, encoding="utf-8")

    assert chosen(*arguments, **environ) == ("full", "full")


def test_flags_win_over_variables_and_both_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "vestige.toml").write_text(FILE, encoding="utf-8")
    here = ["--data-dir", str(tmp_path)]

    assert chosen(*here, VESTIGE_MCP_PROFILE="core") == ("core", "full")
    assert chosen(*here, VESTIGE_SYSTEM_PROMPT_MODE="minimal") == ("full", "minimal")
    assert chosen(*here, "--profile", "core") == ("core", "full")
    assert chosen(*here, "--profile", "full", VESTIGE_MCP_PROFILE="core") == ("full", "full")


@pytest.mark.parametrize(
    "text", ["[mcp", '[mcp]\nprofile = "huge"\n', '[mcp]\nprofil = "full"\n', '# mcp\nlog_level = "info"\n']
)
def test_a_file_that_says_nothing_of_use_leaves_the_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "vestige.toml").write_text(text, encoding="utf-8")

    assert chosen("--data-dir", str(tmp_path)) == ("core", "minimal")


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    "environ", [{}, {"XDG_DATA_HOME": "/srv/data", "APPDATA": "/srv/roaming"}, {"XDG_DATA_HOME": "data"}]
)
def test_the_default_data_directory_is_the_one_of_the_settings(
    platform: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    environ = {"HOME": "/home/ada", **environ}

    assert str(load_settings(environ=environ).data_dir) == default_data_directory(environ, platform)

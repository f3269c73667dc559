"""Options of `vestige-mcp`: flags and three settings, parsed by hand. Importing argparse or pydantic would
take too long at start. The settings are only loaded before the first answer if their file mentions one of
these."""

import os
import sys
from collections.abc import Mapping

from vestige.settings.directories import default_data_directory
from vestige.transports.mcp.catalog import INSTRUCTIONS, PROFILES

USAGE = """\
usage: vestige-mcp [--data-dir PATH] [--config PATH] [--profile core|full] [--exclusive]

Serve the memory to an MCP client over stdin and stdout. Logs go to stderr.

  --data-dir PATH   where the memories are (default: the platform's data directory)
  --config PATH     a settings file to use instead of vestige.toml in the data directory
  --profile NAME    the tools to list: core (default), a few that lead to all others, or full
  --exclusive       refuse to start beside another server, and let no other start
  -h, --help        show this and exit
  -V, --version     show the version and exit
"""

_PROFILE = "--profile"
_EXCLUSIVE = "--exclusive"
_PATHS = {"--data-dir": "data_dir", "--config": "config"}
_QUESTIONS = {"--help": "help", "-h": "help", "--version": "version", "-V": "version"}
_PROFILE_VARIABLES = ("VESTIGE_MCP_PROFILE",)
_EXCLUSIVE_VARIABLE = "VESTIGE_STORAGE_EXCLUSIVE"
_INSTRUCTIONS_VARIABLES = ("VESTIGE_MCP_INSTRUCTIONS", "VESTIGE_SYSTEM_PROMPT_MODE")
"""The second is the name in the reference system."""


class UsageError(Exception):
    """The command line or the environment is invalid."""


class Options:
    """The parsed options: settings, profile, instructions, or a question such as `--help`."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.question: str | None = None
        self.exclusive = False
        self.profile = ""
        self.instructions = ""


def parse_options(arguments: list[str], environ: Mapping[str, str]) -> Options:
    """Parse the command line without its first word; the environment and the settings file give the rest."""
    options = _flags(arguments)
    if options.question is None:
        filed = _from_file(options, environ)
        options.profile = options.profile or _variable(PROFILES, _PROFILE_VARIABLES, environ) or filed[0]
        options.instructions = _variable(INSTRUCTIONS, _INSTRUCTIONS_VARIABLES, environ) or filed[1]
        options.exclusive = options.exclusive or filed[2]
    return options


def _flags(arguments: list[str]) -> Options:
    options = Options()
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if flag in _PATHS or flag == _PROFILE:
            value = value if equals else next(rest, "")
            if not value or (not equals and value.startswith("--")):
                raise UsageError(f"{flag} needs a {'name' if flag == _PROFILE else 'path'}")
            if flag == _PROFILE:
                options.profile = _one_of(PROFILES, value, flag)
            else:
                options.settings[_PATHS[flag]] = value
        elif argument == _EXCLUSIVE:
            options.exclusive = True
            options.settings["storage.exclusive"] = "true"
        elif argument in _QUESTIONS:
            options.question = options.question or _QUESTIONS[argument]
        else:
            raise UsageError(_unknown(argument, flag))
    return options


def _from_file(options: Options, environ: Mapping[str, str]) -> tuple[str, str, bool]:
    """Profile and instructions of the settings file, or the defaults; and whether the store is exclusive."""
    given = options.settings.get("config") or environ.get("VESTIGE_CONFIG")
    if not given:
        folder = options.settings.get("data_dir") or environ.get("VESTIGE_DATA_DIR")
        given = (folder or default_data_directory(environ, sys.platform)) + os.sep + "vestige.toml"
    try:
        # pathlib is 3 ms, a seventh of the whole start
        with open(os.path.expanduser(given), "rb") as file:  # noqa: PTH111, PTH123 - as said above
            text = file.read()
    except OSError:
        text = b""
    if b"mcp" not in text and b"exclusive" not in text and not environ.get(_EXCLUSIVE_VARIABLE):
        return PROFILES[0], INSTRUCTIONS[0], False
    from vestige.core.errors import ConfigError
    from vestige.settings.settings import load_settings  # pydantic: only loaded if the file needs it

    try:
        chosen = load_settings(options.settings, environ=environ)
    except ConfigError:  # the client gets the error on its first call
        return PROFILES[0], INSTRUCTIONS[0], False
    return chosen.mcp.profile, chosen.mcp.instructions, chosen.storage.exclusive


def _variable(known: tuple[str, ...], variables: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    """The value of the first variable that is set."""
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            return _one_of(known, value.lower(), variable)
    return None


def _one_of(known: tuple[str, ...], value: str, where: str) -> str:
    if value not in known:
        raise UsageError(f"{where} must be {' or '.join(known)}, not {value!r}")
    return value


def _unknown(argument: str, flag: str) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}"
    flags = (*_PATHS, _PROFILE, _EXCLUSIVE, *_QUESTIONS)
    from vestige.core.errors import nearest_name  # after an error only: it imports typing

    nearest = nearest_name(flag, [name for name in flags if name.startswith("--")])
    return f"unknown flag {flag}" + (f" (did you mean {nearest}?)" if nearest else "")

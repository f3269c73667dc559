"""The flags of `vestige-mcp`, read by hand: two paths and two questions are not worth importing argparse."""

from vestige.nearest import nearest_name

USAGE = """\
usage: vestige-mcp [--data-dir PATH] [--config PATH]

Serve the memory to an MCP client over stdin and stdout. Logs go to stderr.

  --data-dir PATH   where the memories are (default: the platform's data directory)
  --config PATH     a settings file to use instead of vestige.toml in the data directory
  -h, --help        show this and exit
  -V, --version     show the version and exit
"""

_VALUES = {"--data-dir": "data_dir", "--config": "config"}
_QUESTIONS = {"--help": "help", "-h": "help", "--version": "version", "-V": "version"}


class UsageError(Exception):
    """The command line cannot be understood."""


class Options:
    """What the command line asks for: settings to open with, or a question to answer instead."""

    __slots__ = ("question", "settings")

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.question: str | None = None


def parse_options(arguments: list[str]) -> Options:
    """Read the command line without its first word."""
    options = Options()
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if flag in _VALUES:
            value = value if equals else next(rest, "")
            if not value or (not equals and value.startswith("--")):
                raise UsageError(f"{flag} needs a path")
            options.settings[_VALUES[flag]] = value
        elif argument in _QUESTIONS:
            options.question = options.question or _QUESTIONS[argument]
        else:
            raise UsageError(_unknown(argument, flag))
    return options


def _unknown(argument: str, flag: str) -> str:
    if not argument.startswith("-"):
        return f"unexpected argument {argument!r}"
    nearest = nearest_name(flag, [name for name in (*_VALUES, *_QUESTIONS) if name.startswith("--")])
    return f"unknown flag {flag}" + (f" (did you mean {nearest}?)" if nearest else "")

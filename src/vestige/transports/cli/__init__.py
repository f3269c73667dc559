"""The command line: `vestige`. Commands are made from the registry; nothing here names an operation."""

from vestige.transports.cli.main import run

__all__ = ["run"]

"""The one registry. Importing `vestige.operations.all` fills it."""

from vestige.operations.registry import Registry

registry = Registry()

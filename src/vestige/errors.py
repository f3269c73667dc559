"""The errors of Vestige, under the name that programs with `vestige.client` import them by."""

from vestige.core.errors import *  # noqa: F403 the same classes, all of them

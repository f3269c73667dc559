"""The composition root: settings become an engine, and an engine gets its transports."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vestige.app.app import App, Clock, open_app

__all__ = ["App", "Clock", "open_app"]


def __getattr__(name: str) -> Any:
    """Import the application when one of its names is used: the console program may not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vestige.app import app

    return getattr(app, name)

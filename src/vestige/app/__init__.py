"""The composition root: settings become an engine, and an engine gets its transports."""

from vestige.app.app import App, Clock, open_app

__all__ = ["App", "Clock", "open_app"]

"""The composition root: settings become an engine, and an engine gets its transports."""

"""Settings: what can be set, where it is read from, and its defaults."""

"""Commands written by hand: those that are a process, manage files or edit settings."""

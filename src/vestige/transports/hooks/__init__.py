"""Hooks of agents: the program `vestige-hook`, and the socket at which a running server answers it."""

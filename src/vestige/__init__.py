"""Vestige: a memory for AI agents that fades like memory does and finds what matters."""

__version__ = "0.1.0"

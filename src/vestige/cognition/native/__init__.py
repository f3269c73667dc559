"""The inner loops of a search in C, where a compiled library for this platform is installed (ADR 0040)."""

"""Project memory: what a repository is, found by walking it, and the memories that concern it."""

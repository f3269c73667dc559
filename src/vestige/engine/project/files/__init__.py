"""The files of a project: which belong to it, and how they are read."""

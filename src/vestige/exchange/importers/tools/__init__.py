"""Readers of the files of other memory systems."""

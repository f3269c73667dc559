"""Readers of notes in Markdown."""

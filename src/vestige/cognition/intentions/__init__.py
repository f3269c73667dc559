"""Prospective memory: intentions, their triggers, and how they are read from text."""

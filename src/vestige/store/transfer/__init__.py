"""Copies a whole store from one backend to another, row by row."""

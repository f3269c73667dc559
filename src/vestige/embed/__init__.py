"""Text to vectors: one contract (protocol.py), several models."""

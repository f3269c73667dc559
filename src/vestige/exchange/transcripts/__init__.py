"""Readers of the transcripts that coding agents write, one for each client."""

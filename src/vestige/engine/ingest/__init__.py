"""The write path. `ingest.py` shows it: screen, embed, find rivals, decide, apply, commit, emit."""
